"""Recorded Converse responses to message objects of the Messages format, so that a ledger can learn from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ..jsons import JsonObject, as_object, as_text
from .translate import messages_content


def message_of(body: Mapping[str, object]) -> JsonObject | None:
    """The message of a whole response; None when it reports an error."""
    message = as_object(as_object(body.get("output")).get("message"))
    return {"content": messages_content(message["content"])} if "content" in message else None


def message_of_events(events: Iterable[tuple[str, Mapping[str, object]]]) -> JsonObject | None:
    """The message that the events of a stream add up to; None when it breaks off."""
    blocks: dict[object, JsonObject] = {}
    ended = False
    for name, payload in events:
        block = blocks.setdefault(payload.get("contentBlockIndex"), {})
        if name == "contentBlockStart":
            block.update(as_object(payload.get("start")))
        elif name == "contentBlockDelta":
            _extend(block, as_object(payload.get("delta")))
        ended = ended or name == "messageStop"
    content = [_finished(block) for index, block in blocks.items() if index is not None and block.get("text") != ""]
    return {"content": messages_content(content)} if ended else None


def _extend(block: JsonObject, delta: Mapping[str, object]) -> None:
    for name, value in delta.items():
        if isinstance(value, str):
            block[name] = as_text(block.get(name)) + value
        else:
            inner = dict(as_object(block.get(name)))
            _extend(inner, as_object(value))
            block[name] = inner


def _finished(block: JsonObject) -> JsonObject:
    call, reasoning = as_object(block.get("toolUse")), as_object(block.get("reasoningContent"))
    if call:
        return {"toolUse": {**call, "input": json.loads(as_text(call.get("input")) or "{}")}}
    if "text" in reasoning:
        return {"reasoningContent": {"reasoningText": reasoning}}
    return block
