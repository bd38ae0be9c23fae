"""Child sessions: made from a session for a piece of work, read by it in full, and told in one message at the end.

A child is an ordinary session of the same family, so its parent can read all of it, reasoning included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from thinkback.compile.counts import DEFAULT_RATIO
from thinkback.compile.neutral import compile_neutral
from thinkback.drive.clock import now
from thinkback.errors import BranchError, UnsupportedContent
from thinkback.log.cherry_pick import Unit, copied, units
from thinkback.log.copy_commits import is_said
from thinkback.log.lines import common
from thinkback.log.merge import refuse_open
from thinkback.log.protocol import Origin, SessionInfo, Store
from thinkback.log.seal import head_of
from thinkback.model.commits import BranchSummary, Commit, Draft, Head, Message
from thinkback.model.curation import Curation, curate
from thinkback.model.texts import text_of
from thinkback.session.history.revisions import family
from thinkback.session.ids import new_id

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation
    from thinkback.session.session import Session

Inheritance: TypeAlias = Literal["full_clone", "head_snapshot", "selective"]
T = TypeVar("T")


class Event(NamedTuple):
    """A commit on a timeline, and the name of the session that first had it."""

    session: str
    commit: Commit


def descend(parent: Conversation, name: str | None, origin: Origin) -> Conversation:
    """A conversation made from ``parent``, with its endpoint, model, HTTP options, functions and settings.

    Raises ``BranchError`` for a name that is taken.
    """
    from thinkback.session.conversation import Conversation

    log, id = parent.store.log, new_id()
    wanted = name or f"{parent.info.name}-{id[:6]}"
    info = log.create_session(id, wanted, now(), origin)
    if info.id != id:
        raise BranchError(
            f"there is a session {wanted!r} already", details={"session": wanted}, next_actions=("take another name",)
        )
    configuration = parent.current()
    log.write_settings(id, dict(parent.info.settings))
    place = parent.followed.given if configuration.rotating is not None else configuration.place
    child = Conversation(parent.store, log.find_session(id) or info, place)
    child.functions = dict(parent.functions)
    return child


def spawn(
    session: Session,
    name: str | None = None,
    *,
    purpose: str = "",
    inheritance: Inheritance = "full_clone",
    tags: Iterable[str] = (),
    without_tags: Iterable[str] = (),
    kinds: Iterable[str] = (),
    max_tokens: int | None = None,
) -> Session:
    """A child of ``session``. ``full_clone`` shares its history, which stays as it is. ``head_snapshot`` begins with
    the system prompt and one message that tells the conversation so far. ``selective`` copies the system prompt, and
    messages and whole responses with one of ``tags``, none of ``without_tags`` and a commit of one of ``kinds``.

    ``max_tokens`` (estimated) bounds the latter two; the newest stay. Raises ``BranchError`` for a name that is taken.
    """
    if inheritance not in get_args(Inheritance):
        raise ValueError(f"inheritance must be one of {', '.join(get_args(Inheritance))}, not {inheritance!r}")
    wanted = _Wanted(frozenset(tags), frozenset(without_tags), frozenset(kinds))
    if inheritance != "selective" and any(wanted):
        raise ValueError("tags, without_tags and kinds go with inheritance='selective'")
    if inheritance == "full_clone":
        return session.branches.fork(name, purpose=purpose)
    from thinkback.session.session import Session

    parent = session.conversation
    parent.last_turn.settle()
    parent.refresh()
    line = parent.line.read()
    source = Origin(parent.info.id, parent.line.branch, None, purpose)
    child = descend(parent, name, source)
    if inheritance == "selective":
        child.line.put(new_id(), _selected(line, wanted, max_tokens), Head())
        child.reload()
    else:
        child.append(_snapshot(line, source, max_tokens))
    return Session(child)


class _Wanted(NamedTuple):
    tags: frozenset[str]
    without_tags: frozenset[str]
    kinds: frozenset[str]

    def has(self, unit: Unit, curation: Curation) -> bool:
        tags = frozenset().union(*(curation.mark(commit.hash).tags for commit in unit.commits))
        return (
            not (self.tags and self.tags.isdisjoint(tags))
            and self.without_tags.isdisjoint(tags)
            and not (self.kinds and self.kinds.isdisjoint(commit.kind for commit in unit.commits))
        )


def _selected(line: Sequence[Commit], wanted: _Wanted, max_tokens: int | None) -> list[Commit]:
    """Copies of the units that were asked for, sealed as the beginning of a history."""
    curation = curate(line)
    prompt = _prompt(line)
    whole = [unit for unit in units(line) if not unit.why]
    first = [unit for unit in whole if prompt is not None and prompt.hash == unit.commits[0].hash]
    rest = [unit for unit in whole if unit not in first and wanted.has(unit, curation)]
    kept = _newest(rest, [_length(unit.commits, curation) for unit in rest], max_tokens)
    chosen = [commit for unit in (*first, *kept) for commit in unit.commits]
    return copied((), line, chosen, now(), new_id)


def _snapshot(line: Sequence[Commit], source: Origin, max_tokens: int | None) -> Iterator[Draft]:
    """The system prompt of ``line``, the history of ``source``, and one message that tells what was said."""
    prompt = _prompt(line)
    if prompt is not None:
        yield Draft("system", Message(text_of(curate(line).value(prompt))))
    told = [f"{message['role']}: {message['content']}" for message in neutral(line) if message["role"] != "system"]
    text = "\n\n".join(_newest(told, [len(piece) for piece in told], max_tokens))
    if text:
        summary = BranchSummary(text, source.session, source.branch, head_of(line).hash, source.purpose)
        yield Draft("branch_summary", summary)


def _prompt(line: Sequence[Commit]) -> Commit | None:
    """The system prompt in force."""
    return next((c for c in reversed(line) if c.kind == "system" and not c.edit), None)


def _length(commits: Sequence[Commit], curation: Curation) -> int:
    return sum(len(text_of(curation.value(commit))) for commit in commits if is_said(commit))


def _newest(items: Sequence[T], lengths: Sequence[int], max_tokens: int | None) -> list[T]:
    """As many of the last ``items`` as fit."""
    left = float("inf") if max_tokens is None else max_tokens * DEFAULT_RATIO
    at = len(items)
    while at and lengths[at - 1] <= left:
        at -= 1
        left -= lengths[at]
    return list(items[at:])


def neutral(line: Sequence[Commit]) -> list[dict[str, str]]:
    """What was said, by whom, as a model would be told now: without reasoning, what was skipped and what never
    completed; a checkpoint's summary in place of what it stands for."""
    return [
        {"role": message.role, "content": "\n".join(map(text_of, message.blocks))}
        for message in compile_neutral(line).messages
        if message.role != "reasoning"
    ]


def collapse(
    child: Session,
    into: Session,
    text: str | None = None,
    *,
    write: Callable[[list[dict[str, str]]], str] | None = None,
) -> Commit:
    """One message in ``into`` that tells what came out of ``child``, which stays as it is; returns its commit.

    The words are ``text``, or what ``write`` makes of the child's messages, or the purpose, counts and last answer.
    Raises ``OpenTurnError`` while a turn of either is under way, ``UnsupportedContent`` for no words.
    """
    source, target = child.conversation, into.conversation
    for conversation in (source, target):
        conversation.last_turn.settle()
        conversation.refresh()
    line, there = source.line.read(), target.line.read()
    refuse_open(line, there)
    if source.info.family != target.info.family:
        raise BranchError(
            f"{child.name!r} and {into.name!r} are not of one family", next_actions=("export and import it",)
        )
    words = (
        text if text is not None else write(neutral(line)) if write is not None else _summary(source.info, line, there)
    )
    if not words.strip():
        raise UnsupportedContent("the summary is empty", next_actions=("give text=, or leave it to the default",))
    summary = BranchSummary(words, source.info.id, source.line.branch, source.history.head.hash, source.info.purpose)
    return target.append([Draft("branch_summary", summary)])[0]


def _summary(child: SessionInfo, line: Sequence[Commit], parent: Sequence[Commit]) -> str:
    """What it was for, how much happened, and the last word."""
    own = [commit for commit in line[common(line, parent) :] if not commit.edit]
    counts = {kind: sum(commit.kind == kind for commit in own) for kind in ("user", "response", "tool_call")}
    answers = [text_of(curate(line).value(commit)) for commit in own if commit.kind == "assistant"]
    what = child.purpose or child.name
    told = f"{what}: {counts['user']} messages, {counts['response']} responses, {counts['tool_call']} tool calls."
    return f"{told}\n\n{answers[-1]}" if answers else told


def timeline(log: Store, root: str) -> list[Event]:
    """The commits of all sessions and branches of the family ``root``, each once, by time."""
    events: dict[str, Event] = {}
    for info in family(log, root):
        for branch in log.refs.list(info.id):
            for commit in log.read(info.id, branch=branch.name):
                events.setdefault(commit.hash, Event(info.name, commit))
    return sorted(events.values(), key=lambda event: (event.commit.time, event.commit.seq))
