"""Response reader of the ``mistral`` dialect: bytes to deltas and blocks, and blocks to one response.

Promises: the same blocks whole, byte by byte and at any cut; thinking is released as it arrives; chunks of content
keep their order; what is not understood is kept (chunks, message fields, call fields, envelope). A body that breaks
off or cannot be read yields what arrived, ``complete=False`` and an error. Must not: do I/O, know hosts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Origin, Text, ToolCall
from thinkback.model.commits import Failure, Response
from thinkback.model.slices import whole
from thinkback.wire.choices import ChoicesReader, rest_of
from thinkback.wire.framing import Framing
from thinkback.wire.mistral import chunks
from thinkback.wire.mistral.blocks import wire_object
from thinkback.wire.mistral.message import MessageBuilder
from thinkback.wire.result import ReadOptions, ReadResult, Stop, outcome_of
from thinkback.wire.values import plain, source_of

_STOPS: dict[str, Stop] = {
    "": "",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "safety",
    "error": "error",
}


class Reader(ChoicesReader[chunks.Chunk]):
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "sse", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        super().__init__(origin, framing)
        self._decode = chunks.decode_chunk
        self._message = MessageBuilder(response)
        self._take = self._message.take
        self._begun = self._message.parts
        self._look_for_tags(options, response)

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        error = self._error or self._unfinished()
        blocks = self._split(self._message.blocks())
        stop = _STOPS.get(self._finish or "", "stop")
        response = Response(
            origin=msgspec.structs.replace(self._origin, served_model=self._model),
            id=self._id,
            finish=self._finish,
            complete=error is None and stop != "safety",
            content=self._message.content,
            message=source_of(self._message.extra),
            envelope=source_of(self._whole_envelope()),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(stop, blocks, error),
        )
        return ReadResult(response, tuple(blocks), chunks.read_usage(self._usage))

    def _read_chunk(self, payload: bytes, chunk: chunks.Chunk) -> None:
        """The fast path: a chunk with known keys only."""
        if not self._kept:
            self._kept["first"] = payload
        if chunk.model:
            self._model = chunk.model
        if chunk.id and not self._id:
            self._id = chunk.id
        for choice in chunk.choices or ():
            if choice.index:
                continue
            if choice.delta is not None:
                self._message.add(choice.delta)
            if choice.finish_reason:
                self._finish = choice.finish_reason
                self._keep("finish", payload)
        if chunk.usage:
            self._usage = chunk.usage
            self._keep("usage", payload)

    def _read_object(self, body: dict[str, Any]) -> None:
        self._id = self._id or plain(body.get("id"))
        self._model = plain(body.get("model")) or self._model
        self._envelope.update((key, value) for key, value in body.items() if key != "choices")
        choices = body.get("choices")
        if not isinstance(choices, list):
            choices = []
            if self._framing == "json":
                self._error = Failure("the response body has no choices", type="malformed")
        for choice in choices:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._read_choice(choice)
        usage = body.get("usage")
        self._usage = usage if usage and isinstance(usage, dict) else self._usage
        if body.get("error") or (not choices and _is_error(body)):
            self._error = chunks.read_failure(200, body)

    def _read_choice(self, choice: dict[str, Any]) -> None:
        self._choice.update(rest_of(choice))
        message, delta = choice.get("message"), choice.get("delta")
        if isinstance(message, dict):
            self._message.add_object(message, complete=True)
        elif isinstance(delta, dict):
            self._message.add_object(delta)
        self._finish = plain(choice.get("finish_reason")) or self._finish

    def _whole_envelope(self) -> dict[str, Any]:
        """Top-level and choice fields of the first and the closing chunks, later ones winning."""
        merged: dict[str, Any] = {}
        for payload in self._kept.values():
            merged.update(canonical.decode(payload))
        merged.update(self._envelope)
        envelope = {key: value for key, value in merged.items() if key not in ("choices", "usage", "error", "p")}
        return {**envelope, "choice": self._choice} if self._choice else envelope


def _is_error(body: dict[str, Any]) -> bool:
    """Whether an object without choices is an error: ``{"object": "error"}``, or a list of refused fields."""
    return body.get("object") == "error" or bool(body.get("message") or body.get("detail"))


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The message and envelope as the wire had them, joined from the blocks."""
    response = result.response
    message: dict[str, Any] = {"role": "assistant", **(canonical.decode(response.message) if response.message else {})}
    blocks = whole(result.blocks)
    said = [block for block in blocks if not isinstance(block, ToolCall)]
    texts = [block.text for block in said if isinstance(block, Text) and not block.wire]
    if response.content == "text":
        message["content"] = "".join(texts) if len(texts) == len(said) else [wire_object(block) for block in said]
    elif response.content == "null":
        message["content"] = None
    calls = [wire_object(block) for block in blocks if isinstance(block, ToolCall)]
    if calls:
        message["tool_calls"] = calls
    envelope: dict[str, Any] = canonical.decode(response.envelope) if response.envelope else {}
    extra = envelope.pop("choice", None)
    fields = extra if isinstance(extra, dict) else {}
    choice = {"index": 0, "message": message, "finish_reason": response.finish, **fields}
    if result.usage is not None:
        envelope["usage"] = canonical.decode(result.usage.wire)
    return {**envelope, "choices": [choice]}
