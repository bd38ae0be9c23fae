"""The decisions of one response in the making: what was done with each reasoning text and each carrier, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from thinkback.compile.counts import weight_of
from thinkback.compile.policy import Policy
from thinkback.compile.units import Away, ResponseUnit
from thinkback.model.blocks import (
    Block,
    Carrier,
    CarrierKind,
    Media,
    Text,
    ThinkingBlock,
    ToolCall,
    Unknown,
    carriers_of,
    opaque_values,
)
from thinkback.model.target import Decision, DecisionAction

What: TypeAlias = Literal["reasoning", "text"] | CarrierKind


_NO_REMARKS: Mapping[str, str] = {}


class Notes:
    """Collects decisions for the message at index ``at``.

    ``opaque`` are the values that go out, ``characters`` the size of the reasoning that does. ``others`` are the blocks
    that carry something and are no reasoning, as they are written. ``void`` is why no carrier of the response may go,
    ``remarks`` are said beside the reason why a block goes, by commit hash.
    """

    __slots__ = ("at", "characters", "decisions", "guessed", "opaque", "others", "remarks", "rule", "void")

    def __init__(self, policy: Policy, at: int) -> None:
        self.at = at
        self.rule = policy.rule.id
        self.guessed = policy.target.guessed
        self.decisions: list[Decision] = []
        self.opaque: list[str] = []
        self.others: dict[str, Block] = {}
        self.remarks: Mapping[str, str] = _NO_REMARKS
        self.void = ""
        self.characters = 0

    def text(self, action: DecisionAction, hash: str, block: ThinkingBlock, reason: str, beside: str) -> None:
        """The readable text goes out; its carriers do not, for the reason ``beside``."""
        self.characters += len(block.thought)
        if block.thought or not (block.signature or block.carriers):
            self._add(action, "reasoning", hash, reason, len(block.thought))
        self.drop_carriers(hash, block, beside)

    def native(self, hash: str, block: ThinkingBlock, reason: str) -> None:
        """Text and carriers go out as they came."""
        self.characters += weight_of(block)
        if block.thought or not (block.signature or block.carriers):
            self._add("native", "reasoning", hash, reason, len(block.thought))
        for carrier in carriers_of(block):
            self.carrier(hash, carrier, reason)

    def drop(self, hash: str, block: ThinkingBlock, reason: str) -> None:
        """Neither goes out."""
        if block.thought or not (block.signature or block.carriers):
            self._add("drop", "reasoning", hash, reason, len(block.thought))
        self.drop_carriers(hash, block, reason)

    def carrier(self, hash: str, carrier: Carrier, reason: str) -> None:
        """One carrier goes out."""
        self._add("native", carrier.kind, hash, reason)
        self.opaque += opaque_values((carrier,))

    def drop_carriers(self, hash: str, block: Block, reason: str) -> None:
        """The carriers of ``block`` stay away."""
        if isinstance(block, ThinkingBlock) and not (block.signature or block.carriers):
            return
        for carrier in carriers_of(block):
            self._add("drop", carrier.kind, hash, self.void or reason)

    def drop_carrier(self, hash: str, carrier: Carrier, reason: str) -> None:
        """One carrier stays away."""
        self._add("drop", carrier.kind, hash, self.void or reason)

    def away(self, away: Away) -> None:
        """A block of the log does not go, or goes in other words; what it carries does not."""
        block = away.block
        if not away.edited:
            said = block.text if isinstance(block, Text) else block.arguments if isinstance(block, ToolCall) else ""
            self._add("drop", "text", away.hash, away.reason, len(said))
        for carrier in carriers_of(block):
            self._add("drop", carrier.kind, away.hash, away.reason)

    def drop_other(self, hash: str, block: Block, reason: str) -> None:
        """An item that nobody else can read stays away; its carriers are told apart."""
        if isinstance(block, Unknown | Media):
            self._add("drop", "text", hash, reason, len(block.wire))

    def flat(self, hash: str, reason: str, characters: int) -> None:
        """A response goes out as text in the user's words."""
        self._add("text", "text", hash, reason, characters)

    def dummy(self, reason: str) -> None:
        """A documented stand-in for a signature goes out."""
        self._add("dummy", "thought_signature", "", reason)

    def stand_in(self, action: DecisionAction, reason: str, characters: int) -> None:
        """Something goes out, or is done, that is no block of the log."""
        self.characters += characters
        self._add(action, "reasoning", "", reason, characters)

    def take_back(self, reason: str) -> None:
        """The dialect has no message for what was decided, so nothing of it goes out."""
        self.decisions = [
            decision
            if decision.action == "drop"
            else msgspec.structs.replace(decision, action="drop", reason=reason, message=-1, part=-1)
            for decision in self.decisions
            if decision.block or decision.action == "drop"
        ]
        self.opaque, self.characters = [], 0

    def place(self, thoughts: Iterable[tuple[str, Block]], blocks: Sequence[Block]) -> None:
        """Say where among ``blocks`` that stands which goes out in its place."""
        at = {id(block): number for number, block in enumerate(blocks)}
        placed = (*thoughts, *self.others.items())
        parts = {hash: at[id(block)] for hash, block in placed if id(block) in at}
        self.decisions = [
            msgspec.structs.replace(decision, part=parts[decision.block])
            if decision.message >= 0 and decision.block in parts
            else decision
            for decision in self.decisions
        ]

    def sort(self, unit: ResponseUnit) -> None:
        """Put the decisions in the order of the blocks they are about; those about none come last."""
        if unit.changes is not None:
            place = {hash: number for number, hash in enumerate(unit.changes.source.hashes)}
            last = len(place)
        else:
            at = {id(block): number for number, block in enumerate(unit.blocks)}
            place = {hash: at[id(block)] for hash, block in (*unit.thoughts, *unit.others)}
            last = len(at)
        self.decisions.sort(key=lambda decision: place.get(decision.block, last))

    def _add(self, action: DecisionAction, what: What, hash: str, reason: str, characters: int = 0) -> None:
        at = -1 if action == "drop" else self.at
        if at >= 0 and hash in self.remarks:
            reason += self.remarks[hash]
        self.decisions.append(
            Decision(action, what, hash, self.rule, reason, at, characters=characters, guessed=self.guessed)
        )
