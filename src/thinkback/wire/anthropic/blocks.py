"""Content blocks of the Messages API as JSON source text, rebuilt from neutral blocks."""

from __future__ import annotations

from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.wire.arguments import as_object
from thinkback.wire.sources import joined, string

NAME = "anthropic"


def wire_object(block: Block) -> str:
    """The content block for ``block`` as JSON source text."""
    if block.wire:
        return block.wire
    match block:
        case Text():
            return joined({"type": '"text"', "text": string(block.text)})
        case ThinkingBlock():
            return _thinking(block)
        case ToolCall():
            fields = {"id": string(block.id), "name": string(block.name), "input": as_object(block.arguments).decode()}
            return joined({"type": '"tool_use"', **fields})
        case ToolResult():
            fields = {"tool_use_id": string(block.id), "content": string(block.content)}
            if block.is_error:
                fields["is_error"] = "true"
            return joined({"type": '"tool_result"', **fields})
        case _:
            return "null"


def _thinking(block: ThinkingBlock) -> str:
    redacted = [carrier.value for carrier in block.carriers if carrier.kind == "redacted"]
    if redacted:
        return joined({"type": '"redacted_thinking"', "data": string(redacted[0])})
    fields = {"type": '"thinking"', "thinking": string(block.thought)}
    if block.signature or block.source_field == "thinking":
        fields["signature"] = string(block.signature)
    return joined(fields)
