"""Answers as Converse and InvokeModel give them, whole and as binary event streams, in the shapes of the recordings."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence

from ..anthropic.render import Answer, events, whole
from ..jsons import JsonObject, as_text, compact
from ..persona import Rendered
from ..streams import pieces, slices
from .profiles import Plain
from .translate import converse_block

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7
_JSON = {":content-type": "application/json"}
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def event(name: str, payload: Mapping[str, object], number: int = 0) -> bytes:
    """One event; ``number`` varies the padding that hides the length of what is inside."""
    padded = {**payload, "p": _PADDING[: 2 + number * 7 % (len(_PADDING) - 2)]}
    return message({":event-type": name, ":message-type": "event"}, padded)


def exception(name: str, text: str) -> bytes:
    """An error in the middle of a stream."""
    return message({":exception-type": name, ":message-type": "exception"}, {"message": text})


def message(headers: Mapping[str, str], payload: Mapping[str, object]) -> bytes:
    """One message with a JSON payload."""
    return frame({**headers, **_JSON}, compact(payload).encode())


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message as bytes."""
    block = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(block) + len(payload), len(block))
    head = prelude + struct.pack("!I", zlib.crc32(prelude))
    body = head + block + payload
    return body + struct.pack("!I", zlib.crc32(body))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack("!B", len(key)) + key + struct.pack("!BH", _STRING, len(text)) + text


MALFORMED = frame({":event-type": "contentBlockDelta", ":message-type": "event", **_JSON}, b'{"contentBlockIndex":0,')
"""An event whose frame is sound and whose JSON is broken off."""


_LATENCY = {"latencyMs": 1234}
# Converse has no word of its own for a refusal.
_STOP_REASONS = {"refusal": "content_filtered", "pause_turn": "end_turn"}


def converse(answer: Answer, row: Plain | None) -> Rendered:
    """The answer to Converse, or to ConverseStream; ``row`` is that of a model which is not Claude."""
    content = _arranged(answer, row)
    message = {"role": "assistant", "content": [converse_block(block) for block in content]}
    body: JsonObject = {
        "metrics": _LATENCY,
        "output": {"message": message},
        "stopReason": _stop_reason(answer),
        "usage": _usage(answer),
    }
    blank: list[JsonObject] = [{"type": "text", "text": ""}] if row is not None and row.blank_first else []
    return _framed(body, list(_converse_events(answer, [*blank, *content])))


def invoke(answer: Answer) -> Rendered:
    """The answer to InvokeModel, or to InvokeModelWithResponseStream: its events travel as base64 inside chunks."""
    inner = events(answer)
    last = {"inputTokenCount": answer.usage["input_tokens"], "outputTokenCount": answer.usage["output_tokens"]}
    inner[-1] = {**inner[-1], "amazon-bedrock-invocationMetrics": {**last, "invocationLatency": 1234}}
    chunks = [base64.b64encode(compact(one).encode()).decode() for one in inner]
    return _framed(whole(answer), [("chunk", {"bytes": chunk}) for chunk in chunks])


def _framed(body: JsonObject, parts: Sequence[tuple[str, JsonObject]]) -> Rendered:
    framed = [event(name, payload, number) for number, (name, payload) in enumerate(parts)]
    return Rendered(compact(body).encode(), framed, content_type=CONTENT_TYPE, malformed=MALFORMED)


def _arranged(answer: Answer, row: Plain | None) -> list[JsonObject]:
    content = list(answer.content)
    if row is None:
        return content
    if row.shown:
        content = [{**block, "thinking": row.shown} if block["type"] == "thinking" else block for block in content]
    if row.text_first:
        content.sort(key=lambda block: block["type"] != "text")
    return content


def _converse_events(answer: Answer, content: Sequence[JsonObject]) -> Iterator[tuple[str, JsonObject]]:
    yield "messageStart", {"role": "assistant"}
    for index, block in enumerate(content):
        place: JsonObject = {"contentBlockIndex": index}
        if block["type"] == "tool_use":
            started = {"toolUseId": block["id"], "name": block["name"]}
            yield "contentBlockStart", {**place, "start": {"toolUse": started}}
        for delta in _deltas(block):
            yield "contentBlockDelta", {**place, "delta": delta}
        yield "contentBlockStop", place
    yield "messageStop", {"stopReason": _stop_reason(answer)}
    yield "metadata", {"metrics": _LATENCY, "usage": _usage(answer)}


def _deltas(block: JsonObject) -> Iterator[JsonObject]:
    match block["type"]:
        case "thinking":
            for piece in pieces(as_text(block["thinking"])) or [""]:
                yield {"reasoningContent": {"text": piece}}
            if block["signature"]:
                yield {"reasoningContent": {"signature": block["signature"]}}
        case "redacted_thinking":
            yield converse_block(block)
        case "tool_use":
            for piece in slices(compact(block["input"])):
                yield {"toolUse": {"input": piece}}
        case _:
            for piece in pieces(as_text(block["text"])) or [""]:
                yield {"text": piece}


def _stop_reason(answer: Answer) -> str:
    return _STOP_REASONS.get(answer.stop_reason, answer.stop_reason)


def _usage(answer: Answer) -> JsonObject:
    counted = answer.usage
    told = {"inputTokens": counted["input_tokens"], "outputTokens": counted["output_tokens"]}
    cache = {
        "cacheReadInputTokens": counted["cache_read_input_tokens"],
        "cacheWriteInputTokens": counted["cache_creation_input_tokens"],
    }
    total = sum(value for value in told.values() if isinstance(value, int))
    return {**told, **cache, "serverToolUsage": {}, "totalTokens": total}
