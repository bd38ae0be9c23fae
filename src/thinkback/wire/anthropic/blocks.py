"""Content blocks of the Messages API as JSON source text, rebuilt from neutral blocks."""

from __future__ import annotations

from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.wire.arguments import as_object
from thinkback.wire.sources import string

NAME = "anthropic"


def wire_object(block: Block) -> str:
    """The content block for ``block`` as JSON source text."""
    if block.wire:
        return block.wire
    match block:
        case Text():
            return f'{{"type":"text","text":{string(block.text)}}}'
        case ThinkingBlock():
            return _thinking(block)
        case ToolCall():
            named = f'"id":{string(block.id)},"name":{string(block.name)}'
            return f'{{"type":"tool_use",{named},"input":{as_object(block.arguments).decode()}}}'
        case ToolResult():
            said = f'"tool_use_id":{string(block.id)},"content":{string(block.content)}'
            failed = ',"is_error":true' if block.is_error else ""
            return f'{{"type":"tool_result",{said}{failed}}}'
        case _:
            return "null"


def _thinking(block: ThinkingBlock) -> str:
    for carrier in block.carriers:
        if carrier.kind == "redacted":
            return f'{{"type":"redacted_thinking","data":{string(carrier.value)}}}'
    is_signed = block.signature or block.source_field == "thinking"
    signature = f',"signature":{string(block.signature)}' if is_signed else ""
    return f'{{"type":"thinking","thinking":{string(block.thought)}{signature}}}'
