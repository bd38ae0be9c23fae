"""Recorded responses to message objects, so that the ledger can learn from them: whole bodies and event streams."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ..jsons import JsonObject, as_object, as_text

# Which field of a block a delta continues, and under which name it comes.
_FIELDS = {
    "thinking_delta": ("thinking", "thinking"),
    "text_delta": ("text", "text"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}


def message_of(response: Mapping[str, object] | str) -> JsonObject | None:
    """The message of a response; None when it reports an error."""
    if isinstance(response, str):
        lines = [line for line in response.splitlines() if line.startswith("data:")]
        return message_of_events(as_object(json.loads(line.removeprefix("data:"))) for line in lines)
    return dict(response) if response.get("type") == "message" else None


def message_of_events(events: Iterable[Mapping[str, object]]) -> JsonObject | None:
    """The message that a stream adds up to; None when it breaks off or reports an error."""
    message: JsonObject = {}
    blocks: dict[object, JsonObject] = {}
    ended = False
    for event in events:
        match event.get("type"):
            case "message_start":
                message = dict(as_object(event.get("message")))
            case "content_block_start":
                blocks[event.get("index")] = dict(as_object(event.get("content_block")))
            case "content_block_delta":
                _extend(blocks[event.get("index")], as_object(event.get("delta")))
            case "message_delta":
                message.update(as_object(event.get("delta")))
            case "message_stop":
                ended = True
    content = [_finished(block) for block in blocks.values()]
    return {**message, "content": content} if ended else None


def _extend(block: JsonObject, delta: Mapping[str, object]) -> None:
    names = _FIELDS.get(as_text(delta.get("type")))
    if names is not None:
        field, source = names
        block[field] = as_text(block.get(field)) + as_text(delta.get(source))


def _finished(block: JsonObject) -> JsonObject:
    source = block.get("input")
    return {**block, "input": json.loads(source or "{}")} if isinstance(source, str) else block
