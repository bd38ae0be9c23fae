"""Converse streams and bodies for the tests, how they are read, and requests written from drafts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.wire import event_stream, rewriting
from tests.wire.feeding import alike, fed
from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin
from thinkback.model.commits import Response
from thinkback.model.deltas import Delta
from thinkback.model.plan import NOTHING
from thinkback.wire.bedrock import write
from thinkback.wire.bedrock.read import Reader, raw_response
from thinkback.wire.bedrock.read_request import read_request
from thinkback.wire.framing import Framing
from thinkback.wire.result import ReadRequest, ReadResult

ORIGIN = Origin("bedrock", "https://bedrock-runtime.eu-west-1.amazonaws.com", "model")
STOP: dict[str, Any] = {"messageStop": {"stopReason": "end_turn", "p": "ab"}}
USAGE = {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}


def delta(index: int, **what: Any) -> dict[str, Any]:
    """An event that adds to a content block."""
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": what, "p": "abc"}}


def start(index: int, **what: Any) -> dict[str, Any]:
    """An event that begins a content block."""
    return {"contentBlockStart": {"contentBlockIndex": index, "start": what}}


def stop(index: int) -> dict[str, Any]:
    """An event that ends a content block."""
    return {"contentBlockStop": {"contentBlockIndex": index}}


def stream(*events: dict[str, Any] | bytes) -> bytes:
    """The events as a binary stream; bytes stand for themselves."""
    return b"".join(
        event if isinstance(event, bytes) else event_stream.event(*next(iter(event.items()))) for event in events
    )


def body(*content: Any, finish: str | None = "end_turn", **top: Any) -> bytes:
    """A response that is not streamed."""
    ended = {"stopReason": finish} if finish is not None else {}
    return json.dumps({"output": {"message": {"role": "assistant", "content": content}}, **ended, **top}).encode()


def feed(pieces: Iterable[bytes], framing: Framing = "event-stream") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    return fed(Reader(ORIGIN, framing, None, "r1"), pieces)


def read(raw: bytes) -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "json" if raw.startswith(b"{") else "event-stream"
    result = alike(raw, lambda pieces: feed(pieces, framing))
    canonical.encode(raw_response(result))
    return result


def content(result: ReadResult) -> Any:
    """The content blocks of a response put together again."""
    return raw_response(result)["output"]["message"]["content"]


def reread(request: Any) -> ReadRequest:
    """A request body as values."""
    return rewriting.adopt(lambda body, ids: read_request(body, ids, ORIGIN), request)


def rewritten(request: Any) -> Any:
    """A request body, read and written again."""
    return rewriting.rewrite(write, reread(request))


def assistant(*blocks: Block) -> Any:
    """The content that an assistant message of ``blocks`` has; nothing if it is not written."""
    fragments = write.assistant(Response(ORIGIN), blocks, NOTHING)
    return json.loads(b"[%b]" % fragments[0]) if fragments else None
