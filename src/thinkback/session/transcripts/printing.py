"""A conversation for people to look at: as a chat, as a table, or a line per commit. Reasoning stands back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO, TypeAlias

from thinkback.model.blocks import ThinkingBlock, ToolCall
from thinkback.model.commits import Commit, TurnEnded
from thinkback.model.curation import Curation, curate
from thinkback.session.transcripts import ink
from thinkback.session.transcripts.endings import endings
from thinkback.session.transcripts.ink import Style
from thinkback.session.transcripts.wording import first_words

Line: TypeAlias = tuple[str, tuple[Style, ...]]

MUTED: tuple[Style, ...] = ("dim", "cyan")
_ITALIC: tuple[Style, ...] = ("dim", "cyan", "italic")
# What a conversation is made of; the rest is bookkeeping.
_SAID = frozenset(
    {"system", "user", "assistant", "reasoning", "tool_call", "tool_result", "media", "content", "branch_summary"}
)
_WHOLE = ("completed", "capped")
_LABELS = {"tool_call": "call", "tool_result": "result", "branch_summary": "summary", "content": "content"}
_CALLED: tuple[Style, ...] = ("bold", "cyan")
_COLOURS: dict[str, tuple[Style, ...]] = {
    "user": ("bold", "green"),
    "assistant": ("bold",),
    "system": ("bold", "yellow"),
}


def pprint(commits: Sequence[Commit], look: str, stream: TextIO, history: Sequence[Commit] = ()) -> None:
    """Write ``commits`` to ``stream``, with what the whole ``history`` says of them (they, unless given).

    ``look`` is chat, table or compact. Raises ``ValueError`` for another.
    """
    every = history or commits
    looks = {"chat": _chat, "table": _table, "compact": _compact}
    if look not in looks:
        raise ValueError(f"there is no style {look!r}; styles are {', '.join(looks)}")
    pen = ink.pen(stream)
    for text, styles in looks[look](commits, every):
        stream.write(pen(text, *styles) + "\n")


def label(commit: Commit) -> str:
    """What a commit is called in a list: reasoning stands in brackets, as it stands behind what was said."""
    if commit.kind == "content":
        return getattr(commit.value, "content_type", "content")
    return "[reasoning]" if commit.kind == "reasoning" else commit.kind


def _chat(commits: Sequence[Commit], every: Sequence[Commit]) -> Iterator[Line]:
    curation, told = curate(every), endings(every, commits)
    for commit in commits:
        if commit.kind in _SAID and not commit.edit:
            yield from _message(commit, curation)
        if isinstance(commit.value, TurnEnded) and commit.value.state not in _WHOLE:
            said = commit.value.state.replace("_", " ")
            behind = f": {commit.value.reason}" if commit.value.reason not in ("", said) else ""
            yield from ((line, ("dim",)) for line in ink.wrap(f"({said}{behind})").splitlines())
            yield "", ()
        if commit.hash in told:
            yield from ((line, ("dim",)) for line in ink.wrap(f"({told[commit.hash]})").splitlines())
            yield "", ()


def _message(commit: Commit, curation: Curation) -> Iterator[Line]:
    value = curation.value(commit)
    reasons = isinstance(value, ThinkingBlock)
    yield (
        f"{_name(commit)}{_said_of(commit, curation)}",
        MUTED if reasons else _COLOURS.get(commit.kind, _CALLED),
    )
    words = value.thought or first_words(value) if isinstance(value, ThinkingBlock) else first_words(value)
    styles: tuple[Style, ...] = _ITALIC if reasons else (("dim",) if isinstance(value, ToolCall) else ())
    yield from ((line, styles) for line in ink.wrap(words, 2).splitlines())
    yield "", ()


def _name(commit: Commit) -> str:
    return label(commit) if commit.kind in ("reasoning", "content") else _LABELS.get(commit.kind, commit.kind)


def _said_of(commit: Commit, curation: Curation) -> str:
    """Priority, tags and edits, in brackets."""
    priority, mark = curation.priority(commit), curation.mark(commit.hash)
    said = [*([priority.value] if priority is not None else []), *sorted(mark.tags)]
    if curation.is_changed(commit):
        said.append("edited")
    return f" ({', '.join(said)})" if said else ""


def _table(commits: Sequence[Commit], every: Sequence[Commit]) -> Iterator[Line]:
    curation = curate(every)
    rows = [("commit", "kind", "time", "said", "text")]
    for commit in commits:
        words = ink.one_line(first_words(curation.value(commit)), 48)
        said = _said_of(commit, curation).strip(" ()")
        rows.append((ink.short(commit.hash), label(commit), ink.clock(commit.time), said, words))
    heading, *lines = ink.table(rows)
    yield heading, ("bold",)
    for commit, line in zip(commits, lines, strict=True):
        yield line, MUTED if commit.kind == "reasoning" else ()


def _compact(commits: Sequence[Commit], every: Sequence[Commit]) -> Iterator[Line]:
    curation = curate(every)
    column = max([14, *(len(label(commit)) for commit in commits)])
    for commit in commits:
        before = f"{ink.short(commit.hash)} {ink.pad(label(commit), column)} "
        words = ink.one_line(first_words(curation.value(commit)), max(ink.width() - len(before), 20))
        yield before + words + _said_of(commit, curation), MUTED if commit.kind == "reasoning" else ()
