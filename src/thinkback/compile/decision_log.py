"""The decisions about one response: what became of each reasoning text and each carrier of it, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from thinkback.compile.counts import weigh, weight_of
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
    ToolResult,
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

    ``opaque`` are the values that go out; of the reasoning that does, ``native`` is the weight of what goes as it was
    made, and ``told`` of what goes as text. ``void`` is why no
    carrier of it may go. By commit hash, ``parts`` are where among the blocks of the message those stand that go in
    their place, and ``remarks`` are made beside the reason why a block goes.
    """

    __slots__ = ("at", "decisions", "guessed", "native", "opaque", "parts", "remarks", "rule", "told", "void")

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
        self.native = self.told = 0

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
        if state == "native":
            self.native += weight_of(block)
        elif state != "drop":
            self.told += weigh(block.thought)
        if block.thought or not carries:
            self._add(state, "reasoning", hash, reason, len(block.thought), piece.cause)
        for carrier in carriers_of(block) if carries else ():
            if state == "native":
                self._add("native", carrier.kind, hash, reason)
                self.opaque += opaque_values((carrier,))
            else:
                why = self.void or (reason if state == "drop" else piece.beside)
                self._add("drop", carrier.kind, hash, why, cause=piece.cause)

    def stand_in_results(self, results: Iterable[ToolResult], reason: str) -> None:
        """``results`` stand in for results that nobody gave; ``reason`` has a place for the id of the call."""
        for result in results:
            self._add("text", "text", "", reason.format(result.id), len(result.content))

    def tell(self, hash: str, reason: str) -> None:
        """Something that is neither reasoning nor a carrier is not as it was for ``reason``."""
        self._add("text", "text", hash, reason)

    @property
    def signed(self) -> bool:
        """True if a block that is no reasoning has the signature of reasoning that goes without being there."""
        return any(one.what == "thought_signature" and one.action == "native" for one in self.decisions)

    def _beside(self, piece: Piece, block: Block) -> None:
        """A block that is no reasoning; an item that nobody else can read stays away with the first of its carriers."""
        lost = ""
        for carrier, against in zip(block.carriers, piece.away, strict=True):
            if not against:
                self._add("native", carrier.kind, piece.hash, f"goes back inside its block (rule {self.rule})")
                self.opaque += opaque_values((carrier,))
                continue
            if not lost:
                self._item(piece.hash, block, against, sent=True)
            lost = lost or against
            self._add("drop", carrier.kind, piece.hash, self.void or against)
        if not block.carriers:
            self._item(piece.hash, block, piece.reason, sent=True)

    def _item(self, hash: str, block: Block, reason: str, *, sent: bool = False) -> None:
        if isinstance(block, Unknown) and block.text and sent:
            self._add("text", "text", hash, f"its words go as text: {reason}", len(block.text))
        elif isinstance(block, Unknown | Media):
            self._add("drop", "text", hash, reason, len(block.wire))

    def _stand_in(self, piece: Piece) -> None:
        """Something goes out, or is done, that is no block of the log."""
        self.told += weigh(piece.text)
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
        self._add("text", "text", hash, reason, characters, "flatten")

    def take_back(self, reason: str) -> None:
        """The dialect has no message for what was decided, so nothing of it goes out."""
        self.decisions = [
            decision
            if decision.action == "drop"
            else msgspec.structs.replace(decision, action="drop", reason=reason, message=-1, part=-1)
            for decision in self.decisions
            if decision.block or decision.action == "drop"
        ]
        self.opaque, self.native, self.told = [], 0, 0

    def sort(self, hashes: Sequence[str]) -> None:
        """Put the decisions in the order of the blocks they are about; those about none come last."""
        place = {hash: number for number, hash in enumerate(hashes)}
        self.decisions.sort(key=lambda decision: place.get(decision.block, len(place)))

    def _add(
        self, action: DecisionAction, what: What, hash: str, reason: str, characters: int = 0, cause: str = ""
    ) -> None:
        at, part = -1, -1
        if action != "drop":
            reason += self.remarks.get(hash, "")
            at, part = self.at, self.parts.get(hash, -1)
        self.decisions.append(
            Decision(action, what, hash, self.rule, reason, at, part, characters, self.guessed, cause=cause)
        )
