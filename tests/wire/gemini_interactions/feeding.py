"""Streams and requests of the ``gemini-interactions`` dialect: how they are made, fed, and written again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.wire import feeding, rewriting
from tests.wire.feeding import alike, fed
from thinkback.model.blocks import Origin
from thinkback.model.deltas import Delta
from thinkback.wire.framing import Framing
from thinkback.wire.gemini_interactions import write
from thinkback.wire.gemini_interactions.read import Reader
from thinkback.wire.gemini_interactions.read_request import read_request
from thinkback.wire.result import ReadRequest, ReadResult

ORIGIN = Origin("gemini-interactions", "https://api.example.org/v1beta", "model")
HEAD = {"id": "i-1", "model": "served", "object": "interaction"}
USAGE = {"total_input_tokens": 3, "total_output_tokens": 5, "total_thought_tokens": 7}


def start(index: int, **step: Any) -> dict[str, Any]:
    """The beginning of a step."""
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    """What is added to a step."""
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **more}}


def stop(index: int) -> dict[str, Any]:
    """The end of a step."""
    return {"event_type": "step.stop", "index": index}


def completed(status: str = "completed", **more: Any) -> dict[str, Any]:
    """The last event."""
    return {"event_type": "interaction.completed", "interaction": {**HEAD, "status": status, "usage": USAGE, **more}}


CREATED = {"event_type": "interaction.created", "interaction": {**HEAD, "status": "in_progress"}}


def sse(*events: Any, end: bytes = b"\n") -> bytes:
    """The events as a stream; bytes stand for themselves."""
    return feeding.sse(*events, end=end, done=False)


def stream(*events: Any, status: str = "completed") -> bytes:
    """A whole stream."""
    return sse(CREATED, *events, completed(status), b"[DONE]")


def body(*steps: Any, status: str = "completed", **top: Any) -> bytes:
    """A response that is not streamed."""
    return json.dumps({**HEAD, "status": status, "steps": list(steps), "usage": USAGE, **top}).encode()


def feed(pieces: Iterable[bytes], framing: Framing = "sse") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    return fed(Reader(ORIGIN, framing, None, "r1"), pieces)


def read(raw: bytes) -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "sse" if raw.startswith(b"data:") else "json"
    return alike(raw, lambda pieces: feed(pieces, framing))


def adopt(request: Mapping[str, Any]) -> ReadRequest:
    """A request body as values."""
    return rewriting.adopt(read_request, request)


def rewrite(request: ReadRequest) -> dict[str, Any]:
    """The request that the writer makes of what was read."""
    return rewriting.rewrite(write, request)
