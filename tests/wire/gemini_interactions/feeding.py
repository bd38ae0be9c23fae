"""Streams and requests of the ``gemini-interactions`` dialect: how they are made, fed, and written again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.wire.feeding import check, each_byte
from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin, ToolResult
from thinkback.model.commits import Draft, Message, Response, Tools
from thinkback.model.deltas import Delta
from thinkback.model.plan import NOTHING
from thinkback.wire.framing import Framing
from thinkback.wire.gemini_interactions import Reader, read_request, write
from thinkback.wire.result import ReadRequest, ReadResult

ORIGIN = Origin("gemini-interactions", "https://api.example.org/v1beta", "model")
HEAD = {"id": "i-1", "model": "served", "object": "interaction"}
USAGE = {"total_input_tokens": 3, "total_output_tokens": 5, "total_thought_tokens": 7}


def start(index: int, **step: Any) -> dict[str, Any]:
    """The beginning of a step."""
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    """What is added to a step."""
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **more}}


def stop(index: int) -> dict[str, Any]:
    """The end of a step."""
    return {"event_type": "step.stop", "index": index}


def completed(status: str = "completed", **more: Any) -> dict[str, Any]:
    """The last event."""
    return {"event_type": "interaction.completed", "interaction": {**HEAD, "status": status, "usage": USAGE, **more}}


CREATED = {"event_type": "interaction.created", "interaction": {**HEAD, "status": "in_progress"}}


def sse(*events: Any, end: bytes = b"\n") -> bytes:
    """The events as a stream; bytes stand for themselves."""
    datas = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    return b"".join(b"data: " + data + end + end for data in datas)


def stream(*events: Any, status: str = "completed") -> bytes:
    """A whole stream."""
    return sse(CREATED, *events, completed(status), b"[DONE]")


def body(*steps: Any, status: str = "completed", **top: Any) -> bytes:
    """A response that is not streamed."""
    return json.dumps({**HEAD, "status": status, "steps": list(steps), "usage": USAGE, **top}).encode()


def feed(pieces: Iterable[bytes], framing: Framing = "sse") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    reader = Reader(ORIGIN, framing, None, "r1")
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.close()
    assert reader.finish == reader.result().response.finish
    return deltas, reader.result()


def read(raw: bytes) -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "sse" if raw.startswith(b"data:") else "json"
    deltas, result = feed([raw], framing)
    assert (deltas, result) == feed(each_byte(raw), framing)
    check(deltas, result)
    return result


def adopt(request: Mapping[str, Any]) -> ReadRequest:
    """A request body as values."""
    count = itertools.count(1)
    return read_request(request, lambda: f"r{next(count)}")


def rewrite(request: ReadRequest) -> dict[str, Any]:
    """The request that the writer makes of what was read."""
    tools = [tool for draft in request.drafts if isinstance(draft.value, Tools) for tool in draft.value.tools]
    system = [write.top(draft.value) for draft in request.drafts if _is_system(draft)]  # type: ignore[arg-type]
    fragments = [fragment for group in _grouped(request.drafts) for fragment in _fragments(group)]
    end = write.end(request.model, tools, system, request.params)
    written: dict[str, Any] = canonical.decode(write.start + write.separator.join(fragments) + end)
    return written


def _is_system(draft: Draft) -> bool:
    return draft.kind == "system"


def _grouped(drafts: Iterable[Draft]) -> Iterable[list[Draft]]:
    """A message, a response with its blocks, or all results that stand together."""
    group: list[Draft] = []
    for draft in drafts:
        goes_on = draft.index >= 0 if group and group[0].kind == "response" else draft.kind == "tool_result"
        if group and not (goes_on and group[0].kind in ("response", "tool_result")):
            yield group
            group = []
        if draft.kind not in ("system", "tools"):
            group.append(draft)
    if group:
        yield group


def _fragments(group: list[Draft]) -> tuple[bytes, ...]:
    first = group[0].value
    if isinstance(first, Response):
        blocks: list[Block] = [draft.value for draft in group[1:]]  # type: ignore[misc]
        return write.assistant(first, blocks, NOTHING)
    if isinstance(first, Message):
        return (write.message("user", first),)
    return write.results([draft.value for draft in group if isinstance(draft.value, ToolResult)])
