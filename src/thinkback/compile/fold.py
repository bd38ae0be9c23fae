"""The fold: commits to the next request.

``extend`` takes commits into a state; ``render`` turns a state into messages, decisions and counts. Finished turns
whose rendering can no longer change are *settled*: their bytes are kept, so that a further turn costs what it adds.
Promises: a state is never changed by ``extend``; from empty or step by step, the bytes are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from thinkback.compile.counts import Calibration, characters_of, observe
from thinkback.compile.decide import Place, decide
from thinkback.compile.policy import Inputs, Policy
from thinkback.compile.units import Grouper, MessageUnit, ResponseUnit, Turn
from thinkback.model import canonical
from thinkback.model.blocks import ToolResult
from thinkback.model.commits import Commit, Repair, Tool, Tools
from thinkback.model.plan import NOTHING, Counts, Digests, Writer
from thinkback.model.target import Decision, merge

T = TypeVar("T")


class Grown(Generic[T]):
    """An append-only sequence that shares its items with earlier versions of itself.

    Growing the newest version is in place; growing an older one copies. So states share, and none ever changes.
    """

    __slots__ = ("_hashed", "_items", "length")

    def __init__(self, items: list[T] | None = None, length: int = 0, hashed: dict[bytes, _Hashed] | None = None):
        self._items: list[T] = [] if items is None else items
        self.length = length
        self._hashed: dict[bytes, _Hashed] = {} if hashed is None else hashed

    def grow(self, more: Iterable[T]) -> Grown[T]:
        """A version with ``more`` at its end."""
        if len(self._items) != self.length:
            items = [*islice(self._items, self.length), *more]
            return Grown(items, len(items))
        self._items.extend(more)
        return Grown(self._items, len(self._items), self._hashed)

    def hasher(self, start: bytes, separator: bytes) -> hashlib._Hash:
        """SHA-256 of ``start`` and every item (bytes) followed by ``separator``; only new items are hashed."""
        known = self._hashed.get(start)
        if known is None or known.length > self.length:
            known = _Hashed(0, hashlib.sha256(start))
        for item in islice(self._items, known.length, self.length):
            known.hasher.update(item)  # type: ignore[arg-type]
            known.hasher.update(separator)
        known = _Hashed(self.length, known.hasher)
        self._hashed[start] = known
        return known.hasher.copy()

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self.length)

    def __len__(self) -> int:
        return self.length


class _Hashed(NamedTuple):
    length: int
    hasher: hashlib._Hash


class Sums(msgspec.Struct, frozen=True):
    """Characters of what is settled: everything stored, what is sent, and the reasoning in both."""

    raw: int = 0
    raw_reasoning: int = 0
    sent: int = 0
    sent_reasoning: int = 0


class Rendered(msgspec.Struct):
    """Messages made of some turns: their bytes, the same without reasoning, decisions, the reasoning sent."""

    fragments: list[bytes] = []
    bare: list[bytes] = []
    carried: list[bytes] = []
    system: list[bytes] = []
    decisions: list[Decision] = []
    sums: Sums = Sums()
    off: bool = False
    base: int = 0


class State(msgspec.Struct, frozen=True):
    """What the fold knows. ``pending`` turns may still change; everything before them is settled."""

    inputs: Inputs
    policy: Policy
    commits: Grown[Commit]
    fragments: Grown[bytes]
    bare: Grown[bytes]
    carried: Grown[bytes]
    system: Grown[bytes]
    decisions: Grown[Decision]
    pending: tuple[Turn, ...] = ()
    tools: Tools | None = None
    invalid: frozenset[str] = frozenset()
    sums: Sums = Sums()
    calibration: Calibration = Calibration()


def empty(inputs: Inputs) -> State:
    """The state before the first commit."""
    return _fresh(inputs, ())


def fold(inputs: Inputs, commits: Sequence[Commit], writer: Writer) -> State:
    """The state after ``commits``, from empty."""
    return _take(_fresh(inputs, commits), commits, writer)


def extend(state: State, commits: Sequence[Commit], writer: Writer) -> State:
    """``state`` with ``commits`` taken in. A repair voids blocks that may be settled: then all is folded again."""
    if any(_applies(commit.value, state.inputs) for commit in commits):
        return fold(state.inputs, [*state.commits, *commits], writer)
    return _take(state, commits, writer)


def _fresh(inputs: Inputs, commits: Iterable[Commit]) -> State:
    """An empty state that knows which repairs among ``commits`` hold for ``inputs``."""
    repairs = [c.value for c in commits if isinstance(c.value, Repair) and _applies(c.value, inputs)]
    return State(
        inputs=inputs,
        policy=Policy(inputs, frozenset(repair.stage for repair in repairs)),
        commits=Grown(),
        fragments=Grown(),
        bare=Grown(),
        carried=Grown(),
        system=Grown(),
        decisions=Grown(),
        invalid=frozenset(hash for repair in repairs for hash in repair.blocks),
    )


def _applies(value: object, inputs: Inputs) -> bool:
    """A repair holds until the target differs."""
    return (
        isinstance(value, Repair)
        and value.endpoint == inputs.target.base_url
        and value.model == inputs.target.model
    )


def _take(state: State, commits: Sequence[Commit], writer: Writer) -> State:
    grouper = Grouper((turn.copy() for turn in state.pending), state.tools)
    for commit in commits:
        grouper.add(commit)
    turns = grouper.turns
    settled = _settled(turns, state.policy.keep_last)
    done, pending = turns[:settled], turns[settled:]
    rendered = Rendered(base=len(state.fragments))
    calibration = state.calibration
    inside = state.policy.rule.reasoning_tokens != "added"
    for turn in done:
        # Whatever keepLast keeps is still pending, so a settled turn keeps its reasoning only without a limit.
        _render_turn(turn, rendered, state.policy, state.invalid, writer, is_open=False, kept=None)
        for unit in turn.responses:
            calibration = observe(calibration, unit, inside)
    return msgspec.structs.replace(
        state,
        commits=state.commits.grow(commits),
        fragments=state.fragments.grow(rendered.fragments),
        bare=state.bare.grow(rendered.bare),
        carried=state.carried.grow(rendered.carried),
        system=state.system.grow(rendered.system),
        decisions=state.decisions.grow(rendered.decisions),
        pending=tuple(pending),
        tools=grouper.tools,
        sums=_add(state.sums, rendered.sums),
        calibration=calibration,
    )


def _settled(turns: list[Turn], keep_last: int | None) -> int:
    """How many leading turns can no longer change: finished, and out of reach of ``keepLast``."""
    finished = len(turns) if turns and turns[-1].state is not None else max(len(turns) - 1, 0)
    # The last finished turn stays: late results and usage may still belong to it.
    finished = max(finished - 1, 0)
    if not keep_last:
        return finished
    seen = 0
    for at in range(len(turns) - 1, -1, -1):
        if at < finished and seen >= keep_last:
            return at + 1
        if at < finished or turns[at].state is not None or at < len(turns) - 1:
            seen += sum(1 for unit in turns[at].responses if unit.thoughts)
    return 0


def _kept(turns: Sequence[Turn], keep_last: int | None) -> set[str] | None:
    """Ids of the last responses with reasoning among finished turns; ``None``: all keep it."""
    if keep_last is None:
        return None
    ids = [unit.commit.hash for turn in turns for unit in turn.responses if unit.thoughts]
    return set(ids[len(ids) - keep_last :]) if keep_last else set()


def _render_turn(
    turn: Turn,
    out: Rendered,
    policy: Policy,
    invalid: frozenset[str],
    writer: Writer,
    *,
    is_open: bool,
    kept: set[str] | None,
) -> None:
    limited = kept is None and policy.keep_last is not None
    for unit in turn.units:
        if type(unit) is MessageUnit:
            fragment = writer.message(unit.role, unit.message)  # type: ignore[arg-type]
            out.fragments.append(fragment)
            (out.system if unit.role == "system" else out.bare).append(fragment)
            out.sums = _add(out.sums, Sums(len(unit.message.text), 0, len(unit.message.text), 0))
        elif type(unit) is ResponseUnit:
            stripped = not is_open and (limited or (kept is not None and unit.commit.hash not in kept))
            _render_response(unit, turn, Place(is_open, turn.used_tools, stripped), out, policy, invalid, writer)


def _render_response(
    unit: ResponseUnit,
    turn: Turn,
    place: Place,
    out: Rendered,
    policy: Policy,
    invalid: frozenset[str],
    writer: Writer,
) -> None:
    choice = decide(unit, turn, place, policy, invalid)
    reasoning, other = characters_of(unit)
    results = [] if choice.withheld else _answers(unit)
    answered = sum(len(result.content) for result in results)
    out.off = out.off or choice.off
    if choice.withheld:
        out.decisions += choice.decisions
        out.sums = _add(out.sums, Sums(reasoning + other, reasoning, 0, 0))
        return
    at = out.base + len(out.fragments)
    carry = choice.carry
    out.decisions += [
        decision if decision.action == "drop" else msgspec.structs.replace(decision, message=at)
        for decision in choice.decisions
    ]
    fragment = writer.assistant(unit.header, unit.blocks, carry)
    bare = fragment if carry == NOTHING else writer.assistant(unit.header, unit.blocks, NOTHING)
    sent = max(len(fragment) - len(bare), 0)
    out.fragments.append(fragment)
    out.bare.append(bare)
    if carry != NOTHING:
        out.carried.append(fragment)
    for result in results:
        fragment = writer.tool_result(result)
        out.fragments.append(fragment)
        out.bare.append(fragment)
    carried = min(sent, reasoning) if reasoning else sent
    out.sums = _add(out.sums, Sums(reasoning + other + answered, reasoning, other + answered + carried, carried))


def _answers(unit: ResponseUnit) -> list[ToolResult]:
    """One result per call, in the order of the calls; a call without one is told so."""
    given = {result.id: result for result in unit.results}
    return [
        given.get(call.id) or ToolResult(call.id, "This call was interrupted; it has no result.", status="interrupted")
        for call in unit.calls
    ]


def _add(one: Sums, other: Sums) -> Sums:
    return Sums(
        one.raw + other.raw,
        one.raw_reasoning + other.raw_reasoning,
        one.sent + other.sent,
        one.sent_reasoning + other.sent_reasoning,
    )


class Request:
    """The next request as pieces: settled bytes shared with the state, and those of the turns still open."""

    def __init__(self, state: State, writer: Writer) -> None:
        self.state = state
        self._tail = self._render_pending(state, writer)
        self.off = self._tail.off

    def _render_pending(self, state: State, writer: Writer) -> Rendered:
        out = Rendered(base=len(state.fragments))
        turns = state.pending
        finished = [turn for at, turn in enumerate(turns) if turn.state is not None or at < len(turns) - 1]
        kept = _kept(finished, state.policy.keep_last)
        for at, turn in enumerate(turns):
            is_open = turn.state is None and at == len(turns) - 1
            _render_turn(turn, out, state.policy, state.invalid, writer, is_open=is_open, kept=kept)
        return out

    def fragments(self) -> Iterator[bytes]:
        """The messages in order."""
        yield from self.state.fragments
        yield from self._tail.fragments

    def body(self, writer: Writer, end: bytes) -> Iterator[bytes]:
        """The pieces of the request body."""
        yield writer.start
        separator = b""
        for fragment in self.fragments():
            yield separator + fragment
            separator = writer.separator
        yield end

    def digests(self, writer: Writer, end: bytes, tools: Sequence[Tool]) -> Digests:
        """Digests for the request record; of what is settled only the new part is hashed."""
        tail = self._tail
        sent = self.state.fragments.hasher(writer.start, writer.separator)
        sent.update(writer.separator.join(tail.fragments))
        if tail.fragments or not self.state.fragments.length:
            sent.update(end)
        else:  # the settled part ended with a separator that the body does not have
            sent = hashlib.sha256(b"".join(self.body(writer, end)))
        return Digests(
            system=self._digest(self.state.system, tail.system),
            tools=hashlib.sha256(canonical.encode(tuple(tools))).hexdigest(),
            messages=self._digest(self.state.bare, tail.bare),
            carriers=self._digest(self.state.carried, tail.carried),
            sent=sent.hexdigest(),
        )

    @staticmethod
    def _digest(settled: Grown[bytes], tail: Iterable[bytes]) -> str:
        hasher = settled.hasher(b"", b"\n")
        for item in tail:
            hasher.update(item)
            hasher.update(b"\n")
        return hasher.hexdigest()

    def decisions(self) -> list[Decision]:
        """Every decision, in order of the log; ``message`` is the index in the message array."""
        return [*self.state.decisions, *self._tail.decisions]

    def __len__(self) -> int:
        return len(self.state.fragments) + len(self._tail.fragments)

    def counts(self) -> Counts:
        """Estimated tokens, stored and sent."""
        sums, known = _add(self.state.sums, self._tail.sums), self.state.calibration
        inside = self.state.policy.rule.reasoning_tokens != "added"
        for turn in self.state.pending:
            for unit in turn.responses:
                known = observe(known, unit, inside)
        reasoning = known.reasoning(sums.sent_reasoning)
        return Counts(
            raw=round(known.other(sums.raw - sums.raw_reasoning) + known.reasoning(sums.raw_reasoning)),
            effective=round(known.other(sums.sent - sums.sent_reasoning) + reasoning),
            effective_reasoning=round(reasoning),
            limit=self.state.inputs.target.info.context,
            calibrated=known.reasoning_tokens >= 50 or known.other_tokens >= 50,
        )


def added_params(policy: Policy, off: bool) -> dict[str, Any]:
    """Parameters that go along with what is sent: the retention switch, or thinking off for this turn."""
    params: dict[str, Any] = {}
    if policy.rule.keep_switch is not None and policy.thinking and policy.keeps_later():
        params = merge(params, policy.rule.keep_switch.params)
    if "server_drop" in policy.repaired and policy.rule.server_drop is not None:
        params = merge(params, policy.rule.server_drop.params)
    return merge(params, policy.rule.thinking_off) if off else params

