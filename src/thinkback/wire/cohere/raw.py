"""A Cohere response put together again from its blocks."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall
from thinkback.model.slices import whole
from thinkback.wire.cohere.blocks import wire_object
from thinkback.wire.result import ReadResult


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The response as Cohere gives it, joined from the blocks; a streamed one looks like any other."""
    response, usage = result.response, result.usage
    message: dict[str, Any] = {"role": "assistant"}
    items = []
    for block in whole(result.blocks):
        if isinstance(block, ToolCall):
            message.setdefault("tool_calls", []).append(canonical.decode(wire_object(block)))
        elif isinstance(block, ThinkingBlock) and block.source_field == "tool_plan":
            message["tool_plan"] = block.thought
        else:
            items.append(block)
    texts = [block.text for block in items if isinstance(block, Text)]
    if response.content == "text" and len(texts) == len(items):
        message["content"] = "".join(texts)
    elif items:
        message["content"] = [canonical.decode(wire_object(block)) for block in items]
    message |= canonical.decode(response.message) if response.message else {}
    raw: dict[str, Any] = {"id": response.id, "message": message}
    if response.finish is not None:
        raw["finish_reason"] = response.finish
    if usage is not None and usage.wire:
        raw["usage"] = canonical.decode(usage.wire)
    return {**raw, **(canonical.decode(response.envelope) if response.envelope else {})}
