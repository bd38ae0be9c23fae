"""Response reader of the ``cohere`` dialect: bytes to deltas and blocks, and blocks to one response.

Promises: the same blocks whole, byte by byte and at any cut, and the same for a body as for the stream of it;
thinking is released as it arrives; what is not understood is kept (content items, message fields, envelope). A body
that breaks off or cannot be read yields what arrived, ``complete=False`` and an error. Must not: do I/O, know models.
"""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Origin, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Failure, Response
from thinkback.model.slices import whole
from thinkback.wire.cohere import events
from thinkback.wire.cohere.blocks import wire_object
from thinkback.wire.cohere.message import MessageBuilder
from thinkback.wire.documents import NOT_LISTED
from thinkback.wire.framing import Framing
from thinkback.wire.reader import BodyReader
from thinkback.wire.result import ReadOptions, ReadResult, outcome_of
from thinkback.wire.values import plain, source_of

_DELTAS = frozenset({"content-delta", "tool-call-delta", "tool-plan-delta"})


class Reader(BodyReader):
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "sse", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        super().__init__(origin, framing)
        self._message = MessageBuilder(response)
        self._take = self._message.take
        self._begun = self._message.parts
        self._look_for_tags(options, response)
        self._id = ""
        self._usage: Any = None
        self._envelope: dict[str, Any] = {}
        self._logprobs: list[Any] = []

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        stop = events.STOPS.get(self._finish or "", "")
        error = self._error or self._unfinished()
        blocks = tuple(self._split(self._message.blocks()))
        envelope = {**self._envelope, **({"logprobs": self._logprobs} if self._logprobs else {})}
        response = Response(
            origin=self._origin,
            id=self._id,
            finish=self._finish,
            complete=error is None and stop != "safety",
            content=self._message.content,
            message=source_of(self._message.extra),
            envelope=source_of(envelope),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(stop, blocks, error),
        )
        return ReadResult(response, blocks, events.read_usage(self._usage))

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although nothing said so outright."""
        if events.STOPS.get(self._finish or "") == "error":
            return Failure(f"the provider ended the response with finish_reason {self._finish}", type="error")
        return super()._unfinished()

    def _read(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            try:
                event = events.decode_event(payload)
            except NOT_LISTED:
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
        body = self._object(payload)
        if body is None:
            return
        self._id = self._id or plain(body.pop("id", ""))
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


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The response as Cohere gives it, joined from the blocks; a streamed one looks like any other."""
    response, usage = result.response, result.usage
    message: dict[str, Any] = {"role": "assistant"}
    items = []
    for block in whole(result.blocks):
        if isinstance(block, ToolCall):
            message.setdefault("tool_calls", []).append(canonical.decode(wire_object(block)))
        elif isinstance(block, ThinkingBlock) and block.source_field == "tool_plan":
            message["tool_plan"] = block.thought
        else:
            items.append(block)
    texts = [block.text for block in items if isinstance(block, Text)]
    if response.content == "text" and len(texts) == len(items):
        message["content"] = "".join(texts)
    elif items:
        message["content"] = [canonical.decode(wire_object(block)) for block in items]
    message |= canonical.decode(response.message) if response.message else {}
    raw: dict[str, Any] = {"id": response.id, "message": message}
    if response.finish is not None:
        raw["finish_reason"] = response.finish
    if usage is not None and usage.wire:
        raw["usage"] = canonical.decode(usage.wire)
    return {**raw, **(canonical.decode(response.envelope) if response.envelope else {})}
