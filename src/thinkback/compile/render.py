"""Turns to the messages of a request, with what is decided and counted about them on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container
from typing import NamedTuple, TypeAlias

from thinkback.compile.counts import NO_REPORT, Report, Sizes, Tally, report_of, size_of
from thinkback.compile.decide import decide, withhold
from thinkback.compile.notes import Notes, opaque_values
from thinkback.compile.policy import Policy
from thinkback.compile.units import MessageUnit, ResponseUnit, Turn
from thinkback.model.blocks import Block, ToolResult
from thinkback.model.commits import Response
from thinkback.model.plan import NOTHING, Writer
from thinkback.model.target import Decision

INTERRUPTED = "This call was interrupted; it has no result."

# A message without its reasoning: its bytes, or what they are written from; only digests need them.
Bare: TypeAlias = bytes | tuple[Response, tuple[Block, ...]]
# The place of a response (the values of a ``Place``), the index of its message, its opaque values that went out before.
Key: TypeAlias = tuple[tuple[bool, ...], int, tuple[str, ...]]


class Rendition(NamedTuple):
    """What a response was rendered to: its message and those of its results (none where it is withheld).

    It holds as long as ``key`` does.
    """

    key: Key
    fragments: tuple[bytes, ...]
    bare: Bare
    decisions: list[Decision]
    opaque: list[str]
    off: bool
    sizes: Sizes
    report: Report


class Rendering:
    """The messages of some turns, in order, that follow ``base`` others; ``sent`` are the opaque values before them."""

    def __init__(
        self, policy: Policy, invalid: frozenset[str], writer: Writer, base: int = 0, sent: Container[str] = ()
    ) -> None:
        self._policy = policy
        self._invalid = invalid
        self._writer = writer
        self._base = base
        self._sent = sent
        self.fragments: list[bytes] = []
        self.bare: list[Bare] = []
        self.carried: list[bytes] = []
        self.system: list[bytes] = []
        self.decisions: list[Decision] = []
        self.opaque: dict[str, None] = {}
        self.tally = Tally()
        self.off = False

    def add(self, turn: Turn, *, is_open: bool, kept: Collection[str] | None) -> None:
        """One more turn; ``kept`` are the responses that ``keepLast`` leaves their reasoning, ``None`` for all."""
        units = turn.units
        used_tools = turn.used_tools
        last = units[-1]
        for unit in units:
            if isinstance(unit, MessageUnit):
                self._add_message(unit)
            else:
                stripped = kept is not None and not is_open and unit.hash not in kept
                self._add_response(unit, (is_open, used_tools, stripped, unit is not last, unit.calls != ()))

    def _add_message(self, unit: MessageUnit) -> None:
        fragment = unit.fragment
        if fragment is None:
            fragment = unit.fragment = self._writer.message(unit.role, unit.message)
        self.fragments.append(fragment)
        (self.system if unit.role == "system" else self.bare).append(fragment)
        tally, size = self.tally, len(unit.message.text)
        tally.raw += size
        tally.sent += size

    def _add_response(self, unit: ResponseUnit, place: tuple[bool, ...]) -> None:
        at = self._base + len(self.fragments)
        key: Key = (place, at, self._repeated(unit))
        rendition = unit.memo
        if rendition is None or rendition.key != key:
            rendition = unit.memo = self._render(unit, key)
        _, fragments, bare, decisions, opaque, off, sizes, report = rendition
        if fragments:
            self.fragments += fragments
            self.bare.append(bare)
            if bare is not fragments[0]:
                self.carried.append(fragments[0])
            if len(fragments) > 1:
                self.bare += fragments[1:]
        self.decisions += decisions
        if opaque:
            self.opaque.update(dict.fromkeys(opaque))
        self.off = self.off or off
        self.tally.add(sizes, report)

    def _repeated(self, unit: ResponseUnit) -> tuple[str, ...]:
        """The opaque values of a response that went out before it."""
        if not unit.opaque:
            return ()
        values = opaque_values(unit.opaque)
        return tuple([value for value in values if value in self._sent or value in self.opaque])

    def _render(self, unit: ResponseUnit, key: Key) -> Rendition:
        policy = self._policy
        place, at, repeated = key
        notes = Notes(policy, at)
        size = reasoning, other, _ = size_of(unit)
        raw = reasoning + other
        if unit.results:
            raw += sum(len(result.content) for result in unit.results)
        report = NO_REPORT
        if unit.usage is not None and policy.calibrates(unit.header.origin):
            report = report_of(unit, size, policy.rule.reasoning_tokens)
        withheld = unit.withheld
        if withheld:
            withhold(unit, withheld, notes)
            return Rendition(key, (), b"", notes.decisions, [], False, (raw, reasoning, 0, 0), report)
        choice = decide(unit, policy.stance(place), policy, self._invalid, repeated, notes)
        if len(unit.thoughts) + len(unit.others) > 1:
            notes.sort(unit)
        message = self._writer.assistant(unit.header, choice.blocks, choice.carry)
        bare: Bare = message if choice.carry is NOTHING else (unit.header, choice.blocks)
        fragments: tuple[bytes, ...] = (message,)
        answered = 0
        if unit.calls:
            results = answers_of(unit)
            fragments = (message, *map(self._writer.tool_result, results))
            answered = sum(len(result.content) for result in results)
        sizes = (raw, reasoning, other + answered + notes.characters, notes.characters)
        return Rendition(key, fragments, bare, notes.decisions, notes.opaque, choice.off, sizes, report)


def answers_of(unit: ResponseUnit) -> list[ToolResult]:
    """One result per call, in the order of the calls, the last that was given; a call without one is told so.

    Where several calls share an id (hosts that give none), their results are taken in order.
    """
    given: dict[str, list[ToolResult]] = {}
    for result in unit.results:
        given.setdefault(result.id, []).append(result)
    sharing = Counter(call.id for call in unit.calls)
    answers: list[ToolResult] = []
    for call in unit.calls:
        results = given.get(call.id)
        if not results:
            answers.append(ToolResult(call.id, INTERRUPTED, call.name, status="interrupted"))
        else:
            answers.append(results.pop(0) if sharing[call.id] > 1 else results[-1])
    return answers
