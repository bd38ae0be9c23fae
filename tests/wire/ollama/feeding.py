"""Streams, bodies and requests of the ``ollama`` dialect for its tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.wire import rewriting
from tests.wire.feeding import alike, fed
from thinkback.model.blocks import Origin
from thinkback.model.deltas import Delta
from thinkback.model.plan import NOTHING
from thinkback.wire.framing import Framing
from thinkback.wire.ollama import write
from thinkback.wire.ollama.read import Reader
from thinkback.wire.ollama.read_request import read_request
from thinkback.wire.result import ReadResult

ORIGIN = Origin("ollama", "http://localhost:11434/api", "model")
HEAD = {"model": "served", "created_at": "2026-01-01T00:00:00Z"}
COUNTS = {"total_duration": 9, "prompt_eval_count": 3, "eval_count": 4}


def line(message: Any, **top: Any) -> dict[str, Any]:
    """One line of a stream."""
    return {**HEAD, "message": {"role": "assistant", "content": "", **message}, "done": False, **top}


def last(reason: str | None = "stop", **top: Any) -> dict[str, Any]:
    """The line that ends a stream."""
    ending = {"done_reason": reason} if reason is not None else {}
    return line({}, **{"done": True, **ending, **COUNTS, **top})


def ndjson(*lines: Any) -> bytes:
    """The lines as a stream; bytes stand for themselves."""
    return b"".join((item if isinstance(item, bytes) else json.dumps(item).encode()) + b"\n" for item in lines)


def stream(*messages: Any, reason: str | None = "stop") -> bytes:
    """A whole stream that ends as it should."""
    return ndjson(*map(line, messages), last(reason))


def body(message: Any, reason: str | None = "stop", **top: Any) -> bytes:
    """A response that is not streamed."""
    return json.dumps({**last(reason, **top), "message": {"role": "assistant", **message}}).encode()


def call(arguments: Any, id: str = "call_1", name: str = "f", **function: Any) -> dict[str, Any]:
    """A tool call as Ollama writes it."""
    return {**({"id": id} if id else {}), "function": {**function, "name": name, "arguments": arguments}}


def feed(pieces: Iterable[bytes], framing: Framing = "ndjson") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    return fed(Reader(ORIGIN, framing, None, "r1"), pieces)


def read(raw: bytes, framing: Framing = "ndjson") -> ReadResult:
    """The result of a body after checking that it is the same byte by byte and obeys the laws."""
    return alike(raw, lambda pieces: feed(pieces, framing))


def answer(result: ReadResult) -> Any:
    """The message that goes back for a response, or ``None``."""
    fragments = write.assistant(result.response, result.blocks, NOTHING)
    return json.loads(fragments[0]) if fragments else None


def rewritten(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request body, read and written again."""
    return rewriting.rewrite(write, rewriting.adopt(read_request, body))
