"""A chat completion put together again from its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, Unknown, content_slice, wire_object
from thinkback.wire.openai_chat.reasoning import OPAQUE
from thinkback.wire.result import ReadResult


def _is_part(block: Block) -> TypeGuard[Text | ThinkingBlock | Unknown]:
    """Whether a block is a part of a content list, where content is one."""
    if isinstance(block, ThinkingBlock):
        return block.source_field == "content" and block.wire != ""
    return isinstance(block, Unknown) or (isinstance(block, Text) and block.source_field == "content")


def _part(block: Text | ThinkingBlock | Unknown) -> Any:
    """``block`` as it stood in a list of content parts."""
    return {"type": "text", "text": block.text} if isinstance(block, Text) and not block.wire else _json(block.wire)


def _json(source: str) -> Any:
    return canonical.decode(source)


def _repeated(blocks: Sequence[Block]) -> str:
    """The text that the fields in ``repeats`` carried: what is read of the message's other reasoning fields."""
    thoughts = [b for b in blocks if isinstance(b, ThinkingBlock) and b.source_field != "content" and not b.is_hidden]
    return "".join(block.opening + block.thought for block in thoughts)


def _grow(message: dict[str, Any], field: str, text: str) -> None:
    """Text goes on in its field; what else a stream once put there gives way."""
    before = message.get(field)
    message[field] = before + text if isinstance(before, str) else text


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The message and envelope as the wire had them, joined from the blocks."""
    response = result.response
    message: dict[str, Any] = {"role": "assistant", **(_json(response.message) if response.message else {})}
    details: list[Any] = []
    calls: list[Any] = []
    for block in result.blocks:
        if isinstance(block, Text) and not block.text:
            continue  # it only holds the signature of the message
        if isinstance(block, Text | ThinkingBlock) and block.source_field == "content":
            _grow(message, "content", content_slice(block))
        elif isinstance(block, ThinkingBlock) and block.source_field == "reasoning_details":
            details.append(_json(block.wire))
        elif isinstance(block, ThinkingBlock):
            if content_slice(block) or not block.carriers:
                _grow(message, block.source_field, content_slice(block))
            message.update((OPAQUE, carrier.value) for carrier in block.carriers)
        elif isinstance(block, Text):
            _grow(message, block.source_field, block.text)
        elif isinstance(block, ToolCall) and block.source_field == "tool_calls":
            calls.append(_json(wire_object(block)))
    parts = [block for block in result.blocks if _is_part(block)]
    if any(part.wire for part in parts):
        message["content"] = [_part(part) for part in parts]
    if calls:
        message["tool_calls"] = calls
    if details:
        message["reasoning_details"] = details
    message.update(dict.fromkeys(response.repeats, _repeated(result.blocks)))
    if response.content == "null":
        message.setdefault("content", None)
    elif response.content == "text":
        message.setdefault("content", "")
    envelope: dict[str, Any] = _json(response.envelope) if response.envelope else {}
    extra = envelope.pop("choice", None)
    fields = extra if isinstance(extra, dict) else {}
    choice = {"index": 0, "message": message, "finish_reason": response.finish, **fields}
    if result.usage is not None and result.usage.wire:
        envelope["usage"] = _json(result.usage.wire)
    return {**envelope, "choices": [choice]}
