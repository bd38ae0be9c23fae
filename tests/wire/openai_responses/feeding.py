"""Streams, bodies and requests of the ``openai-responses`` dialect for its tests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.wire.feeding import check, each_byte
from thinkback.model.blocks import Block, Origin, ToolResult
from thinkback.model.commits import Draft, Message, Response, Tools
from thinkback.model.deltas import Delta
from thinkback.model.plan import NOTHING
from thinkback.wire.framing import Framing
from thinkback.wire.openai_responses import Reader, read_request, write
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
    datas = [found if isinstance(found, bytes) else json.dumps(found).encode() for found in events]
    return b"".join(b"data: " + data + b"\n\n" for data in datas)


def feed(pieces: Iterable[bytes], framing: Framing = "sse") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    reader = Reader(ORIGIN, framing, None, "r1")
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.close()
    return deltas, reader.result()


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
    counter = itertools.count()
    found = read_request(body, lambda: f"r{next(counter)}", ORIGIN)
    written: dict[str, Any] = json.loads(write_drafts(found.drafts, found.model, found.params))
    return written


def write_drafts(drafts: Sequence[Draft], model: str, params: dict[str, Any]) -> bytes:
    """The request of some drafts, each written where it stands."""
    fragments: list[bytes] = []
    tools = [tool for draft in drafts if isinstance(draft.value, Tools) for tool in draft.value.tools]
    for at, draft in enumerate(drafts):
        value = draft.value
        if isinstance(value, Message):
            fragments.append(write.message("system" if draft.kind == "system" else "user", value))
        elif isinstance(value, Response):
            blocks = [found.value for found in drafts[at + 1 : at + 1 + value.blocks]]
            fragments += write.assistant(value, [found for found in blocks if isinstance(found, Block)], NOTHING)
        elif isinstance(value, ToolResult):
            fragments += write.results([value])
    return write.start + write.separator.join(fragments) + write.end(model, tools, [], params)
