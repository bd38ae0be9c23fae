"""A response as the server gave it, put together again from its blocks."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import ToolCall
from thinkback.wire.ollama.blocks import wire_object
from thinkback.wire.result import ReadResult


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The message and the fields around it as the wire had them, joined from the blocks."""
    response = result.response
    message: dict[str, Any] = {"role": "assistant"}
    if response.content == "text":
        message["content"] = ""
    elif response.content == "null":
        message["content"] = None
    for block in result.blocks:
        fields = {"tool_calls": [wire_object(block)]} if isinstance(block, ToolCall) else wire_object(block)
        for key, value in fields.items():
            message[key] = message[key] + value if key in message else value
    message.update(canonical.decode(response.message) if response.message else {})
    envelope: dict[str, Any] = canonical.decode(response.envelope) if response.envelope else {}
    finish = {"done_reason": response.finish} if response.finish is not None else {}
    usage = canonical.decode(result.usage.wire) if result.usage is not None else {}
    return {**envelope, "message": message, **finish, **usage}
