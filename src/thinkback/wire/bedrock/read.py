"""Response reader of the ``bedrock`` dialect: bytes to deltas and blocks, and blocks to one response.

Promises: the same blocks whole, byte by byte and at any cut, and the same for a body as for the stream of it;
reasoning is released as it arrives; what is not understood is kept (content blocks, envelope). A body that breaks off
or cannot be read yields what arrived, ``complete=False`` and an error. Must not: do I/O, know models.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure, Response
from thinkback.wire.bedrock import events
from thinkback.wire.bedrock.blocks import content_objects
from thinkback.wire.bedrock.message import MessageBuilder
from thinkback.wire.documents import NOT_LISTED
from thinkback.wire.framing import Framing
from thinkback.wire.reader import BodyReader
from thinkback.wire.result import AS_BUILT, ReadOptions, ReadResult, outcome_of
from thinkback.wire.values import members_of, source_of

# The provider's own filter stopped the response: what arrived is not the model's answer.
_FILTERED = frozenset({"safety", "refusal"})
_EVENTS = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
)


class Reader(BodyReader):
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "event-stream", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        super().__init__(origin, framing)
        self._message = MessageBuilder(response, (options or AS_BUILT).tags)
        self._take = self._message.take
        self._begun = self._message.parts
        self._usage: Any = None
        self._envelope: dict[str, Any] = {}
        self._extra: dict[str, Any] = {}

    def _release(self) -> None:
        self._message.close()

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        stop = events.STOPS.get(self._finish or "", "")
        error = self._error or self._unfinished()
        blocks = self._message.blocks()
        response = Response(
            origin=self._origin,
            finish=self._finish,
            complete=error is None and stop not in _FILTERED,
            message=source_of(self._extra),
            envelope=source_of(self._envelope),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(stop, blocks, error),
        )
        return ReadResult(response, blocks, events.read_usage(self._usage))

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although nothing said so outright."""
        if events.STOPS.get(self._finish or "") == "error":
            return Failure(f"the provider ended the response with stopReason {self._finish}", type="error")
        return super()._unfinished()

    def _read(self, payloads: list[bytes]) -> None:
        decode, add = events.decode_event, self._message.add
        for payload in payloads:
            try:
                event = decode(payload).contentBlockDelta
            except NOT_LISTED:
                self._read_other(payload)
                if self._error is not None:
                    return
            else:
                add(event.contentBlockIndex, event.delta)

    def _read_other(self, payload: bytes) -> None:
        """The slow path: whole bodies, and everything but the usual deltas."""
        body = self._object(payload)
        if body is None:
            return
        if body.keys() & _EVENTS:
            for key, value in body.items():
                self._read_event(key, value if isinstance(value, dict) else {})
        elif "output" in body:
            self._read_body(payload, body)
        elif events.is_error(body):
            self._error = events.read_failure(200, body)
        elif self._framing == "json":
            self._error = Failure("the response body has no output", type="malformed")
        else:
            self._envelope.update(body)

    def _read_event(self, type: str, event: dict[str, Any]) -> None:
        index = event.pop("contentBlockIndex", 0)
        index = index if isinstance(index, int) else 0
        match type:
            case "contentBlockDelta":
                self._message.add_object(index, members_of(event.get("delta")))
            case "contentBlockStart":
                self._message.start(index, members_of(event.get("start")))
            case "contentBlockStop":
                self._message.stop(index)
            case _:
                self._read_rest(event)

    def _read_rest(self, holder: dict[str, Any]) -> None:
        """The fields of a body, or of the events that a stream spreads them over."""
        rest = {key: value for key, value in holder.items() if key not in ("output", "role", "p")}
        finish = rest.pop("stopReason", None)
        self._finish = finish if isinstance(finish, str) else self._finish
        self._usage = rest.pop("usage", None) or self._usage
        self._envelope.update(rest)

    def _read_body(self, payload: bytes, body: dict[str, Any]) -> None:
        output = members_of(body["output"])
        message = members_of(output.get("message"))
        content = message.get("content")
        if not isinstance(content, list):
            said = isinstance(output.get("__type"), str)
            no_message = Failure("the response body has no message", type="malformed")
            self._error = events.read_failure(200, output) if said else no_message
            return
        for block, source, input in _blocks(payload, content):
            self._message.add_block(block, source, input)
        self._extra = {key: value for key, value in message.items() if key not in ("role", "content")}
        self._read_rest(body)
        self._is_whole = True


class _Call(msgspec.Struct, gc=False):
    input: msgspec.Raw = msgspec.Raw(b"")


class _Block(msgspec.Struct, gc=False):
    toolUse: _Call | None = None


class _Message(msgspec.Struct, gc=False):
    content: list[msgspec.Raw]


class _Output(msgspec.Struct, gc=False):
    message: _Message


class _Body(msgspec.Struct, gc=False):
    output: _Output


_decode_body = msgspec.json.Decoder(_Body).decode
_decode_block = msgspec.json.Decoder(_Block).decode


def _blocks(payload: bytes, content: list[Any]) -> list[tuple[Any, str, str]]:
    """Each content block, its JSON source text, and that of the input of the call in it."""
    try:
        raws = _decode_body(payload).output.message.content
        return [(canonical.decode(bytes(raw)), bytes(raw).decode(), _input_of(raw)) for raw in raws]
    except NOT_LISTED:
        return [(block, canonical.source(block), "") for block in content]


def _input_of(block: msgspec.Raw) -> str:
    call = _decode_block(block).toolUse if b'"toolUse"' in bytes(block) else None
    return bytes(call.input).decode() if call is not None else ""


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The response as Converse gives it, joined from the blocks; a streamed one looks like any other."""
    response, usage = result.response, result.usage
    message: dict[str, Any] = canonical.decode(response.message) if response.message else {}
    content = [canonical.decode(source) for source, _ in content_objects(result.blocks)]
    raw: dict[str, Any] = {"output": {"message": {"role": "assistant", **message, "content": content}}}
    if response.finish is not None:
        raw["stopReason"] = response.finish
    if usage is not None and usage.wire:
        raw["usage"] = canonical.decode(usage.wire)
    return {**raw, **(canonical.decode(response.envelope) if response.envelope else {})}
