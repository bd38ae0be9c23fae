"""Response reader of the ``ollama`` dialect: bytes to deltas and blocks.

Promises: the same blocks whole, byte by byte and at any cut; reasoning is released as it arrives, from its field or
from tags; arguments keep their source text; what is not understood is kept. A body that breaks off or cannot be read
yields what arrived, ``complete=False`` and an error. Must not: do I/O.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure, Response
from thinkback.model.deltas import Delta
from thinkback.wire.documents import read_object
from thinkback.wire.framing import FRAMERS, Framing
from thinkback.wire.ollama import lines
from thinkback.wire.ollama.message import MessageBuilder
from thinkback.wire.result import ReadOptions, ReadResult, Stop, outcome_of

_STOPS: dict[str, Stop] = {"length": "length", "": ""}
_OWNED = frozenset({"message", "done_reason", "error", "logprobs"})


class Reader:
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "ndjson", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        self._origin = origin
        self._framing = framing
        self._framer = FRAMERS[framing]()
        self._message = MessageBuilder(response)
        self._first = b""
        self._model = ""
        self._finish: str | None = None
        self._done = False
        self._tail: Failure | None = None
        self._error: Failure | None = None
        self._fields: dict[str, Any] = {}
        self._logprobs: list[Any] = []

    def feed(self, data: bytes) -> list[Delta]:
        """The deltas that ``data`` completes."""
        if self._error is not None:
            return []
        payloads = self._framer.feed(data)
        if not payloads:
            return []
        self._read(payloads)
        return self._message.take()

    def close(self) -> list[Delta]:
        """The body has ended: whatever was held back is released."""
        rest = self._framer.close()
        if self._error is None:
            self._read(rest)
            if self._error is not None and self._error.type == "malformed" and self._framing != "json":
                # The last line had no end: it is cut off rather than malformed.
                self._tail = Failure("the stream ended in the middle of a line", type="truncated")
                self._error = None
        self._message.close()
        return self._message.take()

    def fail(self, failure: Failure) -> None:
        """The connection broke or the caller stopped reading; the first failure stays."""
        self._error = self._error or failure

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        error = self._error or self._unfinished()
        blocks = self._message.blocks()
        fields = {**(canonical.decode(self._first) if self._first else {}), **self._fields}
        envelope = {key: value for key, value in fields.items() if key not in _OWNED and not lines.is_count(key)}
        if self._logprobs:
            envelope["logprobs"] = self._logprobs
        response = Response(
            origin=msgspec.structs.replace(self._origin, served_model=self._model),
            finish=self._finish,
            complete=error is None,
            content=self._message.content,
            message=_source(self._message.extra),
            envelope=_source(envelope),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(_STOPS.get(self._finish or "", "stop"), blocks, error),
        )
        return ReadResult(response, tuple(blocks), lines.read_usage(self._fields))

    @property
    def finish(self) -> str | None:
        """``done_reason`` as reported; ``None`` while none came."""
        return self._finish

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although nothing said so outright."""
        if self._done:
            return None
        return self._tail or Failure("the stream ended before the response was finished", type="truncated")

    def _read(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            try:
                line = lines.decode_line(payload)
            except lines.NOT_LISTED:
                self._read_other(payload)
                if self._error is not None:
                    return
            else:
                self._read_line(payload, line)

    def _read_line(self, payload: bytes, line: lines.Line) -> None:
        """The fast path: a line with known keys only."""
        if not self._first:
            self._first = payload
        if line.model:
            self._model = line.model
        builder, message = self._message, line.message
        if message.thinking:
            builder.add_thinking(message.thinking)
        if message.content is not None:
            builder.content = "text"
            if message.content:
                builder.add_content(message.content)
        if line.done:
            self._done = True
            self._fields["done"] = True

    def _read_other(self, payload: bytes) -> None:
        """The slow path: whole bodies, last lines, calls, and lines with something the typed shapes do not list."""
        body = read_object(payload)
        if isinstance(body, Failure):
            self._error = body
            return
        message, logprobs = body.get("message"), body.get("logprobs")
        if isinstance(message, dict):
            self._message.add_object(message, lines.argument_sources(payload))
        if isinstance(logprobs, list):
            self._logprobs += logprobs
        self._fields.update(body)
        self._model = _string(body.get("model")) or self._model
        self._finish = _string(body.get("done_reason")) or self._finish
        self._done = self._done or body.get("done") is True
        if body.get("error"):
            self._error = lines.read_failure(200, body)
        elif self._framing == "json" and not isinstance(message, dict):
            self._error = Failure("the response body has no message", type="malformed")


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _source(value: dict[str, Any]) -> str:
    return canonical.source(value) if value else ""
