"""Streams, bodies and requests of the ``mistral`` dialect for its tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.wire import rewriting
from tests.wire.feeding import alike, fed, sse
from thinkback.model.blocks import Origin
from thinkback.model.deltas import Delta
from thinkback.model.plan import NOTHING
from thinkback.wire.framing import Framing
from thinkback.wire.mistral import write
from thinkback.wire.mistral.read import Reader
from thinkback.wire.mistral.read_request import read_request
from thinkback.wire.result import ReadResult

ORIGIN = Origin("mistral", "https://api.example.org/v1", "model")
HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "served"}


def think(*texts: str, **fields: Any) -> dict[str, Any]:
    """A thinking chunk."""
    return {"type": "thinking", "thinking": [{"type": "text", "text": text} for text in texts], **fields}


def said(text: str, **fields: Any) -> dict[str, Any]:
    """A text chunk."""
    return {"type": "text", "text": text, **fields}


def call(arguments: Any, index: int | None = None, id: str | None = "abcDEF123", name: str = "f") -> dict[str, Any]:
    """A tool call as Mistral writes it."""
    found: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    return {**found, **({"id": id} if id is not None else {}), **({"index": index} if index is not None else {})}


def chunk(delta: Any = None, finish: str | None = None, **top: Any) -> dict[str, Any]:
    """One chunk with a delta for choice 0."""
    return {**HEAD, "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **top}


def stream(*deltas: Any, finish: str | None = "stop") -> bytes:
    """A whole stream of deltas that ends as it should."""
    return sse(*map(chunk, deltas), chunk({}, finish))


def body(message: Any, finish: str | None = "stop", **top: Any) -> bytes:
    """A response that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"id": "c1", "model": "served", "choices": [choice], **top}).encode()


def feed(pieces: Iterable[bytes], framing: Framing = "sse") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    return fed(Reader(ORIGIN, framing, None, "r1"), pieces)


def read(raw: bytes) -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "json" if raw.startswith(b"{") else "sse"
    return alike(raw, lambda pieces: feed(pieces, framing))


def answer(result: ReadResult) -> Any:
    """The message that goes back for a response, or ``None``."""
    fragments = write.assistant(result.response, result.blocks, NOTHING)
    return json.loads(fragments[0]) if fragments else None


def rewritten(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request body, read and written again."""
    return rewriting.rewrite(write, rewriting.adopt(read_request, body))
