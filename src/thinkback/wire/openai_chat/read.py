"""Response reader of the ``openai-chat`` dialect: bytes to deltas and blocks.

Promises: the same blocks whole, byte by byte and at any cut; reasoning is released as it arrives; one text even
where several fields repeat it; what is not understood is kept (message fields, call fields, envelope). A body that
breaks off or cannot be read yields what arrived, ``complete=False`` and an error. Must not: do I/O, know hosts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure, Response, Usage
from thinkback.model.deltas import Delta
from thinkback.wire.framing import FRAMERS, Framing
from thinkback.wire.openai_chat import chunks
from thinkback.wire.openai_chat.message import MessageBuilder
from thinkback.wire.result import ReadOptions, ReadResult


class Reader:
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "sse", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        self._origin = origin
        self._framing = framing
        self._framer = FRAMERS[framing]()
        self._fields = _field_order(options)
        self._message = MessageBuilder(self._fields, response)
        self._first: bytes = b""
        self._last: list[bytes] = []
        self._id = ""
        self._model = ""
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._done = False
        self._error: Failure | None = None
        self._envelope: dict[str, Any] = {}

    def feed(self, data: bytes) -> list[Delta]:
        """The deltas that ``data`` completes."""
        if self._error is not None:
            return []
        payloads = self._framer.feed(data)
        return self._read(payloads) if payloads else []

    def close(self) -> list[Delta]:
        """The body has ended: whatever was held back is released."""
        deltas = self._read(self._framer.close()) if self._error is None else []
        return deltas + self._message.close()

    def fail(self, failure: Failure) -> None:
        """The connection broke or the caller stopped reading; the first failure stays."""
        self._error = self._error or failure

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        error = self._error
        if error is None and self._finish is None and not self._done:
            error = Failure("the stream ended before the response was finished", type="truncated")
        blocks, repeats = self._message.blocks()
        served = msgspec.structs.replace(self._origin, served_model=self._model)
        response = Response(
            origin=served,
            id=self._id,
            finish=self._finish,
            complete=error is None,
            content=self._message.content,
            message=_source(self._message.extra),
            envelope=_source(self._whole_envelope()),
            repeats=repeats,
            error=error,
            blocks=len(blocks),
        )
        return ReadResult(response, tuple(blocks), self._usage)

    @property
    def finish(self) -> str | None:
        """``finish_reason`` as reported; ``None`` when none came."""
        return self._finish

    def _read(self, payloads: list[bytes]) -> list[Delta]:
        deltas: list[Delta] = []
        for payload in payloads:
            if payload == b"[DONE]" or payload.strip() == b"[DONE]":
                self._done = True
                continue
            if self._error is not None:
                break
            try:
                chunk = chunks.decode_chunk(payload) if self._framing == "sse" else None
            except (msgspec.DecodeError, UnicodeDecodeError):
                chunk = None
            if chunk is None or chunk.error is not None:
                self._read_generic(payload, deltas)
            else:
                self._read_chunk(payload, chunk, deltas)
        return deltas

    def _read_chunk(self, payload: bytes, chunk: chunks.Chunk, deltas: list[Delta]) -> None:
        """The fast path: a chunk with known keys only."""
        if not self._first:
            self._first = payload
        if chunk.model:
            self._model = chunk.model
        if chunk.id:
            self._id = self._id or chunk.id
        if chunk.usage is not None and bytes(chunk.usage) != b"null":
            self._note_usage(bytes(chunk.usage))
            self._last.append(payload)
        for choice in chunk.choices:
            if choice.index != 0:
                continue
            if choice.delta is not None:
                self._message.add(choice.delta, deltas)
            if choice.finish_reason is not None:
                self._finish = choice.finish_reason
                self._last.append(payload)
            if choice.usage is not None and bytes(choice.usage) != b"null":
                self._note_usage(bytes(choice.usage))

    def _note_usage(self, raw: bytes) -> None:
        self._usage = chunks.read_usage(canonical.decode(raw)) or self._usage

    def _read_generic(self, payload: bytes, deltas: list[Delta]) -> None:
        """The slow path: whole bodies, and chunks with something the typed shapes do not list."""
        try:
            body = canonical.decode(payload)
        except msgspec.DecodeError as error:
            self._error = Failure(f"a part of the response is not JSON: {error}", type="malformed")
            return
        if not isinstance(body, dict):
            self._error = Failure("a part of the response is not a JSON object", type="malformed")
            return
        self._id = self._id or str(body.get("id") or "")
        self._model = str(body.get("model") or self._model)
        self._envelope.update({key: value for key, value in body.items() if key != "choices"})
        self._usage = chunks.read_usage(body.get("usage")) or self._usage_elsewhere(body) or self._usage
        choices = body.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict) and choice.get("index", 0) in (0, None):
                self._read_choice(choice, deltas)
        if body.get("error"):
            self._error = chunks.read_failure(200, body)
        elif not isinstance(choices, list) and self._framing != "sse":
            self._error = Failure("the response body has no choices", type="malformed")

    def _usage_elsewhere(self, body: dict[str, Any]) -> Usage | None:
        """Groq repeats usage under ``x_groq``; Kimi puts it into the choice."""
        groq = body.get("x_groq")
        found = chunks.read_usage(groq.get("usage")) if isinstance(groq, dict) else None
        choices = body.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        return found or (chunks.read_usage(first.get("usage")) if isinstance(first, dict) else None)

    def _read_choice(self, choice: dict[str, Any], deltas: list[Delta]) -> None:
        rest = {k: v for k, v in choice.items() if k not in ("message", "delta", "finish_reason", "index")}
        if any(value is not None for value in rest.values()):
            self._envelope.setdefault("choice", {}).update(rest)
        message = choice.get("message")
        if isinstance(message, dict):
            self._message.add_message(message, deltas)
        elif isinstance(choice.get("delta"), dict):
            self._message.add_generic(choice["delta"], deltas)
        if choice.get("finish_reason") is not None:
            self._finish = str(choice["finish_reason"])
        if choice.get("error"):
            self._error = chunks.read_failure(200, choice)

    def _whole_envelope(self) -> dict[str, Any]:
        """Top-level and choice fields of the first and the closing chunks, later ones winning."""
        merged: dict[str, Any] = {}
        for payload in filter(None, [self._first, *self._last]):
            body = canonical.decode(payload)
            merged.update({key: value for key, value in body.items() if key != "choices"})
            for choice in body.get("choices") or []:
                rest = {k: v for k, v in choice.items() if k not in ("delta", "finish_reason", "index")}
                if any(value is not None for value in rest.values()):
                    merged.setdefault("choice", {}).update(rest)
        merged.update(self._envelope)
        for key in ("usage", "error"):
            merged.pop(key, None)
        return merged


def _field_order(options: ReadOptions | None) -> tuple[str, ...]:
    name = options.reasoning_field if options else ""
    return (name,) if name else chunks.FIELD_ORDER


def _source(value: dict[str, Any]) -> str:
    return canonical.encode(value).decode() if value else ""
