"""Blocks of a Cohere message, under construction and as the wire has them.

``source_field`` of reasoning names where it stood: ``thinking`` is an item of ``content``, ``tool_plan`` the message
field in which models say what they are about to call (their SDK: "a chain-of-thought style reflection and plan").
"""

from __future__ import annotations

from typing import Any, assert_never

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.wire.block_accumulator import join
from thinkback.wire.cohere import media
from thinkback.wire.pieces import joined

_string = canonical.string


def wire_object(block: Block) -> bytes:
    """The content item or the call that ``block`` is. Raises ``UnsupportedContent`` for media there is none for."""
    if block.wire or isinstance(block, ToolResult | Unknown):
        return canonical.raw(block.wire)
    match block:
        case Text():
            return b'{"type":"text","text":%b}' % _string(block.text)
        case ThinkingBlock():
            return b'{"type":"thinking","thinking":%b}' % _string(block.thought)
        case ToolCall():
            return b'{"id":%b,"type":"function","function":{"name":%b,"arguments":%b}}' % (
                _string(block.id),
                _string(block.name),
                _string(block.arguments),
            )
        case Media():
            return media.part(block)
        case _:
            assert_never(block)


class TextPart:
    """Visible text or, where ``field`` is another, reasoning."""

    __slots__ = ("at", "field", "pieces", "wire")

    def __init__(self, field: str) -> None:
        self.at = -1
        self.field = field
        self.pieces: list[str] = []
        self.wire = ""

    def block(self) -> Text | ThinkingBlock:
        text = join(self.pieces)
        if self.field == "text":
            return Text(text, wire=self.wire)
        return ThinkingBlock(text, source_field=self.field, wire=self.wire)


class CallPart:
    """A tool call; ``head`` is its start, or all of it, where that holds more than the usual keys."""

    __slots__ = ("at", "head", "id", "name", "pieces")

    def __init__(self, id: str, name: str, head: dict[str, Any] | None) -> None:
        self.at = -1
        self.id = id
        self.name = name
        self.head = head
        self.pieces: list[str] = []

    def block(self) -> ToolCall:
        arguments = join(self.pieces)
        wire = ""
        if self.head is not None:
            function = self.head.get("function")
            given = {**function, "arguments": arguments} if isinstance(function, dict) else function
            wire = canonical.source({**self.head, "function": given})
        return ToolCall(self.id, self.name, arguments, wire=wire)


class OtherPart:
    """A content item of another type: its start and deltas."""

    __slots__ = ("at", "pieces")

    def __init__(self, first: Any) -> None:
        self.at = -1
        self.pieces = [first]

    def block(self) -> Media | Unknown:
        value = joined(self.pieces)
        return media.read_part(value) if media.is_media(value) else Unknown(canonical.source(value))
