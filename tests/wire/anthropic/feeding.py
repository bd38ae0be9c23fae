"""Streams and requests of the ``anthropic`` dialect: how they are made, fed, and written again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.wire import rewriting
from tests.wire.feeding import alike, fed
from thinkback.model.blocks import Origin
from thinkback.model.deltas import Delta
from thinkback.wire.anthropic import write
from thinkback.wire.anthropic.read import Reader
from thinkback.wire.anthropic.read_request import read_request
from thinkback.wire.framing import Framing
from thinkback.wire.result import ReadRequest, ReadResult

ORIGIN = Origin("anthropic", "https://api.example.org/v1", "model")
HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "model": "served", "content": []}
START = {"type": "message_start", "message": {**HEAD, "stop_reason": None, "usage": {"input_tokens": 5}}}
STOP = {"type": "message_stop"}


def ending(reason: str | None = "end_turn", **top: Any) -> list[dict[str, Any]]:
    """The last two events of a stream."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}, **top}, STOP]


def opens(block: Any, index: int = 0) -> dict[str, Any]:
    """A block begins."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(kind: str, field: str, value: Any, index: int = 0) -> dict[str, Any]:
    """A delta of a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: value}}


def text(value: str, index: int = 0) -> dict[str, Any]:
    """A fragment of text."""
    return piece("text_delta", "text", value, index)


def thought(value: str, index: int = 0) -> dict[str, Any]:
    """A fragment of reasoning."""
    return piece("thinking_delta", "thinking", value, index)


def signature(value: str, index: int = 0) -> dict[str, Any]:
    """A signature."""
    return piece("signature_delta", "signature", value, index)


def fragment(value: str, index: int = 0) -> dict[str, Any]:
    """A fragment of a tool's input."""
    return piece("input_json_delta", "partial_json", value, index)


def stops(index: int = 0) -> dict[str, Any]:
    """A block ends."""
    return {"type": "content_block_stop", "index": index}


def sse(*events: Any) -> bytes:
    """The events as a stream, with padding as the provider has it; bytes stand for themselves."""
    lines: list[bytes] = []
    for at, event in enumerate(events):
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        name = b"" if isinstance(event, bytes) else b"event: %b\n" % str(event.get("type")).encode()
        lines.append(name + b"data: " + data + b" " * (at % 4) + b"\n\n")
    return b"".join(lines)


def stream(*events: Any, reason: str | None = "end_turn") -> bytes:
    """A whole stream around ``events``."""
    return sse(START, *events, *ending(reason))


def body(*blocks: Any, reason: str | None = "end_turn", **top: Any) -> bytes:
    """A response that is not streamed."""
    return json.dumps({**HEAD, "content": list(blocks), "stop_reason": reason, **top}).encode()


def feed(pieces: Iterable[bytes], framing: Framing = "sse") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    return fed(Reader(ORIGIN, framing, None, "r1"), pieces)


def read(raw: bytes) -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "json" if raw.startswith((b"{", b"[")) else "sse"
    return alike(raw, lambda pieces: feed(pieces, framing))


def adopt(request: Mapping[str, Any]) -> ReadRequest:
    """A request body as values."""
    return rewriting.adopt(read_request, request)


def rewrite(request: ReadRequest) -> dict[str, Any]:
    """The request that the writer makes of what was read: system messages before the first other one stand on top."""
    return rewriting.rewrite(write, request, only_first_on_top=True)


def merged(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request in the form the provider reads it in: neighbouring user messages are one, system is a list."""
    system = request.get("system")
    same = {**request, "system": [{"type": "text", "text": system}]} if isinstance(system, str) else dict(request)
    messages: list[dict[str, Any]] = []
    for message in request["messages"]:
        if messages and message["role"] == messages[-1]["role"] == "user":
            messages[-1] = {"role": "user", "content": [*_blocks(messages[-1]), *_blocks(message)]}
        else:
            messages.append(message)
    return {**same, "messages": messages}


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
