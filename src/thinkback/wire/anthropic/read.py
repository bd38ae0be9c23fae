"""Response reader of the ``anthropic`` dialect: bytes to deltas and blocks, and blocks to one response.

Promises: the same blocks whole, byte by byte and at any cut; a content block is a block, in order of arrival; what is
not understood is kept (blocks, envelope). A stream that has said why it stopped is finished, with ``message_stop`` or
without; a body that breaks off before, or cannot be read, yields what arrived, ``complete=False`` and an error.
Must not: do I/O, know hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure, Response
from thinkback.model.deltas import Delta
from thinkback.model.slices import whole
from thinkback.wire.anthropic import events
from thinkback.wire.anthropic.blocks import wire_object
from thinkback.wire.anthropic.parts import Part
from thinkback.wire.documents import NOT_LISTED
from thinkback.wire.event_stream import ChunkFramer
from thinkback.wire.framing import Framing
from thinkback.wire.reader import BodyReader
from thinkback.wire.result import ReadOptions, ReadResult, Report, Stop, outcome_of
from thinkback.wire.sources import items, members
from thinkback.wire.values import members_of, source_of

_STOPS: dict[str, Stop] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "paused",
    "refusal": "refusal",
}
# What a delta adds to when no block was opened for it.
_IMPLIED = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
_NO_ENVELOPE = ("content", "usage", "error")


class Reader(BodyReader):
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "sse", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        super().__init__(origin, framing)
        # Bedrock puts the events of this dialect into those of its own.
        if framing == "event-stream":
            self._framer = ChunkFramer()
        self._response = response
        self._parts = self._begun = list[Part]()
        self._at: dict[int, Part] = {}
        self._deltas: list[Delta] = []
        self._look_for_tags(options, response)
        self._envelope: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        error = self._error or self._unfinished()
        blocks = tuple(self._split([part.block() for part in self._parts]))
        stop = _STOPS.get(self.finish or "", "")
        response = Response(
            origin=msgspec.structs.replace(self._origin, served_model=self._word("model")),
            id=self._word("id"),
            finish=self.finish,
            complete=error is None and stop != "refusal",
            envelope=source_of(self._envelope),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(stop, blocks, error),
        )
        return ReadResult(response, blocks, events.read_usage(self._usage))

    @property
    def finish(self) -> str | None:
        """``stop_reason`` as reported; ``None`` while none came."""
        return self._word("stop_reason") or None

    def _word(self, field: str) -> str:
        value = self._envelope.get(field)
        return canonical.whole(value) if isinstance(value, str) else ""

    def _take(self) -> list[Delta]:
        deltas, self._deltas = self._deltas, []
        return deltas

    def _read(self, payloads: list[bytes]) -> None:
        decode, parts = events.decode_delta, self._at
        for payload in payloads:
            try:
                event = decode(payload)
            except NOT_LISTED:
                self._read_other(payload)
                if self._error is not None:
                    return
                continue
            # The fast path: a known delta of a block that was opened.
            part = parts.get(event.index)
            piece = event.delta
            if part is None:
                self._read_other(payload)
            elif piece.field == part.shown:
                if piece.value:
                    part.pieces.append(piece.value)
                    self._deltas.append(part.delta(piece.value))
            else:
                part.add(piece.field, piece.value)

    def _read_other(self, payload: bytes) -> None:
        """The slow path: whole bodies, and every event that is no delta of a listed type."""
        text = payload.strip()
        if not text or text == b"[DONE]":
            return
        body = self._object(payload)
        if body is not None:
            self._read_object(body, canonical.whole(payload.decode("utf-8", "surrogatepass")))

    def _read_object(self, body: dict[str, Any], source: str) -> None:
        match body.get("type"):
            case "content_block_start":
                start = body.get("content_block")
                if isinstance(start, dict):
                    self._open(start, members(source)["content_block"], _index(body))
            case "content_block_delta":
                delta = body.get("delta")
                if isinstance(delta, dict):
                    self._add(delta, _index(body))
            case "content_block_stop":
                part = self._at.get(_index(body))
                if part is not None:
                    self._deltas += part.close()
            case "message_start":
                message = body.get("message")
                if isinstance(message, dict):
                    # How it ends is not known yet, whatever a host puts here.
                    self._read_message({**message, "stop_reason": None}, members(source)["message"])
            case "message_delta":
                delta = body.get("delta")
                own = {key: value for key, value in body.items() if key not in ("type", "delta")}
                self._note({**own, **(delta if isinstance(delta, dict) else {})})
            case "message_stop":
                self._end()
            case kind:
                self._read_untyped(kind, body, source)

    def _read_untyped(self, kind: Any, body: dict[str, Any], source: str) -> None:
        """A whole message, or an error; any other event is ignored, and so is ``ping``."""
        if kind == "error" or body.get("error"):
            self._error = events.read_failure(200, body)
        elif kind == "message" or isinstance(body.get("content"), list):
            self._read_message(body, source)
            self._end()
        elif self._framing == "json":
            self._error = Failure("the response body has no content", type="malformed")
            if body.get("message") or body.get("detail"):
                self._error = events.read_failure(200, body)

    def _read_message(self, message: dict[str, Any], source: str) -> None:
        self._note(message)
        content = message.get("content")
        if isinstance(content, list) and content:
            for at, (start, text) in enumerate(zip(content, items(members(source)["content"]), strict=True)):
                if isinstance(start, dict):
                    self._open(start, text, at)

    def _note(self, fields: Mapping[str, Any]) -> None:
        """Fields of the message and its usage: later ones win, but null takes nothing back."""
        usage = fields.get("usage")
        if isinstance(usage, dict):
            _lay_over(self._usage, usage)
        _lay_over(self._envelope, {key: value for key, value in fields.items() if key not in _NO_ENVELOPE})

    def _open(self, start: dict[str, Any], source: str, index: int) -> Part:
        part = Part(len(self._parts), start, source, self._response)
        self._parts.append(part)
        self._at[index] = part
        self._deltas += part.opened()
        return part

    def _add(self, delta: dict[str, Any], index: int) -> None:
        part = self._at.get(index)
        if part is None:
            kind = _IMPLIED.get(str(delta.get("type")))
            if kind is None:
                return
            part = self._open({"type": kind}, f'{{"type":"{kind}"}}', index)
        self._deltas += part.add_members(delta)

    def _end(self) -> None:
        self._is_whole = True
        for part in self._parts:
            self._deltas += part.close()


def _index(event: dict[str, Any]) -> int:
    value = event.get("index")
    return value if isinstance(value, int) else -1


def _lay_over(old: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        if value is not None or key not in old:
            old[key] = value


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The message as an unstreamed response has it."""
    message: dict[str, Any] = canonical.decode(result.response.envelope) if result.response.envelope else {}
    message["content"] = [canonical.decode(wire_object(block)) for block in whole(result.blocks)]
    if result.usage is not None and result.usage.wire:
        message["usage"] = canonical.decode(result.usage.wire)
    return message


_TRANSFORMATIONS = frozenset({"thinking_dropped", "thinking_mismatch_allowed"})
_CLEARED = "cleared_"


def report(envelope: str) -> Report:
    """What the envelope of a response reports; one that says nothing gives an empty report."""
    return Report(tuple(transformations(envelope)), tuple(applied_edits(envelope)))


def transformations(envelope_source: str) -> list[tuple[str, str]]:
    """(place in the request's messages, ``type: reason``) of each thinking block that was not taken as sent."""
    entries = _list(_envelope(envelope_source).get("input_transformations"))
    known = [entry for entry in entries if str(entry.get("type")) in _TRANSFORMATIONS]
    return [(str(entry.get("path", "")), f"{entry['type']}: {entry.get('reason', '')}") for entry in known]


def applied_edits(envelope_source: str) -> list[str]:
    """A sentence for each edit that the provider made to the context of the request."""
    management = _envelope(envelope_source).get("context_management")
    edits = _list(management.get("applied_edits")) if isinstance(management, dict) else []
    return [_sentence(edit) for edit in edits]


def _sentence(edit: dict[str, Any]) -> str:
    counts = [
        f"{value} {key.removeprefix(_CLEARED).replace('_', ' ')}"
        for key, value in edit.items()
        if key.startswith(_CLEARED)
    ]
    return f"{edit.get('type', 'an edit')} cleared {' and '.join(counts) or 'an unreported amount'}"


def _envelope(source: str) -> dict[str, Any]:
    return members_of(canonical.decode(source)) if source else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
