"""A response as the provider gave it, put together again from its blocks."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Text, ToolCall
from thinkback.model.slices import whole
from thinkback.wire.mistral.blocks import wire_object
from thinkback.wire.result import ReadResult


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The message and envelope as the wire had them, joined from the blocks."""
    response = result.response
    message: dict[str, Any] = {"role": "assistant", **(canonical.decode(response.message) if response.message else {})}
    blocks = whole(result.blocks)
    said = [block for block in blocks if not isinstance(block, ToolCall)]
    texts = [block.text for block in said if isinstance(block, Text) and not block.wire]
    if response.content == "text":
        message["content"] = "".join(texts) if len(texts) == len(said) else [wire_object(block) for block in said]
    elif response.content == "null":
        message["content"] = None
    calls = [wire_object(block) for block in blocks if isinstance(block, ToolCall)]
    if calls:
        message["tool_calls"] = calls
    envelope: dict[str, Any] = canonical.decode(response.envelope) if response.envelope else {}
    extra = envelope.pop("choice", None)
    fields = extra if isinstance(extra, dict) else {}
    choice = {"index": 0, "message": message, "finish_reason": response.finish, **fields}
    if result.usage is not None:
        envelope["usage"] = canonical.decode(result.usage.wire)
    return {**envelope, "choices": [choice]}
