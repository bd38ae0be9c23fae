"""Response reader of the ``cohere`` dialect: bytes to deltas and blocks.

Promises: the same blocks whole, byte by byte and at any cut, and the same for a body as for the stream of it;
thinking is released as it arrives; what is not understood is kept (content items, message fields, envelope). A body
that breaks off or cannot be read yields what arrived, ``complete=False`` and an error. Must not: do I/O, know models.
"""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure, Response
from thinkback.model.deltas import Delta
from thinkback.wire.cohere import events
from thinkback.wire.cohere.message import MessageBuilder
from thinkback.wire.documents import read_object
from thinkback.wire.framing import FRAMERS, Framing
from thinkback.wire.result import ReadOptions, ReadResult, outcome_of

_DELTAS = frozenset({"content-delta", "tool-call-delta", "tool-plan-delta"})


class Reader:
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "sse", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        self._origin = origin
        self._framing = framing
        self._framer = FRAMERS[framing]()
        self._message = MessageBuilder(response)
        self._id = ""
        self._finish: str | None = None
        self._usage: Any = None
        self._is_whole = False
        self._tail: Failure | None = None
        self._error: Failure | None = None
        self._envelope: dict[str, Any] = {}
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
        """The body has ended: an event that had no end is read as far as it goes."""
        rest = self._framer.close()
        if self._error is None:
            self._read(rest)
            if self._framing != "json" and self._error is not None and self._error.type == "malformed":
                # The last event had no end: it is cut off rather than malformed.
                self._tail = Failure("the stream ended in the middle of an event", type="truncated")
                self._error = None
        return self._message.take()

    def fail(self, failure: Failure) -> None:
        """The connection broke or the caller stopped reading; the first failure stays."""
        self._error = self._error or failure

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        stop = events.STOPS.get(self._finish or "", "")
        error = self._error or self._unfinished()
        blocks = self._message.blocks()
        envelope = {**self._envelope, **({"logprobs": self._logprobs} if self._logprobs else {})}
        response = Response(
            origin=self._origin,
            id=self._id,
            finish=self._finish,
            complete=error is None and stop != "safety",
            content=self._message.content,
            message=_source(self._message.extra),
            envelope=_source(envelope),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(stop, blocks, error),
        )
        return ReadResult(response, blocks, events.read_usage(self._usage))

    @property
    def finish(self) -> str | None:
        """``finish_reason`` as reported; ``None`` while none came."""
        return self._finish or None

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although nothing said so outright."""
        if events.STOPS.get(self._finish or "") == "error":
            return Failure(f"the provider ended the response with finish_reason {self._finish}", type="error")
        if self._finish or self._is_whole:
            return None
        return self._tail or Failure("the stream ended before the response was finished", type="truncated")

    def _read(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            try:
                event = events.decode_event(payload)
            except events.NOT_LISTED:
                self._read_other(payload)
                if self._error is not None:
                    return
            else:
                if event.type in _DELTAS:
                    self._message.add(event.index, event.delta.message)

    def _read_other(self, payload: bytes) -> None:
        """The slow path: whole bodies, and everything but the usual deltas."""
        if payload.strip() == b"[DONE]":
            return
        body = read_object(payload)
        if isinstance(body, Failure):
            self._error = body
            return
        self._id = self._id or _plain(body.pop("id", ""))
        message, type = body.get("message"), body.get("type")
        if isinstance(type, str) and type != "error" and not isinstance(message, str):
            del body["type"]
            self._read_event(type, body)
        elif isinstance(message, dict):
            del body["message"]
            self._message.add_message(message)
            self._read_end(body)
            self._is_whole = True
        elif type == "error" or isinstance(message, str) or "error" in body or "detail" in body:
            self._error = events.read_failure(200, body)
        else:
            self._error = Failure("the response body has no message", type="malformed")

    def _read_event(self, type: str, event: dict[str, Any]) -> None:
        index, delta = event.pop("index", 0), event.pop("delta", None)
        index, delta = index if isinstance(index, int) else 0, delta if isinstance(delta, dict) else {}
        logprobs = event.pop("logprobs", None)
        if logprobs is not None:
            self._logprobs.append(logprobs)
        self._envelope.update(event)
        message = delta.pop("message", None)
        if isinstance(message, dict):
            self._message.add_object(index, message, begins=type.endswith("-start"))
        if type == "message-end":
            self._read_end(delta)

    def _read_end(self, end: dict[str, Any]) -> None:
        """How it ended, from a whole body or the last event."""
        finish = end.pop("finish_reason", None)
        self._finish = finish if isinstance(finish, str) else self._finish
        self._usage = end.pop("usage", None) or self._usage
        error = end.pop("error", None)
        if error:
            self._error = events.read_failure(200, {"error": error})
        self._envelope.update(end)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else ""


def _source(value: dict[str, Any]) -> str:
    return canonical.source(value) if value else ""
