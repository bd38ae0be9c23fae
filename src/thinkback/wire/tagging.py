"""Reasoning between tags in the texts of a response, for dialects whose readers know each text as one block.

Promises: the same slices whole and at any cut; what is shown while it comes has the indexes that the blocks have in
the end. Tags are looked for in all texts of a message as a whole, as a model wrote it: no tag is put together from two
texts, but reasoning whose tag is not closed goes on in the next. Where reasoning comes in a place of its own, a closing
tag alone is a slip of the model and stays text.
Must not: know dialects.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Protocol, assert_never

import msgspec

from thinkback.model.blocks import Block, Text, ThinkingBlock
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, Status, TextDelta
from thinkback.model.slices import CONTENT, sliced
from thinkback.model.think_tags import TagSegment, TagSplitter, Where, is_plain
from thinkback.wire.block_accumulator import join, join_thought
from thinkback.wire.placeholders import Placeholders, marked

_index = attrgetter("index")


class _Begun(Protocol):
    def block(self) -> Block: ...


class _Slice:
    """A slice of a text, or any other block: then it stays without pieces.

    ``thinks``: tags make it reasoning; ``shown``: it was shown as text before.
    """

    __slots__ = ("at", "closed", "closing", "inner", "opening", "pieces", "shown", "thinks")

    def __init__(self, at: int) -> None:
        self.at = at
        self.pieces: list[str] = []
        self.thinks = self.closed = self.shown = False
        self.opening = self.closing = ""
        self.inner: list[tuple[int, str]] = []

    def block(self) -> Text | ThinkingBlock:
        if self.thinks:
            thought, inner = join_thought(self.pieces, self.inner)
            block = ThinkingBlock(
                thought, source_field=CONTENT, opening=self.opening, closing=self.closing, inner=inner
            )
            return block if self.shown else marked(block)
        return Text(join(self.pieces))


class Tagging:
    """Give it the deltas of a response; ``begun`` are the parts that the reader has begun, by their indexes."""

    def __init__(self, where: Where, begun: Sequence[_Begun], response: str = "") -> None:
        self.where = where
        self._tags = TagSplitter(where)
        self._placeholders = Placeholders()
        self._begun = begun
        self._response = response
        # The slices of each block that has begun, in order.
        self._slices: list[list[_Slice]] = []
        self._count = 0
        self._text = -1
        self._deltas: list[Delta] = []

    def show(self, deltas: list[Delta]) -> list[Delta]:
        """``deltas`` as they are to be shown."""
        self._deltas = []
        if not deltas:
            return self._deltas
        first: int = _index(deltas[0])
        if first >= len(self._slices):
            self._reach(first)
        if self._text < 0:
            if self._pass(deltas):
                self._deltas += deltas
                return self._deltas
        elif first == self._text:
            texts = [delta.text for delta in deltas if type(delta) is TextDelta and delta.index == first]
            if len(texts) == len(deltas):
                self._show(deltas, texts)
                return self._deltas
        for index, of_one in groupby(deltas, _index):
            if index >= len(self._slices):
                self._reach(index)
            for _, alike in groupby(of_one, type):
                run = list(alike)
                self._show(run, [delta.text for delta in run if type(delta) is TextDelta])
        return self._deltas

    def _pass(self, deltas: list[Delta]) -> bool:
        """Whether ``deltas``, which no text is under way before, are of known blocks and none of them is text."""
        known = len(self._slices)
        if self._count != known or (len(self._begun) != known and max(map(_index, deltas)) >= known):
            return False
        return TextDelta not in map(type, deltas)

    def _show(self, run: list[Delta], texts: list[str]) -> None:
        """Show deltas of one block, all of them text or none: as they are, but for those where a tag may be."""
        doubtful = self._tags.doubtful(texts)
        if not doubtful and self._flows(run[0]):
            self._go_by(run, texts)
            return
        for start, end in pairwise((0, *doubtful, len(run))):
            at = start
            while at < end and ((at == start and doubtful) or not self._flows(run[at])):
                self._show_one(run[at])
                at += 1
            self._go_by(run[at:end], texts[at:end])

    def _go_by(self, run: list[Delta], texts: list[str]) -> None:
        """Show a part of a run as it is."""
        if texts:
            self._slices[self._text][-1].pieces.append(self._tags.go_by(texts))
        self._deltas += run

    def _flows(self, delta: Delta) -> bool:
        """Whether ``delta``, without a doubt about it, is shown as it is: each block has one slice, at its index."""
        if self._count != len(self._slices):
            return False
        if type(delta) is not TextDelta:
            return self._text < 0
        return delta.index == self._text and self._tags.flows and not self._slices[self._text][-1].thinks

    def _show_one(self, delta: Delta) -> None:
        assert not isinstance(delta, Status)  # of a turn, never of a response
        if isinstance(delta, TextDelta):
            self._show_text(delta)
        else:
            self.end()
            at = self._slices[delta.index][-1].at
            self._deltas.append(delta if at == delta.index else msgspec.structs.replace(delta, index=at))

    def end(self) -> list[Delta]:
        """The text under way has ended: what was held back of it is shown."""
        index, self._text = self._text, -1
        if index >= 0:
            for piece in self._tags.close():
                self._take(index, piece)
            self._deltas += self._placeholders.rest()
        return self._deltas

    def slices(self, index: int) -> list[_Slice]:
        """What has come of the block at ``index``; its last slice is text."""
        return self._slices[index]

    @property
    def finds(self) -> bool:
        """Whether any text had reasoning in it."""
        return any(part.thinks for slices in self._slices for part in slices)

    def _show_text(self, delta: TextDelta) -> None:
        index, text = delta.index, delta.text
        if index != self._text:
            self.end()
            self._text = index
        for piece in self._tags.feed(text):
            self._take(index, piece)

    def _reach(self, index: int) -> None:
        """The blocks up to ``index`` have begun; what ended in reasoning is ended by an empty text."""
        self.end()
        while len(self._slices) <= index:
            self.finish()
            self._slices.append([self._new()])

    def finish(self) -> None:
        """The last block has all it will have."""
        if self._slices and self._slices[-1][-1].thinks:
            self._slices[-1].append(self._new())

    def _new(self) -> _Slice:
        made = _Slice(self._count)
        self._count += 1
        return made

    def _take(self, index: int, piece: TagSegment) -> None:
        if piece.kind not in ("reasoning", "inner"):
            self._deltas += self._placeholders.rest()
        match piece.kind:
            case "text":
                part = self._visible(index)
                part.pieces.append(piece.text)
                self._deltas.append(TextDelta(piece.text, part.at, self._response))
            case "open":
                part = self._visible(index)
                if part.pieces:
                    part = self._add(index)
                part.thinks, part.opening = True, piece.text
            case "reasoning":
                part = self._thought(index)
                part.pieces.append(piece.text)
                self._deltas += self._placeholders.without([ReasoningDelta(piece.text, part.at, self._response)])
            case "inner":
                part = self._thought(index)
                part.inner.append((len(part.pieces), piece.text))
            case "close":
                part = self._thought(index)
                part.closing, part.closed = piece.text, True
            case "lone_close":
                self._reclassify(index, piece)
            case _:
                assert_never(piece.kind)

    def _visible(self, index: int) -> _Slice:
        part = self._slices[index][-1]
        return self._add(index) if part.thinks else part

    def _thought(self, index: int) -> _Slice:
        """Where reasoning goes: it may have begun in the text before."""
        part = self._slices[index][-1]
        if part.closed or (part.pieces and not part.thinks):
            part = self._add(index)
        part.thinks = True
        return part

    def _add(self, index: int) -> _Slice:
        self._slices[index].append(self._new())
        return self._slices[index][-1]

    def _reclassify(self, index: int, piece: TagSegment) -> None:
        before = (self._begun[at].block() for at in range(index))
        if any(isinstance(block, ThinkingBlock) for block in before):
            self._take(index, TagSegment("text", piece.text))
            return
        last = self._visible(index)
        for part in self._slices[index]:
            part.thinks = part.closed = part.shown = True
            self._deltas.append(Reclassified("".join(part.pieces), part.at, self._response))
        last.closing = piece.text


def split(blocks: Sequence[Block], where: Where) -> list[Block]:
    """``blocks`` with each text that has reasoning between tags in its slices."""
    if where == "off" or all(map(_has_no_tag, blocks)):
        return list(blocks)
    tagging = Tagging(where, [_Known(block) for block in blocks])
    for index, block in enumerate(blocks):
        is_read = isinstance(block, Text) and block.source_field == CONTENT
        tagging.show([TextDelta(block.text if isinstance(block, Text) and is_read else "", index)])
    tagging.end()
    tagging.finish()
    found: list[Block] = []
    for index, block in enumerate(blocks):
        slices = tagging.slices(index)
        found += (
            sliced(block, [part.block() for part in slices]) if isinstance(block, Text) and len(slices) > 1 else [block]
        )
    return found


class _Known:
    __slots__ = ("_block",)

    def __init__(self, block: Block) -> None:
        self._block = block

    def block(self) -> Block:
        return self._block


def _has_no_tag(block: Block) -> bool:
    return not isinstance(block, Text) or is_plain(block.text)
