"""An output item under construction.

Memory is the text itself: each part keeps a list of fragments and joins it once. The fragments stand in for the item
only while ``response.output_item.done`` has not said what it is.
"""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Block
from thinkback.wire.arrival import join
from thinkback.wire.openai_responses.blocks import block_of
from thinkback.wire.openai_responses.events import Field

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
