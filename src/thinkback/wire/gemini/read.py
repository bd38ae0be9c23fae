"""Response reader of the ``gemini`` dialect: bytes to deltas and blocks, and blocks to one response.

Promises: the same blocks whole, byte by byte and at any cut; every signature stays on the part it came on, also on an
empty one; what is not understood is kept (parts, candidate fields, envelope). Only candidate 0 is read. There is no
closing event: a stream is complete once a ``finishReason`` came. Must not: do I/O, know hosts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure, Response
from thinkback.model.slices import whole
from thinkback.wire.documents import NOT_LISTED, not_json
from thinkback.wire.framing import Framing
from thinkback.wire.gemini import chunks
from thinkback.wire.gemini.blocks import wire_object
from thinkback.wire.gemini.message import Parts
from thinkback.wire.google import read_failure
from thinkback.wire.reader import BodyReader
from thinkback.wire.result import ReadOptions, ReadResult, Stop, outcome_of
from thinkback.wire.values import plain, source_of

_READ = frozenset({"candidates", "usageMetadata", "error"})


class Envelope:
    """Give it the chunks of a response, or the whole; of a field that comes again the last one stays."""

    __slots__ = ("_candidate", "_content", "_others", "_top")

    def __init__(self) -> None:
        self._top: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._content: dict[str, Any] = {}
        self._others: list[Any] = []

    def add(self, body: dict[str, Any]) -> dict[str, Any]:
        """Keep what is not read of ``body``; returns the candidate that is."""
        self._top.update({key: value for key, value in body.items() if key not in _READ})
        candidates = body.get("candidates")
        read: dict[str, Any] = {}
        for candidate in candidates if isinstance(candidates, list) else ():
            if isinstance(candidate, dict) and candidate.get("index") in (0, None):
                read = candidate
            else:
                self._others.append(candidate)
        content = read.get("content")
        if isinstance(content, dict):
            self._content.update({key: value for key, value in content.items() if key != "parts"})
        self._candidate.update({key: value for key, value in read.items() if key not in ("content", "finishReason")})
        return read

    def says(self, name: str) -> str:
        """A text of the candidate, if it has it."""
        value = self._candidate.get(name)
        return value if isinstance(value, str) else ""

    def source(self) -> str:
        """All of it as JSON source text; the candidate's own fields are in ``candidate``, others in ``candidates``."""
        candidate = {**self._candidate, **({"content": self._content} if self._content else {})}
        found = {**self._top, **({"candidate": candidate} if candidate else {})}
        if self._others:
            found["candidates"] = self._others
        return source_of(found)


_STOPS: dict[str, Stop] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "paused",
    "SAFETY": "safety",
    "RECITATION": "safety",
    "PROHIBITED_CONTENT": "safety",
    "BLOCKLIST": "safety",
    "SPII": "safety",
    "IMAGE_SAFETY": "safety",
    "IMAGE_PROHIBITED_CONTENT": "safety",
    "IMAGE_RECITATION": "safety",
    "MALFORMED_FUNCTION_CALL": "error",
    "MALFORMED_RESPONSE": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    "LANGUAGE": "error",
    "NO_IMAGE": "error",
    "IMAGE_OTHER": "error",
    "OTHER": "error",
}


class Reader(BodyReader):
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "sse", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        super().__init__(origin, framing)
        self._response = response
        self._parts = Parts(response)
        self._take = self._parts.take
        self._begun = self._parts.parts
        self._look_for_tags(options, response)
        self._envelope = Envelope()
        self._seen = False
        self._id = ""
        self._model = ""
        self._usage: msgspec.Raw | bytes = b""
        self._blocked: dict[str, Any] = {}

    def _release(self) -> None:
        self._parts.close()

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        error = self._error or self._unfinished()
        stop: Stop = "safety" if self._is_blocked() else _STOPS.get(self._finish or "", "")
        blocks = self._split(self._parts.blocks())
        response = Response(
            origin=msgspec.structs.replace(self._origin, served_model=self._model),
            id=self._id,
            finish=self._finish,
            complete=error is None and stop != "safety",
            envelope=self._envelope.source(),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(stop, blocks, None if self._is_blocked() else error),
        )
        return ReadResult(response, tuple(blocks), chunks.read_usage(bytes(self._usage)))

    def _is_blocked(self) -> bool:
        """Whether the prompt was refused before there was any answer."""
        return bool(self._blocked) and self._finish is None and self._error is None

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although nothing said so outright."""
        if self._is_blocked():
            reason, said = plain(self._blocked.get("blockReason")), plain(self._blocked.get("blockReasonMessage"))
            message = f"the prompt was blocked: {reason}" + (f" ({said})" if said else "")
            return Failure(message, type="blocked", code=reason)
        finish = self._finish or ""
        if _STOPS.get(finish) == "error":
            said = self._envelope.says("finishMessage")
            message = f"the response ended with {finish}" + (f": {said}" if said else "")
            return Failure(message, type="error", code=finish)
        return super()._unfinished()

    def _read(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            try:
                chunk = chunks.decode_chunk(payload)
            except NOT_LISTED:
                self._read_other(payload)
            else:
                self._read_chunk(payload, chunk)
            if self._error is not None:
                return

    def _read_chunk(self, payload: bytes, chunk: chunks.Chunk) -> None:
        """The fast path: a chunk that brings unsigned text only, neither the first of all nor the last."""
        if not self._seen or len(chunk.candidates) != 1:
            self._read_other(payload)
            return
        (candidate,) = chunk.candidates
        if candidate.index or candidate.finishReason:
            self._read_other(payload)
            return
        self._id = self._id or chunk.responseId
        self._model = chunk.modelVersion or self._model
        if chunk.usageMetadata:
            self._usage = chunk.usageMetadata
        for part in candidate.content.parts:
            self._parts.add_text(part.text, part.thought)

    def _read_other(self, payload: bytes) -> None:
        """The slow path: chunks with something the typed shapes do not list, or several in an array."""
        text = payload.strip()
        if not text or text == b"[DONE]":
            return
        if not text.startswith(b"["):
            self._read_body(text)
            return
        try:
            elements = [bytes(element) for element in msgspec.json.decode(text, type=list[msgspec.Raw])]
        except NOT_LISTED as error:
            self._error = not_json(text, error)
            return
        for element in elements:
            if self._error is None:
                self._read_body(element)

    def _read_document(self, payload: bytes) -> None:
        """A body that is not streamed, or (without ``alt=sse``) the array of all chunks of one that is."""
        if payload.lstrip().startswith(b"["):
            self._read_other(payload)
            return
        self._is_whole = True
        self._parts = Parts(self._response, streams=False)
        self._take = self._parts.take
        self._begun = self._parts.parts
        self._read_body(payload)

    def _read_body(self, payload: bytes) -> None:
        body = self._object(payload)
        if body is None:
            return
        if body.get("error"):
            self._error = read_failure(200, body)
        else:
            self._read_object(body, payload)

    def _read_object(self, body: dict[str, Any], payload: bytes) -> None:
        self._seen = True
        self._id = plain(body.get("responseId")) or self._id
        self._model = plain(body.get("modelVersion")) or self._model
        usage, feedback = body.get("usageMetadata"), body.get("promptFeedback")
        if usage and isinstance(usage, dict):
            self._usage = canonical.source(usage).encode()
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            self._blocked = feedback
        candidate = self._envelope.add(body)
        if self._is_whole and "candidates" not in body and not self._blocked:
            self._error = Failure("the response body has no candidates", type="malformed")
        self._finish = plain(candidate.get("finishReason")) or self._finish
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        if not isinstance(parts, list):
            return
        arguments = chunks.arguments_of(payload) if b"args" in payload else []
        for at, part in enumerate(parts):
            if isinstance(part, dict):
                self._parts.add(part, arguments[at] if at < len(arguments) else None)


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The response as the wire had it; that of a stream as if it had come whole."""
    response = result.response
    envelope: dict[str, Any] = canonical.decode(response.envelope) if response.envelope else {}
    candidate: dict[str, Any] = envelope.pop("candidate", {})
    others: list[Any] = envelope.pop("candidates", [])
    parts = [canonical.decode(wire_object(block)) for block in whole(result.blocks)]
    if parts:
        candidate["content"] = {**candidate.get("content", {}), "parts": parts}
    if response.finish is not None:
        candidate["finishReason"] = response.finish
    if candidate or others:
        envelope["candidates"] = [candidate, *others]
    if result.usage is not None:
        envelope["usageMetadata"] = canonical.decode(result.usage.wire)
    return envelope
