"""Streams and requests of the ``anthropic`` dialect: how they are made, fed, and written again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.wire.feeding import check, each_byte
from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin, ToolResult
from thinkback.model.commits import Draft, Message, Response, Tools
from thinkback.model.deltas import Delta
from thinkback.model.plan import NOTHING
from thinkback.wire.anthropic import Reader, read_request, write
from thinkback.wire.framing import Framing
from thinkback.wire.result import ReadRequest, ReadResult

ORIGIN = Origin("anthropic", "https://api.example.org/v1", "model")
HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "model": "served", "content": []}
START = {"type": "message_start", "message": {**HEAD, "stop_reason": None, "usage": {"input_tokens": 5}}}
STOP = {"type": "message_stop"}


def ending(reason: str | None = "end_turn", **top: Any) -> list[dict[str, Any]]:
    """The last two events of a stream."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}, **top}, STOP]


def opens(block: Any, index: int = 0) -> dict[str, Any]:
    """A block begins."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(kind: str, field: str, value: Any, index: int = 0) -> dict[str, Any]:
    """A delta of a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: value}}


def text(value: str, index: int = 0) -> dict[str, Any]:
    """A fragment of text."""
    return piece("text_delta", "text", value, index)


def thought(value: str, index: int = 0) -> dict[str, Any]:
    """A fragment of reasoning."""
    return piece("thinking_delta", "thinking", value, index)


def signature(value: str, index: int = 0) -> dict[str, Any]:
    """A signature."""
    return piece("signature_delta", "signature", value, index)


def fragment(value: str, index: int = 0) -> dict[str, Any]:
    """A fragment of a tool's input."""
    return piece("input_json_delta", "partial_json", value, index)


def stops(index: int = 0) -> dict[str, Any]:
    """A block ends."""
    return {"type": "content_block_stop", "index": index}


def sse(*events: Any) -> bytes:
    """The events as a stream, with padding as the provider has it; bytes stand for themselves."""
    lines: list[bytes] = []
    for at, event in enumerate(events):
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        name = b"" if isinstance(event, bytes) else b"event: %b\n" % str(event.get("type")).encode()
        lines.append(name + b"data: " + data + b" " * (at % 4) + b"\n\n")
    return b"".join(lines)


def stream(*events: Any, reason: str | None = "end_turn") -> bytes:
    """A whole stream around ``events``."""
    return sse(START, *events, *ending(reason))


def body(*blocks: Any, reason: str | None = "end_turn", **top: Any) -> bytes:
    """A response that is not streamed."""
    return json.dumps({**HEAD, "content": list(blocks), "stop_reason": reason, **top}).encode()


def feed(pieces: Iterable[bytes], framing: Framing = "sse") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    reader = Reader(ORIGIN, framing, None, "r1")
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.close()
    assert reader.finish == reader.result().response.finish
    return deltas, reader.result()


def read(raw: bytes) -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "json" if raw.startswith((b"{", b"[")) else "sse"
    deltas, result = feed([raw], framing)
    assert (deltas, result) == feed(each_byte(raw), framing)
    check(deltas, result)
    return result


def adopt(request: Mapping[str, Any]) -> ReadRequest:
    """A request body as values."""
    count = itertools.count(1)
    return read_request(request, lambda: f"r{next(count)}")


def rewrite(request: ReadRequest) -> dict[str, Any]:
    """The request that the writer makes of what was read: system messages before the first other one stand on top."""
    tools = [tool for draft in request.drafts if isinstance(draft.value, Tools) for tool in draft.value.tools]
    top: list[bytes] = []
    fragments: list[bytes] = []
    for group in _grouped(draft for draft in request.drafts if draft.kind != "tools"):
        if group[0].kind == "system" and not fragments:
            top.append(write.top(_message(group)))
        else:
            fragments += _fragments(group)
    end = write.end(request.model, tools, top, request.params)
    written: dict[str, Any] = canonical.decode(write.start + write.separator.join(fragments) + end)
    return written


def _grouped(drafts: Iterable[Draft]) -> Iterable[list[Draft]]:
    """A message, a response with its blocks, or all results that stand together."""
    group: list[Draft] = []
    for draft in drafts:
        if group and not (
            (draft.index >= 0 and group[0].kind == "response") or draft.kind == group[0].kind == "tool_result"
        ):
            yield group
            group = []
        group.append(draft)
    if group:
        yield group


def _fragments(group: Sequence[Draft]) -> tuple[bytes, ...]:
    first = group[0].value
    if isinstance(first, Response):
        blocks: list[Block] = [draft.value for draft in group[1:]]  # type: ignore[misc]
        return write.assistant(first, blocks, NOTHING)
    if isinstance(first, Message):
        return (write.message("system" if group[0].kind == "system" else "user", first),)
    return write.results([draft.value for draft in group if isinstance(draft.value, ToolResult)])


def _message(group: Sequence[Draft]) -> Message:
    value = group[0].value
    assert isinstance(value, Message)
    return value


def merged(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request in the form the provider reads it in: neighbouring user messages are one, system is a list."""
    system = request.get("system")
    same = {**request, "system": [{"type": "text", "text": system}]} if isinstance(system, str) else dict(request)
    messages: list[dict[str, Any]] = []
    for message in request["messages"]:
        if messages and message["role"] == messages[-1]["role"] == "user":
            messages[-1] = {"role": "user", "content": [*_blocks(messages[-1]), *_blocks(message)]}
        else:
            messages.append(message)
    return {**same, "messages": messages}


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
