"""Streams for the tests of the reader: how they are made, fed, and what must hold of every result."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Block, Origin, Text, ThinkingBlock, ToolCall, content_slice
from thinkback.model.commits import block_draft, decode_payload
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, TextDelta, ToolCallDelta
from thinkback.model.rule import Markers
from thinkback.model.slices import BEGINS, CONTENT, ENDS, WITHIN
from thinkback.wire.dialect import ResponseReader
from thinkback.wire.framing import Framing
from thinkback.wire.openai_chat.read import Reader
from thinkback.wire.result import ReadOptions, ReadResult

ORIGIN = Origin("openai-chat", "https://api.example.org/v1", "model")
HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "served"}


def chunk(delta: Any = None, finish: str | None = None, **top: Any) -> dict[str, Any]:
    """One chunk with a delta for choice 0."""
    return {**HEAD, "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **top}


def sse(*events: Any, end: bytes = b"\n", done: bool = True) -> bytes:
    """The events as a stream; bytes stand for themselves."""
    datas = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    datas += [b"[DONE]"] if done else []
    return b"".join(b"data: " + data + end + end for data in datas)


def stream(*deltas: Any, finish: str | None = "stop") -> bytes:
    """A whole stream of deltas that ends as it should."""
    return sse(*map(chunk, deltas), chunk({}, finish))


def body(message: Any, finish: str | None = "stop", **top: Any) -> bytes:
    """A response that is not streamed."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"id": "c1", "model": "served", "choices": [choice], **top}).encode()


def feed(
    pieces: Iterable[bytes], framing: Framing = "sse", options: ReadOptions | None = None
) -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that comes in ``pieces``."""
    return fed(Reader(ORIGIN, framing, options, "r1"), pieces)


def fed(reader: ResponseReader, pieces: Iterable[bytes]) -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body that ``reader`` gets in ``pieces``."""
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.close()
    result = reader.result()
    assert (reader.finish or None) == (result.response.finish or None)
    return deltas, result


def read(raw: bytes, field: str = "", leaked: Markers = "") -> ReadResult:
    """The result of a body, streamed or whole, after checking that it is the same byte by byte and obeys the laws."""
    framing: Framing = "json" if raw.startswith(b"{") else "sse"
    options = ReadOptions(field, leaked) if field or leaked else None
    return alike(raw, lambda pieces: feed(pieces, framing, options))


def alike(raw: bytes, feed: Callable[[Iterable[bytes]], tuple[list[Delta], ReadResult]]) -> ReadResult:
    """The result of ``raw``, which is the same byte by byte and obeys the laws."""
    whole = feed([raw])
    assert whole == feed(each_byte(raw))
    check(*whole)
    return whole[1]


def each_byte(raw: bytes) -> list[bytes]:
    """``raw`` in pieces of one byte."""
    return [raw[at : at + 1] for at in range(len(raw))]


def cuts(raw: bytes, seed: int, longest: int = 400) -> list[bytes]:
    """``raw`` in pieces of random lengths."""
    chance, pieces, at = random.Random(seed), [], 0
    while at < len(raw):
        length = chance.randint(1, longest)
        pieces.append(raw[at : at + length])
        at += length
    return pieces


def check(deltas: Sequence[Delta], result: ReadResult) -> None:
    """The deltas say what the visible blocks say, and every value survives its bytes."""
    texts, thoughts, calls = shown(deltas)
    blocks = result.blocks
    hidden = {at for at, block in enumerate(blocks) if isinstance(block, ThinkingBlock) and block.is_hidden}
    assert joined(texts) == visible(blocks)
    for at, block in enumerate(blocks):
        if isinstance(block, ThinkingBlock) and (block.marker or block.opening):
            # White space in front of a placeholder is shown before it is known that one follows.
            said = "" if block.marker else block.thought
            thoughts[at] = said if thoughts[at].lstrip() == said else thoughts[at]
    assert canonical.whole("".join(thoughts[at] for at in sorted(thoughts) if at not in hidden)) == reasoning(blocks)
    for at, block in enumerate(blocks):
        if isinstance(block, Text):
            assert canonical.whole(texts[at]) == block.text
        if isinstance(block, ToolCall) and not block.wire:
            assert (block.id, block.name, block.arguments) == calls[at]
        assert decode_payload(canonical.encode(block)) == block
        assert block_draft(block, "r1", at).value == block
    assert decode_payload(canonical.encode(result.response)) == result.response
    assert result.response.blocks == len(blocks)
    assert not (result.response.complete and result.response.error)


def shown(deltas: Iterable[Delta]) -> tuple[dict[int, str], dict[int, str], dict[int, tuple[str, str, str]]]:
    """Texts, thoughts and calls by block index, as a screen would have them in the end."""
    texts: dict[int, str] = defaultdict(str)
    thoughts: dict[int, str] = defaultdict(str)
    calls: dict[int, tuple[str, str, str]] = defaultdict(lambda: ("", "", ""))
    for delta in deltas:
        if isinstance(delta, TextDelta):
            texts[delta.index] += delta.text
        elif isinstance(delta, ReasoningDelta):
            thoughts[delta.index] += delta.text
        elif isinstance(delta, Reclassified):
            assert texts.pop(delta.index, "") == delta.text
            thoughts[delta.index] = delta.text
        elif isinstance(delta, ToolCallDelta):
            id, name, arguments = calls[delta.index]
            calls[delta.index] = (id + delta.id, name + delta.name, arguments + delta.arguments)
    return texts, thoughts, calls


def joined(parts: dict[int, str]) -> str:
    """The parts in order of their index."""
    return canonical.whole("".join(parts[at] for at in sorted(parts)))


def reasoning(blocks: Iterable[Block]) -> str:
    """The reasoning a person reads."""
    thoughts = [b for b in blocks if isinstance(b, ThinkingBlock) and not (b.is_hidden or b.marker)]
    return canonical.whole("".join(block.thought for block in thoughts))


def visible(blocks: Iterable[Block]) -> str:
    """The answer, refusals included."""
    return canonical.whole("".join(block.text for block in blocks if isinstance(block, Text)))


def content(blocks: Iterable[Block]) -> str:
    """``content`` as it was on the wire: the slices joined."""
    slices = [
        content_slice(block)
        for block in blocks
        if isinstance(block, Text | ThinkingBlock) and block.source_field in (CONTENT, BEGINS, WITHIN, ENDS)
    ]
    return canonical.whole("".join(slices))


def thoughts(result: ReadResult) -> list[ThinkingBlock]:
    """The reasoning blocks."""
    return [block for block in result.blocks if isinstance(block, ThinkingBlock)]


def calls(result: ReadResult) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of each call."""
    return [(block.id, block.name, block.arguments) for block in result.blocks if isinstance(block, ToolCall)]


def without_empty_calls(body: dict[str, Any]) -> dict[str, Any]:
    """A request without lists of calls that are null or empty: they say nothing and are not written."""
    messages = [
        {key: value for key, value in message.items() if key != "tool_calls" or value} for message in body["messages"]
    ]
    return {**body, "messages": messages}
