"""What went back, and why, as values for a page: each message and block of the log beside what requests made of it.

Promises: decisions are those of the plan, which was rebuilt from the log and checked; every decision stands beside the
block it is about, stand-ins beside the response they are for. Must not: know HTML, decide anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, carriers_of
from thinkback.model.commits import Commit, Message, surviving
from thinkback.model.target import Decision, DecisionAction
from thinkback.servers.viewer.conversation import Entry, Part
from thinkback.turn.plan import Plan
from thinkback.wire.registry import dialect

Verdict: TypeAlias = Literal["sent", "held", "stand-in", "kept", "said", "absent", "later"]

_VERDICTS: Mapping[DecisionAction, Verdict] = {
    "drop": "held",
    "placeholder": "stand-in",
    "dummy": "stand-in",
    "server": "kept",
}
_WORDS: Mapping[DecisionAction, str] = {
    "native": "as it was",
    "field": "in a field",
    "tags": "between tags",
    "summary": "as its summary",
    "text": "as text",
}
_SHORTEST_OPAQUE = 16


class Ground(NamedTuple):
    """Why something was done with a block: ``what`` of it is meant, and what the provider said of it."""

    verdict: Verdict
    what: tuple[str, ...]
    reason: str
    rule: str
    guessed: bool
    reported: str


class Cell(NamedTuple):
    """What one request made of a message or block. ``message`` is its place in the request, -1 for none."""

    verdict: Verdict
    label: str
    message: int
    grounds: tuple[Ground, ...] = ()


class Row(NamedTuple):
    """A message or block of the log, and what each request made of it; ``turn`` as in the conversation."""

    turn: int
    part: Part
    cells: tuple[Cell, ...]


class Tally(NamedTuple):
    """Thoughts of the log by what became of them; ``stand_ins`` that went in the place of some."""

    thoughts: int
    sent: int
    held: int
    kept: int
    stand_ins: int


class SentItem(NamedTuple):
    """A message or an item of a request: what people call it (``name``), and the object that is sent (``wire``)."""

    name: str
    wire: Any


class Column(NamedTuple):
    """A request beside the log. ``is_next``: nobody sent it yet. ``failed`` says why there is no ``plan`` of it.

    It was built from the commits before ``end``; ``hash`` is that of its record.
    """

    title: str
    is_next: bool
    plan: Plan | None
    failed: str = ""
    end: int = 0
    hash: str = ""


def rows_of(entries: Sequence[Entry], columns: Sequence[Column]) -> list[Row]:
    """The log beside ``columns``, as far as the longest of them reaches."""
    parts = [(entry.turn, part) for entry in entries if entry.kind != "note" for part in entry.parts]
    last = max((column.end for column in columns), default=0)
    parts = [(turn, part) for turn, part in parts if part.commit.seq < last]
    cells = [_cells([part for _, part in parts], column) for column in columns]
    return [Row(turn, part, tuple(one[part.commit.hash] for one in cells)) for turn, part in parts]


def tally(rows: Sequence[Row], at: int) -> Tally:
    """What became of the thoughts in column ``at``."""
    cells = [row.cells[at] for row in rows if row.part.kind == "thought" and row.cells[at].verdict != "later"]
    counts = Counter(cell.verdict for cell in cells)
    held = counts["held"] + counts["stand-in"] + counts["absent"]
    stand_ins = sum(ground.verdict == "stand-in" for row in rows for ground in row.cells[at].grounds)
    return Tally(len(cells), counts["sent"] + counts["said"], held, counts["kept"], stand_ins)


def sent_items(plan: Plan, commits: Sequence[Commit]) -> tuple[list[SentItem], dict[str, Any]]:
    """The messages of a request as they are sent, named as its dialect does, and the rest of its body; opaque values as
    their length alone.
    """
    name = _array(plan)
    hidden = {
        carrier.value for commit in commits for carrier in _carriers(commit) if len(carrier.value) >= _SHORTEST_OPAQUE
    }
    body = canonical.decode(bytes(plan))
    _hide(body, hidden)
    messages = body.pop(name, [])
    named = dialect(plan.target.endpoint.dialect).item_name
    items = messages if isinstance(messages, list) else [messages]
    return [SentItem(named(item) if isinstance(item, dict) else "", item) for item in items], body


def _array(plan: Plan) -> str:
    """The member that holds the messages."""
    return plan.writer.start.decode().strip('{["').partition('"')[0]


def _carriers(commit: Commit) -> Iterator[Any]:
    value = surviving(commit.value)
    if isinstance(value, Text | ThinkingBlock | ToolCall | ToolResult | Media | Unknown):
        yield from carriers_of(value)


def _hide(body: Any, hidden: set[str]) -> None:
    """Put the length in the place of each ``hidden`` text, however deep it is."""
    left = [body]
    while left:
        holder = left.pop()
        for key, item in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(item, str):
                if item in hidden:
                    holder[key] = f"({len(item):,} characters)"
            elif isinstance(item, dict | list):
                left.append(item)


def _cells(parts: Sequence[Part], column: Column) -> dict[str, Cell]:
    plan = column.plan
    if plan is None:
        return {part.commit.hash: Cell("absent", "Not known", -1) for part in parts}
    # a page has results behind their calls, a request all calls of a response before all of its results
    known = sorted((part for part in parts if part.commit.seq < column.end), key=lambda part: part.commit.seq)
    decided: dict[str, list[Decision]] = {}
    loose: list[Decision] = []
    for decision in plan.decisions:
        if decision.block:
            decided.setdefault(decision.block, []).append(decision)
        else:
            loose.append(decision)
    places = _Places(plan)
    cells = {part.commit.hash: Cell("later", "Was not said yet", -1) for part in parts}
    for part in known:
        found = decided.get(part.commit.hash)
        cells[part.commit.hash] = _decided(found, column.is_next) if found else _undecided(part, places, column.is_next)
    _stand_ins(loose, known, cells, column.is_next)
    return cells


def _decided(decisions: Sequence[Decision], is_next: bool) -> Cell:
    first = next((one for one in decisions if one.what == "reasoning"), decisions[0])
    verdict = _verdict(first)
    if verdict == "held" and any(one.action != "drop" for one in decisions):
        first = next(one for one in decisions if one.action != "drop")
        verdict = _verdict(first)
    label = _label(first.action, is_next)
    message = max(one.message for one in decisions)
    return Cell(verdict, label, message, tuple(_grounds(decisions)))


def _label(action: DecisionAction, is_next: bool) -> str:
    went = "Would go back" if is_next else "Went back"
    match action:
        case "drop":
            return "Would be held back" if is_next else "Held back"
        case "server":
            return "The provider has it"
        case "placeholder" | "dummy":
            return "A stand-in goes" if is_next else "A stand-in went"
        case _:
            return f"{went} {_WORDS[action]}"


def _verdict(decision: Decision) -> Verdict:
    return _VERDICTS.get(decision.action, "sent")


def _grounds(decisions: Sequence[Decision]) -> Iterator[Ground]:
    """Decisions that were made for the same reason are told once."""
    found: dict[tuple[Verdict, str, str, str], list[Decision]] = {}
    for one in decisions:
        found.setdefault((_verdict(one), one.reason, one.rule, one.reported), []).append(one)
    for (verdict, reason, rule, reported), same in found.items():
        what = tuple(dict.fromkeys(one.what.replace("_", " ") for one in same))
        yield Ground(verdict, what, reason, rule, any(one.guessed for one in same), reported)


def _undecided(part: Part, places: _Places, is_next: bool) -> Cell:
    """What has nothing that is decided about goes as it was said, unless a checkpoint stands for it."""
    if part.kind == "thought":
        return Cell("absent", "Nothing to decide", -1)
    if part.commit.kind == "tools":  # a declaration; a name in it stands in calls as well
        return Cell("said", "Declared beside the messages", -1)
    message = places.find(part)
    if message >= 0:
        return Cell("said", "Would go" if is_next else "Went", message)
    if part.commit.kind == "system":
        return Cell("said", "Beside the messages", -1)
    return Cell("absent", "Not among the messages in these words", -1)


def _stand_ins(decisions: Sequence[Decision], parts: Sequence[Part], cells: dict[str, Cell], is_next: bool) -> None:
    """A stand-in is told at the first thought of the response that it went for, else at its first block."""
    responses: dict[int, str] = {}
    blocks: dict[str, Part] = {}
    for part in parts:
        response, known = part.commit.response, blocks.get(part.commit.response)
        if response and (known is None or (part.kind == "thought" and known.kind != "thought")):
            blocks[response] = part
        if response and cells[part.commit.hash].message >= 0:
            responses.setdefault(cells[part.commit.hash].message, response)
    for decision in decisions:
        told = blocks.get(responses.get(decision.message, ""), parts[0] if parts else None)
        if told is None:
            continue
        cell = cells[told.commit.hash]
        cell = cell._replace(grounds=(*cell.grounds, *_grounds([decision])))
        if cell.verdict in ("held", "absent"):
            held = f"{cell.label}, a" if cell.verdict == "held" else "A"
            cell = cell._replace(verdict="stand-in", label=f"{held} stand-in {'would go' if is_next else 'went'}")
        cells[told.commit.hash] = cell


class _Places:
    """Finds the messages that hold what was said: by their texts, in order."""

    def __init__(self, plan: Plan) -> None:
        body = canonical.decode(bytes(plan))
        messages = body.get(_array(plan), [])
        self._at: dict[str, list[int]] = {}
        for number, message in enumerate(messages if isinstance(messages, list) else []):
            for text in _texts(message):
                self._at.setdefault(text, []).append(number)
        self._last = 0

    def find(self, part: Part) -> int:
        """The message that holds ``part``, the first from the one found last on; -1 for none."""
        for text in _said(part):
            places = self._at.get(text, ())
            found = next((place for place in places if place >= self._last), -1)
            if found >= 0:
                self._last = found
                return found
        return -1


def _said(part: Part) -> Iterator[str]:
    """Texts by which a message is known that holds ``part``."""
    match part.value:
        case ToolCall(id=id, arguments=arguments):
            yield from (id, arguments)
        case ToolResult(id=id, content=content):
            yield from (content, id)
        case Text(text=text) | Message(text=text):
            yield text
        case _:
            yield part.text


def _texts(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case list(items):
                left += reversed(items)
            case dict(members):
                left += reversed(members.values())
            case _:
                pass
