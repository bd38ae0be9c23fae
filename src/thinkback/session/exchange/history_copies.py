"""Copies of one history compared: whole, cut, stripped of reasoning, edited; and joined where they agree.

A copy is a line of units: a response with its blocks, or one other commit. Units that stand for the same entry of the
source have the same anchor. One contains the other where it says all that the other says.

Promises: the join of two lines has every unit of both, in an order that both agree with, and of two forms of a unit the
fuller one; lines that say something else at the same place, or in another order, are not joined. Must not: store
anything, or know which program wrote a history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from thinkback.log.redacting import voided
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Text, ThinkingBlock, ToolCall, ToolResult, carriers_of
from thinkback.model.commits import (
    Annotation,
    Commit,
    Compaction,
    Content,
    Erased,
    Head,
    Message,
    Payload,
    Response,
    TurnEnded,
    Usage,
    commit_hash,
    source_of,
    surviving,
)

Anchor: TypeAlias = tuple[str, ...]
_SPOKEN = ("user", "content", "compaction")
_ONES_OWN = ("request", "permission_decision", "repair", "merge", "system", "tools")
"""Kinds of commits that no reader of histories makes."""
_COUNTS = ("input", "output", "reasoning", "cached", "cache_write")


class Unit(msgspec.Struct, frozen=True):
    """Commits of a line that stand or fall together, and by what they are known."""

    anchors: frozenset[Anchor]
    commits: tuple[Commit, ...]


class Joined(msgspec.Struct, frozen=True):
    """The ``units`` of two lines. ``is_here`` and ``is_there``: no others than the first line has, or the second.

    ``forms`` are the units that both have, each with the form of it that was not taken; ``settled`` is how many units
    at the beginning the first line has as they are, ``loose`` are those behind the last pair that only the first has.
    """

    units: tuple[Unit, ...]
    is_here: bool
    is_there: bool
    forms: tuple[tuple[Unit, Unit], ...]
    settled: int
    loose: tuple[Unit, ...]


def is_named(line: Iterable[Commit]) -> bool:
    """True if its messages say which entries of the source they are; those that an earlier version stored do not."""
    return all(source_of(commit.value) for commit in line if commit.kind in ("user", "compaction"))


def units_of(line: Iterable[Commit], *, keyed: bool, named: bool) -> list[Unit]:
    """The units of a line; ``named``: their anchors are the ids of the source, else what they say. ``keyed``: responses
    are called after ids of the source.
    """
    groups: list[list[Commit]] = []
    for commit in line:
        last = groups[-1] if groups else []
        is_within = commit.response != "" and any(each.response == commit.response for each in last[:1])
        if is_within or (commit.kind == "turn_ended" and last and last[0].response != ""):
            last.append(commit)
        else:
            groups.append([commit])
    return [Unit(frozenset(_anchors(group, keyed=keyed, named=named)), tuple(group)) for group in groups]


def _anchors(group: Sequence[Commit], *, keyed: bool, named: bool) -> Iterator[Anchor]:
    first, time = group[0], str(group[0].time)
    source = source_of(first.value)
    if first.response:
        if keyed:
            yield ("response", first.response)
        else:
            yield from _marks(group, time)
    elif (first.kind == "tool_result" and source) or (named and source):
        yield (first.kind, source)
    else:
        yield (first.kind, time, _content(first))


def _content(commit: Commit) -> str:
    """A digest of what a commit says to whoever reads it."""
    value = commit.value
    match value:
        case Message():
            return canonical.digest(canonical.encode((value.text, value.parts)))
        case Content():
            return canonical.digest(canonical.encode((value.content_type, value.text, value.data)))
        case Compaction():
            return canonical.digest(canonical.encode(value.summary))
        case _:
            return commit.digest


def _marks(group: Sequence[Commit], time: str) -> Iterator[Anchor]:
    """Identify a response without an id of its source: by its provider's id, calls, words and thoughts."""
    if all(_is_bare(commit.value) for commit in group if commit.kind not in ("response", "provider_usage")):
        yield ("empty", time)
    for commit in group:
        value = commit.value
        if isinstance(value, Response) and value.id:
            yield ("id", value.id)
        elif commit.kind == "tool_call":
            yield ("call", time, source_of(value))
        elif commit.kind in ("assistant", "reasoning"):
            yield (commit.kind, time, _words(commit))
        if isinstance(value, ThinkingBlock | Text | ToolCall):
            yield from (("opaque", carrier.value) for carrier in carriers_of(value))


def _words(commit: Commit) -> str:
    match commit.value:
        case Text(text=text) | ThinkingBlock(thought=text):
            return canonical.digest(text.encode("utf-8", "surrogatepass"))
        case _:
            return commit.digest


def join(here: Sequence[Unit], there: Sequence[Unit]) -> Joined | None:
    """Both lines in one; ``None`` where they say something else at one place, or in another order."""
    left, right = _Places(here), _Places(there)
    units: list[Unit] = []
    forms: list[tuple[Unit, Unit]] = []
    loose: list[Unit] = []
    is_here = is_there = True
    gap, settled, at, to = "", 0, 0, 0
    while at < len(here) or to < len(there):
        side = _side(left, right, at, to)
        if side == "both":
            one, other = here[at], there[to]
            is_fuller, is_less = contains(one, other), contains(other, one)
            if not (is_fuller or is_less):
                return None
            taken = one if is_fuller else other
            is_here, is_there = is_here and is_fuller, is_there and is_less
            forms.append((taken, other if is_fuller else one))
            at, to, loose = at + 1, to + 1, []
        elif side == "here" and _is_note(here[at]):  # it stands on what it is about, wherever that comes to be
            units.append(here[at])
            settled += settled == len(units) - 1
            is_there, at = False, at + 1
            continue
        elif side == "here" and gap != "there":
            taken, is_there, at = here[at], False, at + 1
            loose.append(taken)
        elif side == "there" and gap != "here":
            taken, is_here, to = there[to], False, to + 1
        else:
            return None
        gap = side
        settled += settled == len(units) and settled < len(here) and taken is here[settled]
        units.append(taken)
    return Joined(tuple(units), is_here, is_there, tuple(forms), settled, tuple(loose))


def _is_note(unit: Unit) -> bool:
    """True if it is what somebody noted here of a commit: a pin, a tag, words."""
    return isinstance(unit.commits[0].value, Annotation)


class _Places:
    """The positions of a line's units, by what they are known."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units = units
        self._places: dict[Anchor, list[int]] = defaultdict(list)
        for at, unit in enumerate(units):
            for anchor in unit.anchors:
                self._places[anchor].append(at)

    def distance(self, unit: Unit, start: int) -> int | None:
        """Measure how far behind ``start`` the next form of a unit stands; ``None`` for nowhere."""
        found = (self._places[anchor] for anchor in unit.anchors if anchor in self._places)
        nexts = [places[at] for places in found if (at := bisect_left(places, start)) < len(places)]
        return min(nexts) - start if nexts else None


def _side(left: _Places, right: _Places, at: int, to: int) -> Literal["both", "here", "there", ""]:
    """Choose the line of the next unit; of two that both stand elsewhere too, the farther from there."""
    if at == len(left.units):
        return "there"
    if to == len(right.units):
        return "here"
    ahead = right.distance(left.units[at], to)
    behind = left.distance(right.units[to], at)
    if ahead == 0:
        return "both"
    if ahead is None or behind is None:
        return "here" if ahead is None else "there"
    farther = (ahead, len(left.units) - at) > (behind, len(right.units) - to)
    return "" if (ahead, len(left.units) - at) == (behind, len(right.units) - to) else "here" if farther else "there"


def contains(more: Unit, less: Unit) -> bool:
    """True if a unit says all that another form says; where some of it was erased, opaque values count no more."""
    is_torn = any(isinstance(commit.value, Erased) for commit in more.commits)
    rest = iter(more.commits)
    for other in less.commits:
        value = surviving(other.value)
        left = voided(value) if is_torn and (other.index >= 0 or other.kind == "response") else value
        if left is None or _is_bare(left):
            continue
        if not any(_holds(commit, other, left) for commit in rest):
            return False
    return True


def _is_bare(value: Payload) -> bool:
    """True if it says nothing: an end of a turn, a block that was emptied."""
    match value:
        case TurnEnded():
            return True
        case Text(text="") | ThinkingBlock(thought="", signature=""):
            return not carriers_of(value)
        case _:
            return False


def _holds(more: Commit, less: Commit, said: Payload) -> bool:
    """True if a commit says what is ``said`` in another one."""
    return more.kind == less.kind and (more.digest == less.digest or _says(surviving(more.value), said))


def _says(more: Payload, less: Payload) -> bool:
    """True if ``more`` says what ``less`` says; empty texts and missing opaque values say nothing."""
    match more, less:
        case ThinkingBlock(), ThinkingBlock():
            return less.thought in ("", more.thought) and _opaque(less) <= _opaque(more)
        case Text(), Text():
            return less.text in ("", more.text) and _opaque(less) <= _opaque(more)
        case ToolCall(), ToolCall():
            return (less.id, less.name) == (more.id, more.name) and less.arguments in ("", more.arguments)
        case ToolResult(), ToolResult():
            return less.id == more.id and less.content in ("", more.content)
        case Message(), Message():
            return (less.text, less.parts) == (more.text, more.parts)
        case Content(), Content():
            # A note in an open turn is the system's; an earlier version had it as the user's.
            is_role = less.role == more.role or more.role == "system"
            return is_role and (less.content_type, less.text, less.data) == (more.content_type, more.text, more.data)
        case Compaction(), Compaction():
            return less.summary == more.summary
        case Usage(), Usage():
            return all(_count(less, name) <= _count(more, name) for name in _COUNTS)
        case Response(), Response():
            model = less.origin.requested_model
            is_error = less.error is None or less.error == more.error
            return less.id in ("", more.id) and model in ("", more.origin.requested_model) and is_error
        case _:
            return False


def _count(usage: Usage, name: str) -> int:
    found: int | None = getattr(usage, name)
    return -1 if found is None else found


def _opaque(block: Text | ThinkingBlock) -> set[Carrier]:
    signature = (
        {Carrier("signature", block.signature)} if isinstance(block, ThinkingBlock) and block.signature else set()
    )
    return {*block.carriers} | signature


def may_move(here: Sequence[Unit], joined: Joined) -> bool:
    """True if what the join moves of the first line is the source's alone: nothing that somebody went on with here."""
    moving = here[joined.settled :]
    if any(commit.kind in _ONES_OWN or commit.edit for unit in moving for commit in unit.commits):
        return False
    return not moving or all(_is_sources(unit) for unit in joined.loose)


def _is_sources(unit: Unit) -> bool:
    first = unit.commits[0]
    return (
        source_of(first.value) != "" if first.kind in _SPOKEN else first.response != "" or first.kind == "tool_result"
    )


def sealed_on(head: Head, joined: Joined) -> list[Commit]:
    """The commits behind the settled ones, on top of ``head``; a checkpoint stands for the same commits as before,
    and a note is about the same.
    """
    counterparts = {old: new for taken, given in joined.forms for old, new in _counterparts(given, taken)}
    moved: dict[str, str] = {}

    def moved_to(hash: str) -> str:
        other = counterparts.get(hash, hash)
        return moved.get(hash) or moved.get(other, other)

    found: list[Commit] = []
    for commit in (commit for unit in joined.units[joined.settled :] for commit in unit.commits):
        value, payload, digest = commit.value, commit.payload, commit.digest
        if isinstance(value, Annotation):
            value = msgspec.structs.replace(value, target=moved_to(value.target))
            payload = canonical.encode(value)
            digest = canonical.digest(payload)
        elif isinstance(value, Compaction):
            value = msgspec.structs.replace(value, first=moved_to(value.first), last=moved_to(value.last))
            payload = canonical.encode(value)
            digest = canonical.digest(payload)
        parents = ((head.hash,) if head.hash else ()) + commit.parents[1:]
        hash = commit_hash(parents, commit.kind, digest, commit.edit, commit.response, commit.index, commit.time)
        moved[commit.hash] = hash
        head = Head(hash, head.seq + 1)
        found.append(
            msgspec.structs.replace(
                commit, hash=hash, parents=parents, seq=head.seq, value=value, payload=payload, digest=digest
            )
        )
    return found


def _counterparts(given: Unit, taken: Unit) -> Iterator[tuple[str, str]]:
    """The commits of one form of a unit, each with the one that says the same, or else begins it, in the other."""
    rest = list(taken.commits)
    for commit in given.commits:
        same = next((each for each in rest if _holds(each, commit, surviving(commit.value))), taken.commits[0])
        if same in rest:
            rest.remove(same)
        yield commit.hash, (taken.commits[-1] if commit is given.commits[-1] else same).hash


def beginning(here: Sequence[Unit], there: Sequence[Unit]) -> int:
    """Count the units at the beginning that the first line has as the second says them, or fuller."""
    at = 0
    for one, other in zip(here, there, strict=False):
        if one.anchors.isdisjoint(other.anchors) or not contains(one, other):
            break
        at += 1
    return at


def branched(here: Sequence[Unit], there: Sequence[Unit]) -> Joined:
    """The second line on as much of the first as the two begin with."""
    at = beginning(here, there)
    forms = tuple(zip(here[:at], there[:at], strict=True))
    return Joined((*here[:at], *there[at:]), False, False, forms, at, ())
