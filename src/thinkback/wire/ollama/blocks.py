"""Accumulators: the parts of a message under construction, in the order in which they began.

Memory is the text itself: each part keeps a list of fragments and joins it once. ``wire_object`` is the inverse: the
provider's object for a block.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, content_slice
from thinkback.wire.block_accumulator import Arrival, join, join_thought
from thinkback.wire.placeholders import marked
from thinkback.wire.values import plain


class TextPart:
    """Visible text under construction; a ``closing`` tag makes it reasoning."""

    __slots__ = ("at", "closing", "fragments")

    def __init__(self) -> None:
        self.at = -1
        self.fragments: list[str] = []
        self.closing: str | None = None

    def add(self, text: str, arrival: Arrival) -> None:
        """A piece of the text."""
        self.fragments.append(text)
        arrival.show_text(self, text)

    def text(self) -> str:
        return join(self.fragments)

    def block(self) -> Text | ThinkingBlock:
        if self.closing is None:
            return Text(self.text())
        return ThinkingBlock(self.text(), source_field="content", closing=self.closing)


class ThoughtPart:
    """Reasoning from the ``thinking`` field, or from tags inside ``content``."""

    __slots__ = ("at", "closing", "field", "fragments", "inner", "opening")

    def __init__(self, field: str, opening: str = "") -> None:
        self.at = -1
        self.field = field
        self.opening = opening
        self.closing = ""
        self.fragments: list[str] = []
        self.inner: list[tuple[int, str]] = []

    def add(self, text: str, arrival: Arrival) -> None:
        """A piece of the reasoning."""
        self.fragments.append(text)
        arrival.show_reasoning(self, text)

    def block(self) -> ThinkingBlock:
        thought, inner = join_thought(self.fragments, self.inner)
        return marked(
            ThinkingBlock(thought, source_field=self.field, opening=self.opening, closing=self.closing, inner=inner)
        )


class WholePart:
    """A block that came whole: a tool call, or an image."""

    __slots__ = ("_block", "at")

    def __init__(self, block: ToolCall | Media) -> None:
        self.at = -1
        self._block = block

    def block(self) -> Block:
        return self._block


def read_call(call: dict[str, Any], source: str, *, keeps_index: bool) -> ToolCall:
    """A tool call, whose arguments are an object with this ``source`` text.

    Its ``index`` counts the calls of a response; it is kept only where the call is to go out exactly as it came.
    """
    known = call.get("function")
    function = known if isinstance(known, dict) else {}
    id, name, arguments = plain(call.get("id")), plain(function.get("name")), function.get("arguments")
    is_object = isinstance(arguments, dict)
    text = source if is_object else arguments if isinstance(arguments, str) else canonical.source(arguments or {})
    usual = ToolCall(id, name, text)
    own = {key: value for key, value in function.items() if key != "index" or keeps_index}
    whole = {**call, "function": own} if function else call
    if is_object and whole == _call(usual, arguments):
        return usual
    return msgspec.structs.replace(usual, wire=canonical.source(whole))


def wire_object(block: Block) -> Any:
    """The provider's own object for ``block``: a tool call, or the message field it is a piece of."""
    match block:
        case ToolCall(wire=""):
            return _call(block, canonical.decode(block.arguments))
        case Media():
            return {"images": [block.data]}
        case ThinkingBlock(source_field="thinking"):
            return {"thinking": content_slice(block)}
        case Text() | ThinkingBlock():
            return {"content": content_slice(block)}
        case _:
            return canonical.decode(block.wire)


def _call(call: ToolCall, arguments: Any) -> dict[str, Any]:
    named = {"id": call.id} if call.id else {}
    return {**named, "function": {"name": call.name, "arguments": arguments}}
