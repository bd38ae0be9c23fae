"""Turns to the messages of a request, with what is decided and counted about them on the way."""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.compile import translate
from thinkback.compile.bound import NO_CHAIN, Chain, Link, Prefix
from thinkback.compile.counts import NO_REPORT, Report, Sizes, Tally, report_of, size_of
from thinkback.compile.decide import Choice, decide, withhold
from thinkback.compile.notes import Notes
from thinkback.compile.policy import Policy
from thinkback.compile.units import MessageUnit, ResponseUnit, Turn
from thinkback.errors import ReplayRefused, UnsupportedContent
from thinkback.model.blocks import Block, Text, ThinkingBlock, Unknown
from thinkback.model.commits import Response
from thinkback.model.plan import NOTHING, Writer
from thinkback.model.target import Decision

# A message without its reasoning: its bytes, or what they are written from; only digests need them.
Bare: TypeAlias = bytes | tuple[Response, tuple[Block, ...]]
# The place of a response (the values of a ``Place``), the index of its message, its opaque values that went out
# before, and why what is bound to a prefix must stay away.
Key: TypeAlias = tuple[tuple[bool, ...], int, tuple[str, ...], str]

_ALONE = "its response says nothing else, and the dialect has no message for reasoning alone"


class Rendition(NamedTuple):
    """What a response was rendered to: its message or items, and those of its results (none where it is withheld).

    It holds as long as ``key`` does.
    """

    key: Key
    message: tuple[bytes, ...]
    results: tuple[bytes, ...]
    bare: Bare
    decisions: list[Decision]
    opaque: list[str]
    link: Link
    off: bool
    sizes: Sizes
    report: Report


class Reached:
    """How far the messages are: their number, the role of the last, and how many responses came.

    ``began``: another message than a system message was among them; ``stripped``: a setting took away reasoning that
    the provider would keep. A rendering changes a copy of its own.
    """

    __slots__ = ("began", "messages", "responses", "role", "stripped")

    def __init__(self) -> None:
        self.messages = self.responses = 0
        self.role = ""
        self.began = self.stripped = False

    def copy(self) -> Reached:
        """A twin that may be changed."""
        twin = Reached()
        twin.messages, twin.responses, twin.role = self.messages, self.responses, self.role
        twin.began, twin.stripped = self.began, self.stripped
        return twin


START = Reached()


class Rendering:
    """The messages of some turns, in order, that follow those ``before``; ``sent`` are the opaque values before them.

    ``prefix`` checks what is bound to a prefix; ``anchor`` is the last response that the provider keeps, as
    (fragments up to its end, messages up to its end, its id), and ``first`` the fragment behind it where it must be
    written otherwise to begin an array.
    """

    def __init__(
        self,
        policy: Policy,
        invalid: frozenset[str],
        writer: Writer,
        before: Reached = START,
        chain: Chain = NO_CHAIN,
        sent: Container[str] = (),
        prefix: Prefix | None = None,
    ) -> None:
        self._policy = policy
        self._invalid = invalid
        self._writer = writer
        self._on_top = translate.on_top(policy.rule.system, writer)
        self._sent = sent
        self._prefix = prefix
        self.reached = before.copy()
        self.fragments: list[bytes] = []
        self.bare: list[Bare] = []
        self.carried: list[bytes] = []
        self.system: list[bytes] = []
        self.decisions: list[Decision] = []
        self.opaque: dict[str, None] = {}
        self.tally = Tally()
        self.chain = chain
        self.anchor: tuple[int, int, str] | None = None
        self.first = b""
        self.open_at = -1
        self.off = False

    @property
    def is_on_top(self) -> bool:
        """Whether ``system`` stands outside the message array."""
        return self._on_top != "inline"

    @property
    def known(self) -> int:
        """How many messages at the beginning are as they were when reasoning behind them was made."""
        return self._prefix.known if self._prefix is not None else 0

    def add(self, turn: Turn, *, is_open: bool, kept: Collection[str] | None) -> None:
        """One more turn; ``kept`` are the responses that ``keepLast`` leaves their reasoning, ``None`` for all."""
        units = turn.units
        used_tools = turn.used_tools
        last = units[-1]
        if is_open and self.open_at < 0:
            self.open_at = self.reached.messages
        for unit in units:
            if isinstance(unit, MessageUnit):
                self._add_message(unit)
            else:
                stripped = kept is not None and not is_open and unit.hash not in kept
                self._add_response(unit, (is_open, used_tools, stripped, unit is not last, unit.calls != ()))

    def _add_message(self, unit: MessageUnit) -> None:
        tally, size = self.tally, len(unit.message.text)
        tally.raw += size
        tally.sent += size
        leads = unit.role == "system" and not self.reached.began
        on_top = unit.role == "system" and (self._on_top == "top" or (self._on_top == "late" and leads))
        role: Literal["system", "user"] = unit.role
        if role == "system" and self._on_top == "lead" and not leads:
            role = "user"  # there is no place for it among the messages
        fragment = unit.fragment
        if fragment is None:
            fragment = unit.fragment = self._written(unit, role, on_top=on_top)
        if unit.left_out:
            self.decisions.append(self._left_out(unit))
        if on_top:
            self.system.append(fragment)
            return
        self._put(role, (fragment,))
        if leads:
            self.system.append(fragment)
        else:
            self.reached.began = True
            self._add_bare((fragment,))

    def _written(self, unit: MessageUnit, role: Literal["system", "user"], *, on_top: bool) -> bytes:
        """The bytes of a message; of parts that this dialect cannot take only what they were is told."""
        try:
            message = translate.message(unit.message, self._policy.target.endpoint.dialect)
            return self._writer.top(message) if on_top else self._writer.message(role, message)
        except UnsupportedContent as error:
            unit.left_out = error.message
            told = translate.described(unit.message)
            return self._writer.top(told) if on_top else self._writer.message(role, told)

    def _left_out(self, unit: MessageUnit) -> Decision:
        policy = self._policy
        reason = f"the dialect has no place for a part of this message: {unit.left_out}"
        return Decision("drop", "text", unit.hash, policy.rule.id, reason, guessed=policy.target.guessed)

    def _put(self, role: str, fragments: tuple[bytes, ...]) -> None:
        """Fragments in their place, with what a dialect of alternating roles writes before them."""
        writer, reached = self._writer, self.reached
        if not writer.alternates:
            self.fragments += fragments
            reached.messages += len(fragments)
            reached.role = role
            return
        for fragment in fragments:
            before, begun = writer.turn_over(reached.role, role)
            if self.anchor is not None and self.anchor[0] == len(self.fragments):
                self.first = writer.turn_over("", role)[0] + fragment
                # What goes on with a message that the provider keeps cannot go without it.
                self.anchor = self.anchor if begun else None
            self.fragments.append(before + fragment)
            reached.messages += begun
            reached.role = role

    def _add_bare(self, items: tuple[Bare, ...]) -> None:
        self.bare += items
        if self._prefix is not None:
            for item in items:
                self._prefix.add(bare_bytes(item, self._writer))

    def _add_response(self, unit: ResponseUnit, place: tuple[bool, ...]) -> None:
        reached = self.reached
        number = reached.responses
        at, prefix = self._next_index(), self._prefix
        bound = prefix.against(unit, number, at, self._policy) if prefix is not None else ""
        key: Key = (place, at, self._repeated(unit), bound)
        rendition = unit.memo
        if rendition is None or rendition.key != key:
            rendition = unit.memo = self._render(unit, key)
        _, message, results, bare, decisions, opaque, link, off, sizes, report = rendition
        # What the provider keeps it also reads, so what a setting takes away it must not keep.
        reached.stripped = reached.stripped or self._is_stripped(unit, place)
        is_kept = prefix is not None and not reached.stripped and prefix.is_kept(unit, self._policy)
        if message:
            self._put("assistant", message)
            self._add_bare((bare,) if bare != b"" else ())
            if bare is not message[0]:
                self.carried += message
            if is_kept:
                self.anchor = len(self.fragments), reached.messages, unit.header.id
            if results:
                self._put("tool", results)
                self._add_bare(results)
        if link:
            self.chain = self.chain.add(number, link)
        reached.responses = number + 1
        reached.began = True
        self.decisions += decisions
        if opaque:
            self.opaque.update(dict.fromkeys(opaque))
        self.off = self.off or off
        self.tally.add(sizes, report)

    def _is_stripped(self, unit: ResponseUnit, place: tuple[bool, ...]) -> bool:
        policy = self._policy
        if policy.server is None or not unit.thoughts or not policy.stance(place).against:
            return False
        return policy.verdict(unit.header.origin).carriers

    def _next_index(self) -> int:
        """The index of the message that a response begins, or goes on with."""
        reached = self.reached
        if not self._writer.alternates:
            return reached.messages
        return reached.messages + self._writer.turn_over(reached.role, "assistant")[1] - 1

    def _repeated(self, unit: ResponseUnit) -> tuple[str, ...]:
        """The opaque values of a response that went out before it."""
        if not unit.opaque:
            return ()
        return tuple([value for value in unit.opaque if value in self._sent or value in self.opaque])

    def _render(self, unit: ResponseUnit, key: Key) -> Rendition:
        policy = self._policy
        place, at, repeated, bound = key
        notes = Notes(policy, at)
        size = reasoning, other, _ = size_of(unit)
        raw = reasoning + other
        if unit.results:
            raw += sum(len(result.content) for result in unit.results)
        report = NO_REPORT
        if unit.usage is not None and policy.calibrates(unit.header.origin):
            report = report_of(unit, size, policy.rule.reasoning_tokens)
        withheld = unit.withheld or self._unsaid(unit)
        if withheld:
            withhold(unit, withheld, notes)
            return Rendition(key, (), (), b"", notes.decisions, [], "", False, (raw, reasoning, 0, 0), report)
        if policy.strict and policy.conflicts(place):
            raise ReplayRefused(
                f"reasoning.strict sends nothing, and {policy.target.endpoint.id} demands reasoning back",
                details={"rule": policy.rule.id, "model": policy.target.model},
                next_actions=("set reasoning.strict to false", "or go on with a model that demands none"),
            )
        choice = decide(unit, policy.stance(place), policy, self._invalid, repeated, notes, bound)
        if len(unit.thoughts) + len(unit.others) > 1:
            notes.sort(unit)
        message = self._writer.assistant(unit.header, choice.blocks, choice.carry)
        if not message:
            notes.take_back(_ALONE)
        if any(decision.part >= 0 for decision in notes.decisions):
            written = Written(self._writer, unit.header, choice, message)
            notes.decisions = [written.placed(decision) for decision in notes.decisions]
        plain = choice.carry is NOTHING and not (policy.form == "native" and unit.thoughts)
        bare: Bare = message[0] if plain and len(message) == 1 else (unit.header, _without_thoughts(choice.blocks))
        results: tuple[bytes, ...] = ()
        answered = 0
        if unit.calls:
            answers = translate.answers(unit, choice.calls, policy.target.endpoint.dialect)
            results = self._writer.results(answers)
            answered = sum(len(result.content) for result in answers)
        sizes = (raw, reasoning, other + answered + notes.characters, notes.characters)
        link: Link = choice.link if message else ""
        off = choice.off
        return Rendition(key, message, results, bare, notes.decisions, notes.opaque, link, off, sizes, report)

    def _unsaid(self, unit: ResponseUnit) -> str:
        """Why nothing stands for a response of reasoning alone that another model gave; empty where something does."""
        if unit.calls or not unit.thoughts or self._policy.settings.foreign != "drop":
            return ""
        if any(map(_says, unit.blocks)):
            return ""
        verdict = self._policy.verdict(unit.header.origin)
        return "" if verdict.text or verdict.carriers else verdict.reason


class Written(NamedTuple):
    """A response as it was written: ``message`` is what the writer made of the blocks."""

    writer: Writer
    header: Response
    choice: Choice
    message: tuple[bytes, ...]

    def placed(self, decision: Decision) -> Decision:
        """Where the block of ``decision`` stands: writers leave empty texts out and put neighbours together."""
        if decision.part < 0:
            return decision
        blocks, part = self.choice.blocks, decision.part
        if len(self.message) == 1:
            left_out = sum(self._is_left_out(at) for at in range(part))
            return msgspec.structs.replace(decision, part=part - left_out)
        # Where each block is an item of the array, the item's index says it all.
        item = part if len(self.message) == len(blocks) else len(self._write(blocks[: part + 1])) - 1
        return msgspec.structs.replace(decision, message=decision.message + item, part=-1)

    def _is_left_out(self, at: int) -> bool:
        blocks = self.choice.blocks
        block = blocks[at]
        is_empty = isinstance(block, Text) and not block.text
        return is_empty and self._write((*blocks[:at], *blocks[at + 1 :])) == self.message

    def _write(self, blocks: tuple[Block, ...]) -> tuple[bytes, ...]:
        return self.writer.assistant(self.header, blocks, self.choice.carry)


def _says(block: Block) -> bool:
    """Whether a block tells another model anything."""
    if isinstance(block, Text):
        return bool(block.text.strip())
    return not isinstance(block, ThinkingBlock | Unknown)


def bare_bytes(item: Bare, writer: Writer) -> bytes:
    """The bytes of a message without its reasoning."""
    return item if isinstance(item, bytes) else b"\n".join(writer.assistant(*item, NOTHING))


def _without_thoughts(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """What is left without reasoning, and without what ties it to its place."""
    left = (block for block in blocks if not isinstance(block, ThinkingBlock))
    return tuple(msgspec.structs.replace(block, carriers=()) if block.carriers else block for block in left)
