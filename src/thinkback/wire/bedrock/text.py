"""The text of a message: content blocks of visible text, and reasoning that stands in them as tags.

Amazon's Nova and imported models put ``<thinking>`` into the text. Such a content block becomes
several blocks whose slices, joined, are its text again.
"""

from __future__ import annotations

from typing import Any, assert_never

from thinkback.model import canonical
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.model.deltas import ReasoningDelta, Reclassified, TextDelta
from thinkback.model.think_tags import TagSegment, TagSplitter, Where
from thinkback.wire.bedrock.blocks import TEXT_BEGINS, TEXT_ENDS, TEXT_WITHIN
from thinkback.wire.block_accumulator import Arrival, join_thought
from thinkback.wire.placeholders import Placeholders, marked


class TextContent:
    """One content block of text: the first and the last of its slices, and the one that grows."""

    __slots__ = ("first", "last", "slice")

    def __init__(self) -> None:
        self.first: Slice | None = None
        self.last: Slice | None = None
        self.slice: Slice | None = None


class Slice:
    """Visible text, or reasoning if a tag stands before or behind it (``closing`` is then no longer ``None``).

    ``shown``: it was shown as text before.
    """

    __slots__ = ("at", "citations", "closing", "content", "inner", "opening", "pieces", "shown", "wire")

    def __init__(self, content: TextContent) -> None:
        self.at = -1
        self.content = content
        self.opening = ""
        self.closing: str | None = None
        self.shown = False
        self.pieces: list[str] = []
        self.inner: list[tuple[int, str]] = []
        self.citations: list[Any] = []
        self.wire = ""

    def block(self) -> Text | ThinkingBlock:
        text, inner = join_thought(self.pieces, self.inner)
        if self.closing is not None:
            block = ThinkingBlock(text, source_field="content", opening=self.opening, closing=self.closing, inner=inner)
            return block if self.shown else marked(block)
        if self.citations:
            cited = {"citationsContent": {"content": [{"text": text}], "citations": self.citations}}
            return Text(text, source_field="citationsContent", wire=canonical.source(cited))
        if self.wire:
            return Text(text, source_field="citationsContent", wire=self.wire)
        begins, ends = self.content.first is self, self.content.last is self
        within = TEXT_BEGINS if begins else TEXT_ENDS if ends else TEXT_WITHIN
        return Text(text, source_field="text" if begins and ends else within)


class TextChannel:
    """All text of a message: tags are looked for in it as a whole, as a model wrote it."""

    __slots__ = ("_arrival", "_content", "_placeholders", "_tags")

    def __init__(self, arrival: Arrival, tags: Where = "start") -> None:
        self._arrival = arrival
        self._tags = TagSplitter(tags)
        self._placeholders = Placeholders()
        self._content: TextContent | None = None

    def begin(self) -> TextContent:
        """A new content block of text, which has a place even if it stays empty."""
        self.end()
        self._content = content = TextContent()
        self._open(content)
        return content

    def add(self, content: TextContent, text: str, separates: bool) -> None:
        """A piece of the text of ``content``. ``separates``: reasoning comes in content blocks of its own."""
        if content is not self._content:
            self.end()
            self._content = content
        for piece in self._tags.feed(text):
            self._take(content, piece, separates)

    def add_cited(self, content: TextContent, citation: Any) -> None:
        """Where a piece of the text of ``content`` is from."""
        self.end()
        self._visible(content).citations.append(citation)

    def add_whole(self, text: str, source: str) -> None:
        """Visible text that the provider marked up itself; no tags are looked for."""
        content = self.begin()
        slice = self._visible(content)
        slice.wire = source
        self._show(slice, text)
        self._content = None

    def end(self) -> None:
        """Release what was held back: no tag reaches into another content block."""
        content, self._content = self._content, None
        if content is not None:
            for piece in self._tags.close():
                self._take(content, piece, separates=True)
            self._arrival.deltas += self._placeholders.rest()

    def _open(self, content: TextContent) -> Slice:
        slice = content.slice = content.last = Slice(content)
        content.first = content.first or slice
        self._arrival.open(slice)
        return slice

    def _visible(self, content: TextContent) -> Slice:
        """Where visible text of ``content`` goes."""
        slice = content.slice
        return slice if slice is not None and slice.closing is None else self._open(content)

    def _take(self, content: TextContent, piece: TagSegment, separates: bool) -> None:
        if piece.kind not in ("reasoning", "inner"):
            self._arrival.deltas += self._placeholders.rest()
        match piece.kind:
            case "text":
                self._show(self._visible(content), piece.text)
            case "reasoning":
                self._think(content, piece.text)
            case "open":
                slice = self._visible(content)
                if slice.pieces or slice.citations:
                    slice = self._open(content)
                slice.opening, slice.closing = piece.text, ""
            case "inner":
                slice = self._thought(content)
                slice.inner.append((len(slice.pieces), piece.text))
            case "close":
                self._end_thought(content, piece.text)
            case "lone_close":
                self._reclassify(content, piece.text, separates)
            case _:
                assert_never(piece.kind)

    def _show(self, slice: Slice, text: str) -> None:
        slice.pieces.append(text)
        self._arrival.deltas.append(TextDelta(text, slice.at, self._arrival.response))

    def _think(self, content: TextContent, text: str) -> None:
        slice = self._thought(content)
        slice.pieces.append(text)
        thought = ReasoningDelta(text, slice.at, self._arrival.response)
        self._arrival.deltas += self._placeholders.without([thought])

    def _end_thought(self, content: TextContent, tag: str) -> None:
        self._thought(content).closing = tag
        content.slice = None

    def _thought(self, content: TextContent) -> Slice:
        """Where tagged reasoning goes: it may have begun in the content block before."""
        slice = content.slice
        if slice is None or (slice.closing is None and (slice.pieces or slice.citations)):
            slice = self._open(content)
        slice.closing = ""
        return slice

    def _reclassify(self, content: TextContent, tag: str, separates: bool) -> None:
        """A closing tag without an opening one: the visible text so far was reasoning.

        Where reasoning comes in content blocks of its own the tag is a slip of the model, and stays text.
        """
        if separates:
            self._show(self._visible(content), tag)
            return
        last = self._visible(content)
        if last.citations:
            last = self._open(content)
        for part in self._arrival.parts:
            if isinstance(part, Slice) and part.closing is None and not (part.citations or part.wire):
                part.closing, part.shown = "", True
                self._arrival.deltas.append(Reclassified("".join(part.pieces), part.at, self._arrival.response))
        last.closing = tag
        content.slice = None
