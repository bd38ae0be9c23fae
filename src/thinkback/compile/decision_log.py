"""The decisions about one response: what became of each reasoning text and each carrier of it, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from thinkback.compile.counts import weight_of
from thinkback.compile.pieces import Piece
from thinkback.compile.policy import Policy
from thinkback.compile.units import Away, ResponseUnit
from thinkback.model.blocks import (
    Block,
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
_NO_PARTS: Mapping[str, int] = {}


class DecisionLog:
    """The decisions about one response, for the message at index ``at``.

    ``opaque`` are the values that go out, ``characters`` the size of the reasoning that does. ``void`` is why no
    carrier of it may go. By commit hash, ``parts`` are where among the blocks of the message those stand that go in
    their place, and ``remarks`` are made beside the reason why a block goes.
    """

    __slots__ = ("at", "characters", "decisions", "guessed", "opaque", "parts", "remarks", "rule", "void")

    def __init__(
        self,
        policy: Policy,
        at: int,
        void: str = "",
        remarks: Mapping[str, str] = _NO_REMARKS,
        parts: Mapping[str, int] = _NO_PARTS,
    ) -> None:
        self.rule = policy.rule.id
        self.guessed = policy.target.guessed
        self.at = at
        self.void = void
        self.remarks = remarks
        self.parts = parts
        self.decisions: list[Decision] = []
        self.opaque: list[str] = []
        self.characters = 0

    def enter(self, pieces: Iterable[Piece]) -> None:
        """What became of ``pieces``, in their order."""
        for piece in pieces:
            block = piece.block
            if type(block) is ThinkingBlock:
                self._thought(piece, block)
            elif block is None:
                self._stand_in(piece)
            elif block.carriers or piece.reason:
                self._beside(piece, block)

    def _thought(self, piece: Piece, block: ThinkingBlock) -> None:
        state, hash, reason = piece.action, piece.hash, piece.reason
        carries = block.signature != "" or block.carriers != ()
        if state != "drop":
            self.characters += weight_of(block) if state == "native" else len(block.thought)
        if block.thought or not carries:
            self._add(state, "reasoning", hash, reason, len(block.thought))
        for carrier in carriers_of(block) if carries else ():
            if state == "native":
                self._add("native", carrier.kind, hash, reason)
                self.opaque += opaque_values((carrier,))
            else:
                self._add("drop", carrier.kind, hash, self.void or (reason if state == "drop" else piece.beside))

    def _beside(self, piece: Piece, block: Block) -> None:
        """A block that is no reasoning; an item that nobody else can read stays away with the first of its carriers."""
        lost = ""
        for carrier, against in zip(block.carriers, piece.away, strict=True):
            if not against:
                self._add("native", carrier.kind, piece.hash, f"goes back inside its block (rule {self.rule})")
                self.opaque += opaque_values((carrier,))
                continue
            if not lost:
                self._item(piece.hash, block, against)
            lost = lost or against
            self._add("drop", carrier.kind, piece.hash, self.void or against)
        if not block.carriers:
            self._item(piece.hash, block, piece.reason)

    def _item(self, hash: str, block: Block, reason: str) -> None:
        if isinstance(block, Unknown | Media):
            self._add("drop", "text", hash, reason, len(block.wire))

    def _stand_in(self, piece: Piece) -> None:
        """Something goes out, or is done, that is no block of the log."""
        self.characters += len(piece.text)
        what: What = "thought_signature" if piece.state == "dummy" else "reasoning"
        self._add(piece.action, what, "", piece.reason, len(piece.text))

    def withhold(self, unit: ResponseUnit, reason: str) -> None:
        """Nothing of a response goes along."""
        if unit.changes is not None:
            self.taken_away((*unit.changes.away, *unit.changes.edited.values()))
        others: list[tuple[str, Block]] = []
        for hash, block in zip(unit.hashes, unit.blocks, strict=True):
            if not isinstance(block, ThinkingBlock):
                others.append((hash, block))
                continue
            if block.thought or not (block.signature or block.carriers):
                self._add("drop", "reasoning", hash, reason, len(block.thought))
            for carrier in carriers_of(block):
                self._add("drop", carrier.kind, hash, reason)
        for hash, block in others:
            self._item(hash, block, reason)
            for carrier in block.carriers:
                self._add("drop", carrier.kind, hash, reason)

    def taken_away(self, blocks: Iterable[Away]) -> None:
        """Blocks of the log do not go, or go in other words; what they carry does not."""
        for away in blocks:
            block = away.block
            if not away.edited:
                said = block.text if isinstance(block, Text) else block.arguments if isinstance(block, ToolCall) else ""
                self._add("drop", "text", away.hash, away.reason, len(said))
            for carrier in carriers_of(block):
                self._add("drop", carrier.kind, away.hash, away.reason)

    def flatten(self, hash: str, reason: str, characters: int) -> None:
        """A response goes out as text in the user's words."""
        self._add("text", "text", hash, reason, characters)

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

    def sort(self, hashes: Sequence[str]) -> None:
        """Put the decisions in the order of the blocks they are about; those about none come last."""
        place = {hash: number for number, hash in enumerate(hashes)}
        self.decisions.sort(key=lambda decision: place.get(decision.block, len(place)))

    def _add(self, action: DecisionAction, what: What, hash: str, reason: str, characters: int = 0) -> None:
        if action == "drop":
            made = Decision("drop", what, hash, self.rule, reason, characters=characters, guessed=self.guessed)
        else:
            reason += self.remarks.get(hash, "")
            part = self.parts.get(hash, -1)
            made = Decision(action, what, hash, self.rule, reason, self.at, part, characters, self.guessed)
        self.decisions.append(made)
