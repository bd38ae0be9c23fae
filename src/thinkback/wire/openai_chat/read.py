"""Response reader of the ``openai-chat`` dialect: bytes to deltas and blocks, and blocks to one response.

Promises: the same blocks whole, byte by byte and at any cut; reasoning is released as it arrives; one text even
where several fields repeat it; what is not understood is kept (message fields, call fields, envelope). A body that
breaks off or cannot be read yields what arrived, ``complete=False`` and an error. Must not: do I/O, know hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin, Text, ThinkingBlock, ToolCall, Unknown, content_slice, wire_object
from thinkback.model.commits import Failure, Response
from thinkback.wire.choices import ChoicesReader, rest_of
from thinkback.wire.framing import Framing
from thinkback.wire.openai_chat import chunks
from thinkback.wire.openai_chat.message import MessageBuilder
from thinkback.wire.openai_chat.reasoning import OPAQUE
from thinkback.wire.placeholders import Placeholders
from thinkback.wire.result import AS_BUILT, ReadOptions, ReadResult, Stop, outcome_of
from thinkback.wire.values import source_of

_STOPS: dict[str | None, Stop] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "safety",
    "error": "error",
    None: "",
}


class Reader(ChoicesReader[chunks.Chunk]):
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "sse", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        super().__init__(origin, framing)
        self._decode = chunks.decode_chunk
        self._message = MessageBuilder(response, options or AS_BUILT)
        self._take = self._message.take
        self._begun = self._message.parts
        self._placeholders = Placeholders()
        self._logprobs: dict[str, list[Any]] = {}

    def _release(self) -> None:
        ended = self._error is None and self.finish is not None
        self._message.close(ended and _STOPS.get(self.finish, "stop") in ("stop", "tool_calls"))

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        error = self._error or self._unfinished()
        blocks = self._message.blocks()
        stop = _STOPS.get(self.finish, "stop")
        response = Response(
            origin=msgspec.structs.replace(self._origin, served_model=self._model),
            id=self._id,
            finish=self._finish,
            complete=error is None and stop != "safety",
            content=self._message.content,
            message=source_of(self._message.extra),
            envelope=source_of(self._whole_envelope()),
            repeats=self._message.repeats,
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
            if choice.finish_reason is not None:
                self._note_finish(choice.finish_reason)
                self._keep("finish", payload)
            if choice.usage:
                self._note_usage(payload, choice.usage)
        if chunk.usage:
            self._note_usage(payload, chunk.usage)

    def _note_finish(self, reason: str) -> None:
        # Some hosts send "" in every chunk; it never takes back what was said.
        self._finish = reason or self._finish or ""

    def _note_usage(self, payload: bytes, usage: dict[str, Any]) -> None:
        self._usage = usage
        self._keep("usage", payload)

    def _read_object(self, body: dict[str, Any]) -> None:
        self._id = self._id or _plain(body.get("id"))
        self._model = _plain(body.get("model")) or self._model
        self._envelope.update({key: value for key, value in body.items() if key != "choices"})
        choices = body.get("choices")
        if not isinstance(choices, list):
            choices = []
            if self._framing == "json":
                self._error = Failure("the response body has no choices", type="malformed")
        for choice in choices:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._read_choice(choice)
        self._usage = _usage_of(body) or self._usage
        if body.get("error") or (not choices and _is_error(body)):
            self._error = chunks.read_failure(200, body)

    def _read_choice(self, choice: dict[str, Any]) -> None:
        rest = rest_of(choice)
        logprobs = rest.pop("logprobs", None)
        for key, value in logprobs.items() if isinstance(logprobs, dict) else ():
            if isinstance(value, list):
                self._logprobs.setdefault(key, []).extend(value)
        self._choice.update(rest)
        message, delta = choice.get("message"), choice.get("delta")
        if isinstance(message, dict):
            self._message.add_object(message, complete=True)
        elif isinstance(delta, dict):
            self._message.add_object(delta)
        if choice.get("finish_reason") is not None:
            self._note_finish(str(choice["finish_reason"]))
        self._usage = _usage_of(choice) or self._usage
        if choice.get("error"):
            self._error = chunks.read_failure(200, choice)

    def _whole_envelope(self) -> dict[str, Any]:
        """Top-level and choice fields of the first and the closing chunks, later ones winning."""
        merged: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for payload in self._kept.values():
            body = canonical.decode(payload)
            merged.update({key: value for key, value in body.items() if key != "choices"})
            for choice in body.get("choices") or ():
                rest.update(rest_of(choice))
        merged.update(self._envelope)
        rest.update(self._choice)
        if self._logprobs:
            rest["logprobs"] = self._logprobs
        if rest:
            merged["choice"] = rest
        return {key: value for key, value in merged.items() if key not in ("usage", "error")}


def _usage_of(holder: dict[str, Any]) -> dict[str, Any] | None:
    """The usage of a chunk or a choice; Groq has it under ``x_groq``, Kimi in the choice."""
    groq = holder.get("x_groq")
    for usage in (holder.get("usage"), groq.get("usage") if isinstance(groq, dict) else None):
        if usage and isinstance(usage, dict):
            return usage
    return None


def _is_error(body: dict[str, Any]) -> bool:
    """Whether an object without choices is an error although it has no ``error`` key (vLLM, DashScope, FastAPI)."""
    return isinstance(body.get("message"), str) or bool(body.get("detail"))


def _plain(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""


def _is_part(block: Block) -> TypeGuard[Text | ThinkingBlock | Unknown]:
    """Whether a block is a part of a content list, where content is one."""
    if isinstance(block, ThinkingBlock):
        return block.source_field == "content" and block.wire != ""
    return isinstance(block, Unknown) or (isinstance(block, Text) and block.source_field == "content")


def _part(block: Text | ThinkingBlock | Unknown) -> Any:
    """``block`` as it stood in a list of content parts."""
    return {"type": "text", "text": block.text} if isinstance(block, Text) and not block.wire else _json(block.wire)


def _json(source: str) -> Any:
    return canonical.decode(source)


def _repeated(blocks: Sequence[Block]) -> str:
    """The text that the fields in ``repeats`` carried: what is read of the message's other reasoning fields."""
    thoughts = [b for b in blocks if isinstance(b, ThinkingBlock) and b.source_field != "content" and not b.is_hidden]
    return "".join(block.opening + block.thought for block in thoughts)


def _grow(message: dict[str, Any], field: str, text: str) -> None:
    """Text goes on in its field; what else a stream once put there gives way."""
    before = message.get(field)
    message[field] = before + text if isinstance(before, str) else text


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The message and envelope as the wire had them, joined from the blocks."""
    response = result.response
    message: dict[str, Any] = {"role": "assistant", **(_json(response.message) if response.message else {})}
    details: list[Any] = []
    calls: list[Any] = []
    for block in result.blocks:
        if isinstance(block, Text) and not block.text:
            continue  # it only holds the signature of the message
        if isinstance(block, Text | ThinkingBlock) and block.source_field == "content":
            _grow(message, "content", content_slice(block))
        elif isinstance(block, ThinkingBlock) and block.source_field == "reasoning_details":
            details.append(_json(block.wire))
        elif isinstance(block, ThinkingBlock):
            if content_slice(block) or not block.carriers:
                _grow(message, block.source_field, content_slice(block))
            message.update((OPAQUE, carrier.value) for carrier in block.carriers)
        elif isinstance(block, Text):
            _grow(message, block.source_field, block.text)
        elif isinstance(block, ToolCall) and block.source_field == "tool_calls":
            calls.append(_json(wire_object(block)))
    parts = [block for block in result.blocks if _is_part(block)]
    if any(part.wire for part in parts):
        message["content"] = [_part(part) for part in parts]
    if calls:
        message["tool_calls"] = calls
    if details:
        message["reasoning_details"] = details
    message.update(dict.fromkeys(response.repeats, _repeated(result.blocks)))
    if response.content == "null":
        message.setdefault("content", None)
    elif response.content == "text":
        message.setdefault("content", "")
    envelope: dict[str, Any] = _json(response.envelope) if response.envelope else {}
    extra = envelope.pop("choice", None)
    fields = extra if isinstance(extra, dict) else {}
    choice = {"index": 0, "message": message, "finish_reason": response.finish, **fields}
    if result.usage is not None and result.usage.wire:
        envelope["usage"] = _json(result.usage.wire)
    return {**envelope, "choices": [choice]}
