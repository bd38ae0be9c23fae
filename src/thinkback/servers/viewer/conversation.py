"""A conversation as values for a page: what was said, and each response with its thoughts, calls and results.

Promises: a function of commits, however many are taken at a time; every message and every block of a response is
in it once, in order, as it holds now; what nobody looks at is not made. Must not: know HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Literal, NamedTuple, TypeAlias, overload

from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, carriers_of, is_shown
from thinkback.model.commits import (
    BranchSummary,
    Commit,
    Compaction,
    Content,
    Erased,
    Merge,
    Message,
    Payload,
    PermissionDecision,
    Priority,
    Repair,
    Request,
    Response,
    Tools,
    TurnEnded,
)
from thinkback.model.curation import Curation
from thinkback.session.transcripts.endings import ending
from thinkback.turn.spending import Ledger, StepUse

_SAID = frozenset({"system", "user", "content", "branch_summary", "tools"})
_NOTES = frozenset({"compaction", "merge", "permission_decision", "repair"})
_MILLION = 1_000_000
LONGEST = 20_000
"""Characters of a block that a page of many shows; the block's own page has the rest."""
_ENTRIES = 40
"""Entries on a page."""
_CHARACTERS = 300_000
"""And of their text, about."""
_TEXTS: Mapping[type, str] = {
    Message: "text",
    Content: "text",
    BranchSummary: "text",
    Text: "text",
    ThinkingBlock: "thought",
    ToolCall: "arguments",
    ToolResult: "content",
    Unknown: "wire",
}
"""Where payloads have the text by whose length pages are parted."""

EntryKind: TypeAlias = Literal["said", "step", "note"]
PartKind: TypeAlias = Literal["said", "thought", "text", "call", "result", "media", "other", "erased"]


class Part(NamedTuple):
    """A message or a block: its ``commit``, and the ``value`` that holds now.

    ``title`` says who or what it is, ``text`` what people read of it. ``marks`` are what people said of it in words,
    ``opaque`` its opaque values as kind and length, ``withheld``: thought, and the text is not given away.
    """

    commit: Commit
    kind: PartKind
    title: str
    text: str
    value: Payload
    marks: tuple[str, ...] = ()
    opaque: tuple[tuple[str, int], ...] = ()
    withheld: bool = False
    is_error: bool = False
    before: str = ""


class Entry(NamedTuple):
    """What stands together on a page: a message, a response with its results, or a remark.

    ``turn`` counts from 1; ``opens``: it is the first of its turn, ``ended`` how its turn ended behind it. ``request``
    is the hash of the request that a response answers, ``seconds`` how long the response took since what came before.
    """

    kind: EntryKind
    turn: int
    opens: bool
    commits: tuple[Commit, ...]
    parts: tuple[Part, ...]
    request: str = ""
    model: str = ""
    endpoint: str = ""
    said: str = ""
    use: StepUse | None = None
    seconds: float = 0.0
    ended: str = ""
    reason: str = ""

    @property
    def first(self) -> Commit:
        """The commit that it begins with."""
        return self.commits[0]


class Fragment(NamedTuple):
    """A page of a conversation: the entries from ``begin`` to before ``end``. ``first`` and ``last`` are the
    ``seq`` of their ends.
    """

    begin: int
    end: int
    first: int
    last: int


class _Open:
    """An entry while its commits are gathered. ``size``: characters of it that a page shows, about."""

    __slots__ = ("commits", "ended", "kind", "opens", "reason", "request", "seconds", "size", "turn")

    def __init__(self, kind: EntryKind, turn: int, opens: bool, commit: Commit) -> None:
        self.kind, self.turn, self.opens = kind, turn, opens
        self.commits = [commit]
        self.request = self.ended = self.reason = ""
        self.seconds = 0.0
        self.size = _length(commit.value)

    def copy(self) -> _Open:
        """Another one like it."""
        twin = copy(self)
        twin.commits = [*self.commits]
        return twin


class _Gathering:
    """Puts commits together, in order. An entry that was there before a ``take`` is never changed: a copy of it is."""

    def __init__(self) -> None:
        self.entries: list[_Open] = []
        self.turn = 0
        self._is_over = True
        self._requests: dict[str, str] = {}
        self._steps: dict[str, int] = {}
        self._callers: dict[str, int] = {}
        self._last = 0
        self._kept = 0
        self._copied: set[int] = set()

    def take(self, commits: Iterable[Commit]) -> Sequence[int]:
        """More commits; returns which entries changed or are new."""
        self._kept, self._copied = len(self.entries), set()
        for commit in commits:
            self._take(commit)
        return [*sorted(self._copied), *range(self._kept, len(self.entries))]

    def _take(self, commit: Commit) -> None:
        value, kind = commit.value, commit.kind
        if commit.edit or kind in ("annotation", "provider_usage"):
            return
        if kind == "request":
            self._requests[commit.response] = commit.hash
            return
        if kind == "response":
            step = self._open("step", commit)
            step.request = self._requests.get(commit.response, "")
            if self._last and commit.time > self._last:
                step.seconds = (commit.time - self._last) / _MILLION
            self._steps[commit.response] = len(self.entries) - 1
        elif kind == "tool_result":
            self._result(commit, value.id if isinstance(value, ToolResult) else "")
        elif commit.index >= 0 and commit.response in self._steps:
            number = self._steps[commit.response]
            self._add(number, commit)
            if isinstance(value, ToolCall):
                self._callers[value.id] = number
        elif kind == "turn_ended":
            self._end(commit)
        elif kind in _NOTES:
            self._open("note", commit)
        else:
            self._open("said", commit)
        self._last = commit.time

    def _result(self, commit: Commit, call: str) -> None:
        number = self._steps.get(commit.response, self._callers.get(call, -1))
        if number < 0:
            self._open("said", commit)
        else:
            self._add(number, commit)

    def _add(self, number: int, commit: Commit) -> _Open:
        """Put ``commit`` into the entry of that number."""
        if number < self._kept and number not in self._copied:
            self.entries[number] = self.entries[number].copy()
            self._copied.add(number)
        entry = self.entries[number]
        entry.commits.append(commit)
        entry.size += _length(commit.value)
        return entry

    def _end(self, commit: Commit) -> None:
        if isinstance(commit.value, TurnEnded) and self.entries:
            entry = self._add(len(self.entries) - 1, commit)
            entry.ended, entry.reason = commit.value.state, commit.value.reason
        self._is_over = True

    def _open(self, kind: EntryKind, commit: Commit) -> _Open:
        before = self.entries[-1] if self.entries else None
        asks = commit.kind in ("user", "content") and before is not None and before.kind != "said"
        opens = (self._is_over and kind != "note") or asks
        if opens:
            self.turn, self._is_over = self.turn + 1, False
        made = _Open(kind, self.turn, opens, commit)
        self.entries.append(made)
        return made


class Entries(Sequence[Entry]):
    """The entries of a line as it was read, each made when it is first looked at: a page shows a few of thousands."""

    def __init__(
        self, found: Iterable[_Open], curation: Curation, uses: Mapping[str, StepUse], made: dict[int, Entry]
    ) -> None:
        self._found = [*found]
        self._curation, self._uses, self._made = curation, uses, made

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> list[Entry]: ...
    def __getitem__(self, at: int | slice) -> Entry | list[Entry]:
        if isinstance(at, slice):
            return [self[number] for number in range(len(self))[at]]
        number = range(len(self))[at]
        entry = self._made.get(number)
        if entry is None:
            entry = self._made[number] = _entry(self._found[number], self._curation, self._uses)
        return entry

    def hashes(self, at: int) -> Iterator[str]:
        """Those of the commits of an entry."""
        return (commit.hash for commit in self._found[at].commits)

    def pages(self) -> list[Fragment]:
        """The pages that they fill."""
        pages: list[Fragment] = []
        begin = size = 0
        for at, found in enumerate(self._found):
            size += found.size
            if at - begin + 1 >= _ENTRIES or size >= _CHARACTERS or at + 1 == len(self):
                pages.append(Fragment(begin, at + 1, self._found[begin].commits[0].seq, found.commits[-1].seq))
                begin, size = at + 1, 0
        return pages

    def grown(self, found: Iterable[_Open], changed: Iterable[int]) -> Entries:
        """Those of the line as it goes on: what is made already stays, but for what ``changed``."""
        made = self._made.copy()
        if made:
            for at in changed:
                made.pop(at, None)
        return Entries(found, self._curation, self._uses, made)


class Growing:
    """The entries of a line to which commits are added; what ``entries`` was before stays as it was."""

    def __init__(self) -> None:
        self._gathering, self._curation, self._ledger = _Gathering(), Curation(), Ledger()
        self._uses: dict[str, StepUse] = {}
        self.entries = Entries((), self._curation, self._uses, {})

    def take(self, commits: Sequence[Commit]) -> Sequence[int]:
        """More commits of the line, in order, whole responses in one piece; returns which entries changed or are new.

        A commit that speaks of others comes in one piece with them.
        """
        changed = self._gathering.take(commits)
        self._curation.take(commits)
        counted = len(self._ledger.steps)
        self._ledger.take(commits)
        self._uses.update((step.commit, step) for step in self._ledger.steps[counted:])
        self.entries = self.entries.grown(self._gathering.entries, changed)
        return changed


def speaks_of_others(commit: Commit) -> bool:
    """Whether it changes how commits before it are shown."""
    return bool(commit.edit) or commit.kind == "annotation"


def entries_of(commits: Sequence[Commit]) -> list[Entry]:
    """What a page shows of ``commits``, in order."""
    growing = Growing()
    growing.take(commits)
    return [*growing.entries]


def _entry(found: _Open, curation: Curation, uses: Mapping[str, StepUse]) -> Entry:
    first = found.commits[0]
    made = Entry(
        found.kind,
        found.turn,
        found.opens,
        tuple(found.commits),
        tuple(_parts(found, curation)),
        found.request,
        seconds=found.seconds,
        ended=found.ended,
        reason=found.reason if found.reason != found.ended else "",
        use=uses.get(first.hash),
    )
    value = curation.value(first)
    if isinstance(value, Response):
        origin = value.origin
        said = value.error.message if value.error else ending(value.outcome, [part.value for part in made.parts])
        model = origin.served_model or origin.requested_model
        made = made._replace(model=model, endpoint=origin.endpoint, said=said)
    return made


def _parts(found: _Open, curation: Curation) -> list[Part]:
    if found.kind != "step":
        return [part_of(found.commits[0], curation)]
    blocks: list[Commit] = []
    left: dict[str, list[Commit]] = {}
    for commit in found.commits[1:]:
        if commit.kind == "tool_result":
            left.setdefault(commit.value.id if isinstance(commit.value, ToolResult) else "", []).append(commit)
        elif commit.index >= 0:
            blocks.append(commit)
    parts: list[Part] = []
    for block in blocks:
        part = part_of(block, curation)
        parts.append(part)
        if isinstance(part.value, ToolCall):
            parts += [part_of(result, curation) for result in left.pop(part.value.id, [])]
    parts += [part_of(result, curation) for results in left.values() for result in results]
    return parts


def part_of(commit: Commit, curation: Curation) -> Part:
    """``commit`` as it holds now."""
    value = curation.value(commit)
    kind, title, text = _told(value, commit.kind)
    carriers = carriers_of(value) if isinstance(value, Text | ThinkingBlock | ToolCall | Media | Unknown) else ()
    return Part(
        commit,
        kind,
        title,
        text,
        value,
        _marks(commit, value, curation),
        tuple((carrier.kind.replace("_", " "), len(carrier.value)) for carrier in carriers),
        withheld=isinstance(value, ThinkingBlock) and not value.thought,
        is_error=isinstance(value, ToolResult) and (value.is_error or value.status != "run"),
        before=_before(commit, curation),
    )


def _told(value: Payload, kind: str) -> tuple[PartKind, str, str]:
    """Kind, title and text of a payload."""
    match value:
        case Message():
            return "said", {"system": "System", "user": "You"}.get(kind, kind), _message(value)
        case Content():
            return "said", value.content_type, value.text
        case BranchSummary():
            return "said", "From another line of work", value.text
        case Tools():
            return "said", "Tools", ", ".join(tool.name for tool in value.tools) or "none"
        case ThinkingBlock():
            return "thought", "Thought" if is_shown(value) else "Repeated thought", value.thought
        case Text():
            return "text", "Answer", value.text
        case ToolCall():
            return "call", value.name, value.arguments
        case ToolResult():
            return "result", value.name or "Result", value.content
        case Media():
            return "media", value.name or value.media_type, value.url
        case Unknown():
            return "other", "Not understood", value.wire
        case Erased():
            return "erased", kind.replace("_", " "), value.notice
        case _:
            return "other", *_remark(value, kind)


def _remark(value: Payload, kind: str) -> tuple[str, str]:
    """What a commit that is no message says, as a title and a text."""
    match value:
        case Compaction():
            return "Checkpoint", value.summary or value.note or value.describe()
        case Merge():
            return "Merge", f"branch {value.branch} was taken in"
        case PermissionDecision():
            told = value.note or value.reason
            return f"{value.tool} {value.decision}", f"by {value.by}" + (f": {told}" if told else "")
        case Repair():
            return "The provider refused the request", value.refusal
        case Request() | Response():
            return kind, ""
        case _:
            return kind.replace("_", " "), ""


def _message(message: Message) -> str:
    others = [part for part in message.parts if not isinstance(part, Text)]
    names = [f"[{part.media_type}{f' {part.name}' if part.name else ''}]" for part in others if isinstance(part, Media)]
    return "\n".join([message.text, *names]) if names else message.text


def _marks(commit: Commit, value: Payload, curation: Curation) -> tuple[str, ...]:
    priority, mark = curation.priority(commit), curation.mark(commit.hash)
    words = [priority.value] if priority not in (None, Priority.NORMAL) else []
    words += [mark.reason, *sorted(mark.tags), mark.message]
    if curation.is_changed(commit):
        words.append("edited")
    if isinstance(commit.value, Erased) and not isinstance(value, Erased):
        words.append("erased in part")
    return tuple(word for word in words if word)


def _before(commit: Commit, curation: Curation) -> str:
    """What was said before an edit; nothing where that was erased."""
    if not curation.is_changed(commit) or isinstance(commit.value, Erased):
        return ""
    return _told(commit.value, commit.kind)[2]


def _length(value: Payload) -> int:
    """The characters of a payload that a page shows, of an edit those before it; none of a remark."""
    name = _TEXTS.get(type(value))
    return min(len(getattr(value, name)), LONGEST) if name is not None else 0


class Weight(NamedTuple):
    """What a thought took: ``tokens`` and, about, ``seconds``; 0 for what is not known or not worth a word."""

    tokens: int = 0
    seconds: float = 0.0


def weights_of(entry: Entry) -> dict[str, Weight]:
    """What each thought of a response took, by commit: what the response did, shared out by length."""
    thoughts = [part for part in entry.parts if part.kind == "thought"]
    tokens = (entry.use.use.reasoning if entry.use is not None else None) or 0
    seconds = entry.seconds * thought_share(entry)
    lengths = [len(part.text) + sum(length for _, length in part.opaque) // 4 + 1 for part in thoughts]
    shares = [length / sum(lengths) for length in lengths]
    return {
        part.commit.hash: Weight(round(tokens * share), seconds * share if seconds * share >= 0.05 else 0.0)
        for part, share in zip(thoughts, shares, strict=True)
    }


def thought_share(entry: Entry) -> float:
    """The part of a response that was thought: by what was counted, else by the lengths of the texts."""
    use = entry.use.use if entry.use is not None else None
    if use is not None and use.reasoning and use.output:
        return min(use.reasoning / use.output, 1.0)
    thought = sum(len(part.text) for part in entry.parts if part.kind == "thought")
    other = sum(len(part.text) for part in entry.parts if part.kind in ("text", "call"))
    return thought / (thought + other) if thought else 0.0
