"""Response reader of the ``ollama`` dialect: bytes to deltas and blocks, and blocks to one response.

Promises: the same blocks whole, byte by byte and at any cut; reasoning is released as it arrives, from its field or
from tags; arguments keep their source text; what is not understood is kept. A body that breaks off or cannot be read
yields what arrived, ``complete=False`` and an error. Must not: do I/O.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Origin, ToolCall
from thinkback.model.commits import Failure, Response
from thinkback.wire.documents import NOT_LISTED
from thinkback.wire.framing import Framing
from thinkback.wire.ollama import lines
from thinkback.wire.ollama.blocks import wire_object
from thinkback.wire.ollama.message import MessageBuilder
from thinkback.wire.placeholders import Placeholders
from thinkback.wire.reader import BodyReader
from thinkback.wire.result import AS_BUILT, ReadOptions, ReadResult, Stop, outcome_of
from thinkback.wire.values import plain, source_of

_STOPS: dict[str, Stop] = {"length": "length", "": ""}
_OWNED = frozenset({"message", "done_reason", "error", "logprobs"})


class Reader(BodyReader):
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    _unit = "a line"

    def __init__(
        self, origin: Origin, framing: Framing = "ndjson", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        super().__init__(origin, framing)
        self._message = MessageBuilder(response, tags=(options or AS_BUILT).tags)
        self._take = self._message.take
        self._begun = self._message.parts
        self._placeholders = Placeholders()
        self._first = b""
        self._model = ""
        self._fields: dict[str, Any] = {}
        self._logprobs: list[Any] = []

    def _release(self) -> None:
        self._message.close()

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
            message=source_of(self._message.extra),
            envelope=source_of(envelope),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(_STOPS.get(self._finish or "", "stop"), blocks, error),
        )
        return ReadResult(response, tuple(blocks), lines.read_usage(self._fields))

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although nothing said so outright."""
        return None if self._is_whole else self._broken_off()

    def _read(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            try:
                line = lines.decode_line(payload)
            except NOT_LISTED:
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
            self._is_whole = True
            self._fields["done"] = True

    def _read_other(self, payload: bytes) -> None:
        """The slow path: whole bodies, last lines, calls, and lines with something the typed shapes do not list."""
        body = self._object(payload)
        if body is None:
            return
        message, logprobs = body.get("message"), body.get("logprobs")
        if isinstance(message, dict):
            self._message.add_object(message, lines.argument_sources(payload))
        if isinstance(logprobs, list):
            self._logprobs += logprobs
        self._fields.update(body)
        self._model = plain(body.get("model")) or self._model
        self._finish = plain(body.get("done_reason")) or self._finish
        self._is_whole = self._is_whole or body.get("done") is True
        if body.get("error"):
            self._error = lines.read_failure(200, body)
        elif self._framing == "json" and not isinstance(message, dict):
            self._error = Failure("the response body has no message", type="malformed")


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The message and the fields around it as the wire had them, joined from the blocks."""
    response = result.response
    message: dict[str, Any] = {"role": "assistant"}
    if response.content == "text":
        message["content"] = ""
    elif response.content == "null":
        message["content"] = None
    for block in result.blocks:
        fields = {"tool_calls": [wire_object(block)]} if isinstance(block, ToolCall) else wire_object(block)
        for key, value in fields.items():
            message[key] = message[key] + value if key in message else value
    message.update(canonical.decode(response.message) if response.message else {})
    envelope: dict[str, Any] = canonical.decode(response.envelope) if response.envelope else {}
    finish = {"done_reason": response.finish} if response.finish is not None else {}
    usage = canonical.decode(result.usage.wire) if result.usage is not None else {}
    return {**envelope, "message": message, **finish, **usage}
