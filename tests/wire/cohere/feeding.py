"""Cohere streams and bodies for the tests, how they are read, and requests written from drafts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.wire import rewriting
from tests.wire.feeding import alike, fed
from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin
from thinkback.model.commits import Response
from thinkback.model.deltas import Delta
from thinkback.model.plan import NOTHING
from thinkback.wire.cohere import write
from thinkback.wire.cohere.read import Reader, raw_response
from thinkback.wire.cohere.read_request import read_request
from thinkback.wire.framing import Framing
from thinkback.wire.result import ReadRequest, ReadResult

ORIGIN = Origin("cohere", "https://api.cohere.com", "model")
EMPTY = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
BEGIN = {"id": "m1", "type": "message-start", "delta": {"message": EMPTY}}


def event(type: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    """An event that says something of the message."""
    found: dict[str, Any] = {"type": type}
    if index is not None:
        found["index"] = index
    if message:
        found["delta"] = {"message": message}
    return found


def end(finish: str | None = "COMPLETE", **delta: Any) -> dict[str, Any]:
    """The event that ends a stream."""
    return {"type": "message-end", "delta": {"finish_reason": finish, **delta}}


def stream(*events: dict[str, Any] | bytes) -> bytes:
    """The events as a stream; bytes stand for themselves."""
    return b"".join(
        event if isinstance(event, bytes) else b"event: x\ndata: " + json.dumps(event).encode() + b"\n\n"
        for event in events
    )


def body(message: Any, finish: str | None = "COMPLETE", **top: Any) -> bytes:
    """A response that is not streamed."""
    ended = {"finish_reason": finish} if finish is not None else {}
    return json.dumps({"id": "m1", "message": message, **ended, **top}).encode()


def feed(pieces: Iterable[bytes], framing: Framing = "sse") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    return fed(Reader(ORIGIN, framing, None, "r1"), pieces)


def read(raw: bytes) -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "json" if raw.startswith(b"{") else "sse"
    result = alike(raw, lambda pieces: feed(pieces, framing))
    canonical.encode(raw_response(result))
    return result


def reread(request: Any) -> ReadRequest:
    """A request body as values."""
    return rewriting.adopt(lambda body, ids: read_request(body, ids, ORIGIN), request)


def rewritten(request: Any) -> Any:
    """A request body, read and written again."""
    return rewriting.rewrite(write, reread(request))


def assistant(*blocks: Block, response: Response | None = None) -> Any:
    """The message that ``blocks`` are; nothing if it is not written."""
    fragments = write.assistant(response or Response(ORIGIN), blocks, NOTHING)
    return json.loads(fragments[0]) if fragments else None
