"""Converse streams and bodies for the tests, how they are read, and requests written from drafts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.wire import event_stream
from tests.wire.feeding import check, each_byte
from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin, ToolResult
from thinkback.model.commits import Draft, Message, Response, Tools
from thinkback.model.deltas import Delta
from thinkback.model.plan import NOTHING
from thinkback.wire.bedrock import Reader, raw_response, read_request, write
from thinkback.wire.framing import Framing
from thinkback.wire.result import ReadRequest, ReadResult

ORIGIN = Origin("bedrock", "https://bedrock-runtime.eu-west-1.amazonaws.com", "model")
STOP: dict[str, Any] = {"messageStop": {"stopReason": "end_turn", "p": "ab"}}
USAGE = {"inputTokens": 3, "outputTokens": 5, "totalTokens": 8}


def delta(index: int, **what: Any) -> dict[str, Any]:
    """An event that adds to a content block."""
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": what, "p": "abc"}}


def start(index: int, **what: Any) -> dict[str, Any]:
    """An event that begins a content block."""
    return {"contentBlockStart": {"contentBlockIndex": index, "start": what}}


def stop(index: int) -> dict[str, Any]:
    """An event that ends a content block."""
    return {"contentBlockStop": {"contentBlockIndex": index}}


def stream(*events: dict[str, Any] | bytes) -> bytes:
    """The events as a binary stream; bytes stand for themselves."""
    return b"".join(
        event if isinstance(event, bytes) else event_stream.event(*next(iter(event.items()))) for event in events
    )


def body(*content: Any, finish: str | None = "end_turn", **top: Any) -> bytes:
    """A response that is not streamed."""
    ended = {"stopReason": finish} if finish is not None else {}
    return json.dumps({"output": {"message": {"role": "assistant", "content": content}}, **ended, **top}).encode()


def feed(pieces: Iterable[bytes], framing: Framing = "event-stream") -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    reader = Reader(ORIGIN, framing, None, "r1")
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.close()
    return deltas, reader.result()


def read(raw: bytes) -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "json" if raw.startswith(b"{") else "event-stream"
    deltas, result = feed([raw], framing)
    assert (deltas, result) == feed(each_byte(raw), framing)
    check(deltas, result)
    canonical.encode(raw_response(result))
    return result


def content(result: ReadResult) -> Any:
    """The content blocks of a response put together again."""
    return raw_response(result)["output"]["message"]["content"]


def reread(request: Any) -> ReadRequest:
    """A request body as values."""
    numbers = itertools.count()
    return read_request(request, lambda: f"r{next(numbers)}", ORIGIN)


def rewritten(request: Any) -> Any:
    """A request body, read and written again."""
    found = reread(request)
    return json.loads(written(found.drafts, found.params))


def written(drafts: Sequence[Draft], params: dict[str, Any]) -> bytes:
    """The body of a request that sends all of ``drafts``."""
    fragments: list[bytes] = []
    system: list[bytes] = []
    tools: Tools = Tools(())
    before = ""
    for draft in grouped(drafts):
        role = "user"
        found: tuple[bytes, ...]
        match draft:
            case Message() as message:
                found = (write.message("user", message),)
            case (Message() as message,):
                system.append(write.top(message))
                continue
            case Tools():
                tools = draft
                continue
            case (Response() as response, *blocks):
                role, found = "assistant", write.assistant(response, blocks, NOTHING)
            case results:
                role, found = "tool", write.results(results)
        for fragment in found:
            fragments.append(write.turn_over(before, role)[0] + fragment)
            before = role
    return write.start + write.separator.join(fragments) + write.end("model", tools.tools, system, params)


def grouped(drafts: Sequence[Draft]) -> list[Any]:
    """What the writer takes at once: messages, tools, a response with its blocks, results; a system message alone."""
    found: list[Any] = []
    for draft in drafts:
        if draft.kind == "system":
            found.append((draft.value,))
        elif isinstance(draft.value, Response):
            found.append([draft.value])
        elif draft.response:
            found[-1].append(draft.value)
        elif isinstance(draft.value, ToolResult):
            is_next = bool(found) and isinstance(found[-1], list) and isinstance(found[-1][-1], ToolResult)
            found[-1].append(draft.value) if is_next else found.append([draft.value])
        else:
            found.append(draft.value)
    return found


def assistant(*blocks: Block) -> Any:
    """The content that an assistant message of ``blocks`` has; nothing if it is not written."""
    fragments = write.assistant(Response(ORIGIN), blocks, NOTHING)
    return json.loads(b"[%b]" % fragments[0]) if fragments else None
