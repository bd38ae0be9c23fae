"""What an upstream may send that no model says: large, packed, of a million parts, never ending."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

MIB = 2**20
_FRONTS = {
    "openai-chat": ("/v1/chat/completions", "deepseek/deepseek-v4-pro"),
    "anthropic": ("/v1/messages", "anthropic/claude-opus-5-5"),
    "openai-responses": ("/v1/responses", "openai/gpt-5.5"),
    "gemini": ("/v1beta/models/{}:generateContent", "gemini/gemini-3.1-pro-preview"),
}


class Body(NamedTuple):
    """One response. ``make`` gives its pieces as a stream or whole; ``model`` is asked for other than the usual."""

    name: str
    make: Callable[[bool], Iterator[bytes]]
    front: str = "openai-chat"
    streams: tuple[bool, ...] = (True,)
    packed: bool = False
    model: str = ""

    def pieces(self, stream: bool) -> Iterator[bytes]:
        """The body."""
        return _packed(self.make(stream)) if self.packed else self.make(stream)

    def request(self, stream: bool) -> tuple[str, dict[str, Any]]:
        """Path and body of a request for it."""
        path, model = _FRONTS[self.front]
        model = self.model or model
        said = f"do: {self.name}{'' if stream else ', whole'}."
        message = {"role": "user", "content": said}
        match self.front:
            case "gemini":
                kind = "streamGenerateContent?alt=sse" if stream else "generateContent"
                path = f"/v1beta/models/{model}:{kind}"
                return path, {"contents": [{"role": "user", "parts": [{"text": said}]}]}
            case "openai-responses":
                return path, {"model": model, "stream": stream, "input": said}
            case "anthropic":
                return path, {"model": model, "stream": stream, "max_tokens": 1000, "messages": [message]}
            case _:
                return path, {"model": model, "stream": stream, "messages": [message]}


def _packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, wbits=31)
    for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def _chat(stream: bool, content: bytes) -> Iterator[bytes]:
    """One response whose text is the JSON string ``content``."""
    if stream:
        yield b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":'
        yield from _cut(content)
        yield b'}}]}\n\ndata: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
        return
    yield b'{"id":"c","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":'
    yield from _cut(content)
    yield b"}}]}"


def _cut(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), 65_536):
        yield data[at : at + 65_536]


def _text(letter: bytes, size: int) -> Callable[[bool], Iterator[bytes]]:
    return lambda stream: _chat(stream, b'"%b"' % (letter * (size // len(letter))))


def _repeated(piece: bytes, size: int) -> Callable[[bool], Iterator[bytes]]:
    block = piece * (65_536 // len(piece) or 1)

    def make(stream: bool) -> Iterator[bytes]:
        for _ in range(size // len(block)):
            yield block
        yield from _chat(True, b'"Hm."')

    return make


def _endless_line(stream: bool) -> Iterator[bytes]:
    yield b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"'
    for _ in range(4096):
        yield b"a" * 65_536


def _values(stream: bool) -> Iterator[bytes]:
    yield from _chat(stream, b"[%b1]" % (b"1," * (28 * MIB)))


def _members(stream: bool) -> Iterator[bytes]:
    yield from _chat(stream, b"{%b}" % b",".join(b'"%d":[]' % at for at in range(4_000_000)))


def _anthropic(stream: bool) -> Iterator[bytes]:
    text = b"a" * (60 * MIB)
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "@"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    data = b"".join(b"event: %b\ndata: %b\n\n" % (each["type"].encode(), json.dumps(each).encode()) for each in events)
    yield from _cut(data.replace(b"@", text))


def _gemini_image(stream: bool) -> Iterator[bytes]:
    image = b"iVBORw0KGgo" + b"A" * (60 * MIB)
    part = b'{"inlineData":{"mimeType":"image/png","data":"%b"}}' % image
    said = b'{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[%b]}}]}' % part
    yield from _cut(b"data: %b\n\n" % said if stream else said)


def _responses(stream: bool) -> Iterator[bytes]:
    text = "@"
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    head: dict[str, Any] = {"id": "r", "object": "response", "created_at": 1, "model": "g"}
    at = {"output_index": 0, "item_id": "m", "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": text},
        {"type": "response.output_text.done", **at, "text": text},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.completed", "response": {**head, "status": "completed", "output": [message]}},
    ]
    data = b"".join(b"event: %b\ndata: %b\n\n" % (each["type"].encode(), json.dumps(each).encode()) for each in events)
    yield from _cut(data.replace(b'"@"', b'"%b"' % (b"a" * (15 * MIB))))


_ALL = (
    Body("plain", lambda stream: _chat(stream, b'"Hm."'), streams=(True, False)),
    Body("comments in gzip", _repeated(b": wait\n\n", 63 * MIB), packed=True),
    Body("comments without end in gzip", _repeated(b": wait\n\n", 512 * MIB), packed=True),
    Body("one comment of 63 MB in gzip", _repeated(b":", 63 * MIB), packed=True),
    Body("empty lines in gzip", _repeated(b"\n", 63 * MIB), packed=True),
    Body("carriage returns", _repeated(b"\r", 63 * MIB)),
    Body("empty events", _repeated(b"data:{}\n\n", 63 * MIB)),
    Body("small events", _repeated(b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', 63 * MIB)),
    Body("line without end", _endless_line),
    Body("letters", _text(b"a", 60 * MIB), streams=(True, False)),
    Body("blanks", _text(b" ", 60 * MIB), streams=(True, False)),
    Body("tags", _text(b"<think>", 60 * MIB), streams=(True, False)),
    Body("snowmen", _text("\u2603".encode(), 60 * MIB), streams=(True, False)),
    Body("escapes", _text(b"\\u00e9", 60 * MIB), streams=(True, False)),
    Body("surrogates", _text(b"\\udfff", 60 * MIB), streams=(True, False)),
    Body("values", _values, streams=(True, False)),
    Body("members", _members, streams=(True, False)),
    Body(
        "letters to claude's client",
        _text(b"a", 60 * MIB),
        "anthropic",
        (True, False),
        model="deepseek/deepseek-v4-pro",
    ),
    Body("a text", _anthropic, "anthropic"),
    Body("one text said four times", _responses, "openai-responses"),
    Body("an image", _gemini_image, "gemini", (True, False)),
)
BODIES = {body.name: body for body in _ALL}
