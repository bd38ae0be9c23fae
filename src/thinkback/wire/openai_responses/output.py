"""The output of a response under construction: its items, and what of them there is to show.

Shown is what is visible: the text of messages, one of the two texts of a reasoning item (the first that comes: a few
hosts stream both), the arguments of calls. Where ``done`` says more than was streamed, the rest follows; where it says
something else, it counts, and what was shown cannot be taken back. Memory is the text itself: each item keeps a list of
fragments, which stand in for it only while ``response.output_item.done`` has not said what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.block_accumulator import join
from thinkback.wire.openai_responses.blocks import BETWEEN_PARTS, CUSTOM, block_of
from thinkback.wire.openai_responses.events import Field, TextLocation

PART_FIELDS: tuple[Field, ...] = ("content", "summary")
# Until the item is done it "may be incomplete" (SDK).
_NOT_YET = "encrypted_content"


class Item:
    """Give it parts and fragments, or the block it came to (``done``), and ask for its ``block``.

    ``at`` is its index in the response, ``kind`` its type. ``shown`` is what was shown of its text; of a reasoning
    item one field is, ``shown_field``, so far up to its part ``shown_part``. ``named``: id and name of a call were.
    """

    __slots__ = (
        "_field",
        "_fragments",
        "_growing",
        "_index",
        "_parts",
        "_start",
        "at",
        "done",
        "kind",
        "named",
        "shown",
        "shown_field",
        "shown_part",
    )

    def __init__(self, at: int, start: dict[str, Any]) -> None:
        self.at = at
        self.kind = kind_of(start)
        self.done: Block | None = None
        self.named = False
        self.shown: list[str] = []
        self.shown_field: Field | None = None
        self.shown_part = 0
        self._start = {key: value for key, value in start.items() if key != _NOT_YET}
        self._parts: dict[tuple[Field, int], dict[str, Any]] = {}
        self._fragments: dict[tuple[Field, int], list[str]] = {}
        self._growing: list[str] = []
        self._field: Field | None = None
        self._index = 0

    def part(self, field: Field, index: int, part: dict[str, Any]) -> None:
        """A part begins."""
        self._parts.setdefault((field, index), part)

    def add(self, field: Field, index: int, kind: str, text: str) -> None:
        """A fragment of a field, or of its part ``index``; ``kind`` is the type of a part that had no beginning."""
        if field != self._field or index != self._index:
            self._field, self._index = field, index
            if kind:
                self._parts.setdefault((field, index), {"type": kind})
            self._growing = self._fragments.setdefault((field, index), [])
        self._growing.append(text)

    def block(self) -> Block:
        """The block, as far as it has come."""
        if self.done is not None:
            return self.done
        item = self._so_far()
        return block_of(item, canonical.source(item))

    def _so_far(self) -> dict[str, Any]:
        """The start object with its texts as long as they have become."""
        item = dict(self._start)
        for field in PART_FIELDS:
            indexes = sorted(index for name, index in self._parts if name == field)
            if indexes:
                item[field] = [self._part_so_far(field, index) for index in indexes]
        for (field, _), fragments in self._fragments.items():
            if field not in PART_FIELDS:
                item[field] = join(fragments)
        return item

    def _part_so_far(self, field: Field, index: int) -> dict[str, Any]:
        part, fragments = self._parts[field, index], self._fragments.get((field, index))
        return {**part, text_field(part): join(fragments)} if fragments else part


def text_field(part: dict[str, Any]) -> str:
    """The field of a part that holds its text."""
    return "refusal" if part.get("type") == "refusal" else "text"


def kind_of(item: object) -> str:
    """The type of an item."""
    return str(item.get("type") or "") if isinstance(item, dict) else ""


_INPUTS: dict[str, Field] = {"function_call": "arguments", CUSTOM: "input"}


class Output:
    """Items in order of arrival, found by their ``output_index``."""

    def __init__(self, response: str = "") -> None:
        self._response = response
        self.items: list[Item] = []
        self._by_index: dict[int | None, Item] = {}
        self._deltas: list[Delta] = []

    def take(self) -> list[Delta]:
        """What there is to show since the last time."""
        deltas = self._deltas
        self._deltas = []
        return deltas

    def blocks(self) -> list[Block]:
        """The blocks as far as they have come."""
        return [item.block() for item in self.items]

    def begin(self, index: int | None, start: dict[str, Any]) -> None:
        """An item begins; at an index that is taken it is another one (a few gateways give each the index 0)."""
        item = self._open(index, start)
        field = _INPUTS.get(item.kind)
        if field is not None:
            self._name(item, item.block())
            if start.get(field) and isinstance(start[field], str):
                self._grow(item, TextLocation(field, "", item.kind), 0, start[field])
        for name in PART_FIELDS:
            parts = start.get(name)
            for at, part in enumerate(parts if isinstance(parts, list) else ()):
                self._begin_part(item, name, at, part)

    def begin_part(self, index: int | None, field: Field, at: int, part: Any) -> None:
        """Part ``at`` of a field of an item begins."""
        item = self._find(index)
        if item is not None:
            self._begin_part(item, field, at, part)

    def _begin_part(self, item: Item, field: Field, at: int, part: Any) -> None:
        if not isinstance(part, dict):
            return
        item.part(field, at, part)
        kind, text = str(part.get("type")), part.get(text_field(part))
        if text and isinstance(text, str):
            holder = "reasoning" if item.kind == "reasoning" or kind == "reasoning_text" else "message"
            self._grow(item, TextLocation(field, kind, holder), at, text)

    def add(self, index: int | None, piece: TextLocation, at: int, text: str) -> None:
        """A fragment of the item at ``index``, of its part ``at``."""
        item = self._by_index.get(index) or self._find(index) or self._open(index, {"type": piece.item})
        if text and item.done is None:
            self._grow(item, piece, at, text)

    def _grow(self, item: Item, piece: TextLocation, at: int, text: str) -> None:
        item.add(piece.field, at, piece.part, text)
        if item.kind == "message" == piece.item:
            item.shown.append(text)
            self._deltas.append(TextDelta(text, item.at, self._response))
        elif item.kind == "reasoning" and piece.field in PART_FIELDS:
            self._show_reasoning(item, piece.field, at, text)
        elif item.kind in _INPUTS and item.kind == piece.item:
            item.shown.append(text)
            self._deltas.append(ToolCallDelta(item.at, arguments=text, response=self._response))

    def _show_reasoning(self, item: Item, field: Field, at: int, text: str) -> None:
        if item.shown_field is None:
            item.shown_field, item.shown_part = field, at
        if item.shown_field != field:
            return
        if item.shown_part != at:
            item.shown_part = at
            text = BETWEEN_PARTS + text
        item.shown.append(text)
        self._deltas.append(ReasoningDelta(text, item.at, self._response))

    def finish(self, index: int | None, whole: Any, source: str) -> None:
        """The item as a whole; the first time counts."""
        item = self._find(index) or self._open(index, {"type": kind_of(whole)})
        if item.done is None:
            self._finish(item, whole, source)

    def settle(self, output: Sequence[Any], sources: Sequence[str]) -> None:
        """The output as the closing event or a body has it: for items that did not come whole, or not at all."""
        if any(item.kind != kind_of(whole) for item, whole in zip(self.items, output, strict=False)):
            return
        for at, (whole, source) in enumerate(zip(output, sources, strict=True)):
            item = self.items[at] if at < len(self.items) else self._open(at, {"type": kind_of(whole)})
            if item.done is None:
                self._finish(item, whole, source)

    def _finish(self, item: Item, whole: Any, source: str) -> None:
        shown = join(item.shown) if item.kind == kind_of(whole) else ""
        item.kind = kind_of(whole)
        block = item.done = block_of(whole, source)
        match block:
            case Text() if rest := _after(block.text, shown):
                self._deltas.append(TextDelta(rest, item.at, self._response))
            case ThinkingBlock() if rest := _after(block.opening + block.thought, shown):
                self._deltas.append(ReasoningDelta(rest, item.at, self._response))
            case ToolCall():
                self._name(item, block)
                if rest := _after(block.arguments, shown):
                    self._deltas.append(ToolCallDelta(item.at, arguments=rest, response=self._response))

    def _name(self, item: Item, block: Block) -> None:
        """Show what is called, once."""
        if isinstance(block, ToolCall) and not item.named and (block.id or block.name):
            item.named = True
            self._deltas.append(ToolCallDelta(item.at, block.id, block.name, response=self._response))

    def _find(self, index: int | None) -> Item | None:
        """The item at ``index``; without one, the last."""
        item = self._by_index.get(index)
        return self.items[-1] if item is None and index is None and self.items else item

    def _open(self, index: int | None, start: dict[str, Any]) -> Item:
        item = self._by_index[index] = Item(len(self.items), start)
        self.items.append(item)
        return item


def _after(text: str, shown: str) -> str:
    """What of ``text`` follows ``shown``; nothing where it begins otherwise."""
    return text[len(shown) :] if text.startswith(shown) else ""
