"""Response reader of the ``openai-responses`` dialect: bytes to deltas and blocks, and blocks to one response.

Promises: the same blocks whole, byte by byte and at any cut; one block per output item, in order of arrival; what
``response.output_item.done`` says of an item counts, also where the closing event repeats it with other ciphertexts;
pieces are matched by ``output_index``, never by id, because hosts rotate ids. What is not understood is kept. A body
that breaks off or cannot be read yields what arrived, ``complete=False`` and an error. Must not: do I/O, know hosts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Origin, ThinkingBlock
from thinkback.model.commits import Failure, Response
from thinkback.model.slices import whole
from thinkback.wire.documents import NOT_LISTED
from thinkback.wire.framing import Framing
from thinkback.wire.openai_responses import events
from thinkback.wire.openai_responses.blocks import thoughts, wire_object
from thinkback.wire.openai_responses.output import Output
from thinkback.wire.placeholders import Placeholders, parted
from thinkback.wire.reader import BodyReader
from thinkback.wire.result import UNDER_WAY, ReadOptions, ReadResult, Report, Stop, outcome_of
from thinkback.wire.sources import items, joined, members
from thinkback.wire.values import plain

_STOPS: dict[str, Stop] = {"completed": "stop", "failed": "error", "cancelled": "error"}
_INCOMPLETE: dict[object, Stop] = {"max_output_tokens": "length", "content_filter": "safety"}
_CLOSING = {f"response.{status}": status for status in ("completed", "incomplete", "failed", "cancelled")}
# An object that has one of these and is nothing else is an error.
_ERRORS = ("error", "message", "detail")
_OPENING = frozenset({"response.created", "response.queued", "response.in_progress"})


class Reader(BodyReader):
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "sse", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        super().__init__(origin, framing)
        self._output = Output(response)
        self._take = self._output.take
        self._begun = self._output.items
        self._placeholders = Placeholders()
        self._look_for_tags(options, response)
        self._body: dict[str, Any] = {}
        self._sources: dict[str, str] = {}
        self._status = ""

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        error = self._error or self._unfinished()
        blocks = self._split(self._output.blocks())
        usage = events.read_usage(self._body.get("usage"))
        stop = self._stop()
        response = Response(
            origin=msgspec.structs.replace(self._origin, served_model=plain(self._body.get("model"))),
            id=plain(self._body.get("id")),
            finish=self.finish,
            complete=error is None and stop != "safety",
            envelope=self._envelope(usage is not None, error is not None),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(stop, blocks, error),
        )
        return ReadResult(response, tuple(blocks), usage)

    @property
    def finish(self) -> str | None:
        """The closing ``status`` as reported; ``None`` while none came."""
        return self._status or None

    def _stop(self) -> Stop:
        if self._status != "incomplete":
            return _STOPS.get(self._status, "")
        details = self._body.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return _INCOMPLETE.get(reason, "") if isinstance(reason, str) else ""

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although no error said so outright."""
        if self._status in ("completed", "incomplete"):
            return None
        if self._status in _STOPS:
            return Failure(f"the provider ended the response with status {self._status}", type="error")
        # A stream may end with it, too: nothing came of the answer yet.
        is_queued = self._tail is None and not self._begun and self._body.get("status") == "queued"
        status = self._status or ("queued" if is_queued else "")
        if status:
            return Failure(f"the response is not finished: its status is {status}", type=UNDER_WAY, code=status)
        return super()._unfinished()

    def _envelope(self, has_usage: bool, has_error: bool) -> str:
        """What of the response object no block, no ``usage`` and no ``error`` has; an empty ``null`` stays."""
        read = {"output"} | ({"usage"} if has_usage else set()) | ({"error"} if has_error else set())
        rest = {key: source for key, source in self._sources.items() if key not in read}
        return joined(rest) if rest else ""

    def _read(self, payloads: list[bytes]) -> None:
        add = self._output.add
        pieces, decode = events.PIECES, events.decode_event
        for payload in payloads:
            try:
                event = decode(payload)
            except NOT_LISTED:
                self._read_other(payload)
            else:
                piece = pieces.get(event.type)
                if piece is None or event.delta is None:
                    self._read_other(payload)
                else:
                    index = event.summary_index if piece.field == "summary" else event.content_index
                    add(event.output_index, piece, index, event.delta)
            if self._error is not None:
                return

    def _read_other(self, payload: bytes) -> None:
        """Everything but the pieces of text: whole bodies, beginnings and ends, errors, what nobody knows."""
        text = payload.strip()
        if text == b"[DONE]":
            self._is_whole = True
        elif text:
            body = self._object(payload)
            if body is not None:
                self._read_object(body, payload)

    def _read_object(self, body: dict[str, Any], payload: bytes) -> None:
        match body.get("type"):
            case str(kind) if kind in events.PIECES and isinstance(body.get("delta"), str):
                piece = events.PIECES[kind]
                at = _index(body, "summary_index" if piece.field == "summary" else "content_index") or 0
                self._output.add(_index(body), piece, at, body["delta"])
            case "response.output_item.added":
                if isinstance(body.get("item"), dict):
                    self._output.begin(_index(body), body["item"])
            case "response.output_item.done":
                if isinstance(body.get("item"), dict):
                    self._output.finish(_index(body), body["item"], members(payload)["item"])
            case "response.content_part.added":
                self._output.begin_part(_index(body), "content", _index(body, "content_index") or 0, body.get("part"))
            case "response.reasoning_summary_part.added":
                self._output.begin_part(_index(body), "summary", _index(body, "summary_index") or 0, body.get("part"))
            case str(kind) if kind in _CLOSING or kind in _OPENING:
                self._read_response(body, payload, _CLOSING.get(kind, ""))
            case None if body.get("object") == "response" or isinstance(body.get("output"), list):
                self._is_whole = True
                self._close(body, members(payload), plain(body.get("status")))
            case "error":
                self._error = events.read_failure(200, body)
            case kind if (kind is None or self._framing == "json") and any(body.get(key) for key in _ERRORS):
                self._error = events.read_failure(200, body)
            case _ if self._framing == "json":
                self._error = Failure("the response body has no output", type="malformed")

    def _read_response(self, event: dict[str, Any], payload: bytes, status: str) -> None:
        """The response object of an event, and what stands beside it."""
        sources = {key: source for key, source in members(payload).items() if key not in ("type", "sequence_number")}
        response = event.get("response")
        if isinstance(response, dict):
            sources.update(members(sources.pop("response")))
        else:
            response = {}
        if status:
            self._close(response, sources, plain(response.get("status")) or status)
        else:
            self._note(response, sources)

    def _close(self, body: dict[str, Any], sources: dict[str, str], status: str) -> None:
        self._note(body, sources)
        self._status = status
        if isinstance(body.get("output"), list):
            self._output.settle(body["output"], items(sources["output"]))
        if body.get("error"):
            self._error = events.read_failure(200, body)

    def _note(self, body: dict[str, Any], sources: dict[str, str]) -> None:
        self._body.update(body)
        self._sources.update(sources)


def _index(event: dict[str, Any], name: str = "output_index") -> int | None:
    index = event.get(name)
    return index if isinstance(index, int) else None


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The response object as the host would have given it in one piece."""
    envelope = result.response.envelope
    response: dict[str, Any] = canonical.decode(envelope) if envelope else {}
    response["output"] = [canonical.decode(wire_object(block)) for block in whole(result.blocks)]
    if result.usage is not None:
        response["usage"] = canonical.decode(result.usage.wire)
    return response


def joined_thought(block: ThinkingBlock) -> str:
    """The parts of a reasoning item without anything between them, as they are on the wire."""
    item = canonical.decode(wire_object(block))
    return parted("".join(thoughts(item.get("content" if block.kind == "raw" else "summary"))))[1]


class _Envelope(msgspec.Struct):
    """The one field of an envelope that is read here; hosts put anything into it."""

    input_transformations: Any = None


def report(envelope: str) -> Report:
    """What the envelope of a response reports; one that says nothing gives an empty report."""
    return Report(tuple(transformations(envelope)))


def transformations(envelope_source: str) -> list[tuple[str, str]]:
    """(item id, ``removed: reason``) of each input item that the server withheld from the model, in input order.

    ``envelope_source`` is ``Response.envelope``; one that says nothing gives an empty list.
    """
    told = canonical.decode(envelope_source, _Envelope).input_transformations if envelope_source else None
    return [
        (str(entry.get("id") or ""), _describe_edit(entry))
        for entry in (told if isinstance(told, list) else ())
        if isinstance(entry, dict)
    ]


def _describe_edit(entry: dict[str, Any]) -> str:
    action, reason = str(entry.get("action") or "changed"), str(entry.get("reason") or "")
    return f"{action}: {reason}" if reason else action
