"""Streams, bodies and requests of the ``openai-responses`` dialect for its tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.wire import feeding, rewriting
from tests.wire.feeding import check, each_byte, fed
from thinkback.model.blocks import Origin
from thinkback.model.deltas import Delta
from thinkback.wire.framing import Framing
from thinkback.wire.openai_responses import write
from thinkback.wire.openai_responses.read import Reader
from thinkback.wire.openai_responses.read_request import read_request
from thinkback.wire.result import ReadResult

ORIGIN = Origin("openai-responses", "https://api.example.org/v1", "model")
USAGE = {
    "input_tokens": 75,
    "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 6},
    "output_tokens": 120,
    "output_tokens_details": {"reasoning_tokens": 96},
    "total_tokens": 195,
}


def reasoning(*summary: str, **fields: Any) -> dict[str, Any]:
    """A reasoning item."""
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": "rs_1", "summary": parts, **fields}


def raw_thought(*texts: str) -> list[dict[str, Any]]:
    """The ``content`` of a reasoning item that is not hidden."""
    return [{"type": "reasoning_text", "text": text} for text in texts]


def message(*texts: str, **fields: Any) -> dict[str, Any]:
    """A message item."""
    parts = [{"type": "output_text", "annotations": [], "logprobs": [], "text": text} for text in texts]
    return {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": parts, **fields}


def call(arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    """A function call item."""
    head = {"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "call_1", "name": "f"}
    return {**head, "arguments": arguments, **fields}


def custom(text: str = "ls", **fields: Any) -> dict[str, Any]:
    """A custom tool call item."""
    head = {"type": "custom_tool_call", "id": "ctc_1", "status": "completed", "call_id": "call_2", "name": "shell"}
    return {**head, "input": text, **fields}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    """A response object."""
    head = {"id": "resp_1", "object": "response", "status": "completed", "model": "served", "error": None}
    return {**head, "output": list(output), "usage": USAGE, **fields}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    """An event."""
    return {"type": f"response.{kind}", "sequence_number": 1, **fields}


def added(item: Any, index: int = 0) -> dict[str, Any]:
    """An item begins."""
    return event("output_item.added", output_index=index, item=item)


def done(item: Any, index: int = 0) -> dict[str, Any]:
    """An item is whole."""
    return event("output_item.done", output_index=index, item=item)


def delta(kind: str, text: str, index: int = 0, part: int = 0) -> dict[str, Any]:
    """A fragment of an item."""
    name = "summary_index" if "summary" in kind else "content_index"
    return event(f"{kind}.delta", output_index=index, item_id="rotates", delta=text, **{name: part}, obfuscation="x")


def completed(*output: Any, **fields: Any) -> dict[str, Any]:
    """The closing event."""
    return event("completed", response=response(*output, **fields))


def sse(*events: Any) -> bytes:
    """The events as a stream; bytes stand for themselves."""
    return feeding.sse(*events, done=False)


def feed(pieces: Iterable[bytes], framing: Framing = "sse") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    return fed(Reader(ORIGIN, framing, None, "r1"), pieces)


def read_deltas(raw: bytes, lawful: bool = True) -> tuple[list[Delta], ReadResult]:
    """Deltas and result of a body, the same byte by byte; ``lawful``: the deltas say what the blocks say."""
    framing: Framing = "json" if raw.startswith(b"{") else "sse"
    whole = feed([raw], framing)
    assert whole == feed(each_byte(raw), framing)
    if lawful:
        check(*whole)
    return whole


def read(*events: Any) -> ReadResult:
    """The result of a stream of events."""
    return read_deltas(sse(*events))[1]


def read_body(body: Mapping[str, Any]) -> ReadResult:
    """The result of a response that is not streamed."""
    return read_deltas(json.dumps(body).encode())[1]


def rewritten(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request body, read and written again."""
    return rewriting.rewrite(write, rewriting.adopt(read_request, body))
