"""Streams and requests of the ``gemini`` dialect: how they are made, fed, and written again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.wire import feeding, rewriting
from tests.wire.feeding import alike, fed
from thinkback.model.blocks import Origin
from thinkback.model.deltas import Delta
from thinkback.wire.framing import Framing
from thinkback.wire.gemini import write
from thinkback.wire.gemini.read import Reader
from thinkback.wire.gemini.read_request import read_request
from thinkback.wire.result import ReadRequest, ReadResult

ORIGIN = Origin("gemini", "https://api.example.org/v1beta", "model")
HEAD = {"modelVersion": "served", "responseId": "r-1"}


def chunk(*parts: Any, finish: str | None = None, **top: Any) -> dict[str, Any]:
    """One response of a stream that brings ``parts``."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **HEAD, **top}


def sse(*events: Any, end: bytes = b"\n") -> bytes:
    """The events as a stream; bytes stand for themselves."""
    return feeding.sse(*events, end=end, done=False)


def stream(*parts: Any, finish: str = "STOP") -> bytes:
    """A whole stream with a chunk for each part."""
    return sse(*(chunk(part) for part in parts), chunk(finish=finish))


def feed(pieces: Iterable[bytes], framing: Framing = "sse") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    return fed(Reader(ORIGIN, framing, None, "r1"), pieces)


def read(raw: bytes) -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "sse" if raw.startswith(b"data:") else "json"
    return alike(raw, lambda pieces: feed(pieces, framing))


def body(*parts: Any, finish: str = "STOP", **top: Any) -> bytes:
    """A response that is not streamed."""
    return json.dumps(chunk(*parts, finish=finish, **top)).encode()


def adopt(request: Mapping[str, Any]) -> ReadRequest:
    """A request body as values."""
    return rewriting.adopt(read_request, request)


def rewrite(request: ReadRequest) -> dict[str, Any]:
    """The request that the writer makes of what was read."""
    return rewriting.rewrite(write, request)
