"""A synthetic provider: one deterministic stream of a reasoning model, and what serves it from memory.

The recipe of the peers' figures: N reasoning deltas of four words, N/4 text deltas, 22 fragments of tool arguments,
then the finish reason, usage and ``[DONE]``; about 9 % of the deltas hold an escape. The chunks have DeepSeek's shape.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple

import httpx2

from thinkback.drive.http import HttpResponse, Timeouts

PIECE = 16_384
MODEL = "deepseek-reasoner"
_TEXT = (
    "the a model thinks about this before it answers and every step of its reasoning must come back exactly as given "
    "first second because therefore however maybe check wait number list value result case sum why naïve Größe 模型"
)
_WORDS = _TEXT.split()


class Stream(NamedTuple):
    """``body`` is what the provider sends; the texts are what must come out."""

    body: bytes
    reasoning: str
    text: str
    arguments: str
    chunks: int

    @property
    def pieces(self) -> list[bytes]:
        """The body as a socket would give it."""
        return [self.body[at : at + PIECE] for at in range(0, len(self.body), PIECE)]

    @property
    def text_bytes(self) -> int:
        """UTF-8 bytes of all that the model said."""
        return len((self.reasoning + self.text + self.arguments).encode())


def words(chance: random.Random, count: int) -> str:
    """``count`` words, each after a space; one in eleven such texts has a character that JSON escapes."""
    text = " " + " ".join(chance.choices(_WORDS, k=count))
    return text + chance.choice(('"', "\n", "\\")) if chance.random() < 0.088 else text


class Said(NamedTuple):
    """What the model says, in the pieces in which it says it."""

    thoughts: list[str]
    texts: list[str]
    fragments: list[str]

    def stream(self, events: list[bytes]) -> Stream:
        """The stream of these ``events``, which say this."""
        thought, text, arguments = map("".join, self)
        return Stream(b"".join(events), thought, text, arguments, len(events))


def said(deltas: int, tool_call: bool = True) -> Said:
    """``deltas`` reasoning deltas, a quarter as many of text, and the arguments of a call in 22 fragments."""
    chance = random.Random(20_26)
    thoughts = [words(chance, 4) for _ in range(deltas)]
    texts = [words(chance, 4) for _ in range(deltas // 4)]
    arguments = [json.dumps({f"key_{at}": words(chance, 3)})[1:-1] for at in range(21)] if tool_call else []
    fragments = ["{" + arguments[0], *(", " + one for one in arguments[1:]), "}"] if arguments else []
    return Said(thoughts, texts, fragments)


def stream(deltas: int, tool_call: bool = True) -> Stream:
    """The stream with ``deltas`` reasoning deltas."""
    script = said(deltas, tool_call)
    parts: list[dict[str, Any]] = [{"content": None, "reasoning_content": one} for one in script.thoughts]
    parts += [{"content": one, "reasoning_content": None} for one in script.texts]
    for at, fragment in enumerate(script.fragments):
        head = {"id": "call_00_abc", "type": "function"} if at == 0 else {}
        function = {"name": "look_up", "arguments": fragment} if at == 0 else {"arguments": fragment}
        parts.append({"tool_calls": [{"index": 0, **head, "function": function}]})
    parts[0] = {"role": "assistant", **parts[0]}
    usage = {"prompt_tokens": 20, "completion_tokens": 5 * deltas, "total_tokens": 20 + 5 * deltas}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 4 * deltas}}  # type: ignore[dict-item]
    last = _chunk({"content": ""}, "tool_calls" if tool_call else "stop", usage)
    return script.stream([*(_chunk(delta) for delta in parts), last, b"data: [DONE]\n\n"])


def _chunk(delta: dict[str, Any], finish: str | None = None, usage: dict[str, Any] | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    body = {
        "id": "8f3c2a54-61d2-4f0c-9a55-3f1d7e0b6c21",
        "object": "chat.completion.chunk",
        "created": 1_767_225_600,
        "model": MODEL,
        "system_fingerprint": "fp_eaab8d114b_prod0820",
        "choices": [choice],
        "usage": usage,
    }
    return b"data: " + json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


ANSWER = (
    b'{"id":"1","object":"chat.completion","created":1767225600,"model":"deepseek-reasoner","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"yes","reasoning_content":"hm"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}'
)


class Provider(httpx2.BaseTransport):
    """An httpx2 transport that answers every request from memory, in pieces.

    ``began`` is when it gave the first piece of the last response away, ``request`` the last request body.
    """

    def __init__(self, pieces: list[bytes], content_type: str = "text/event-stream") -> None:
        self.pieces = pieces
        self.content_type = content_type
        self.request = b""
        self.began = 0.0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Read the request, answer 200."""
        self.request = request.read()
        return httpx2.Response(200, headers={"content-type": self.content_type}, stream=_Body(self))

    def since_first_piece(self, work: Callable[[], object]) -> Callable[[], float]:
        """A case: the part of ``work`` that comes after the first piece of the response."""

        def case() -> float:
            work()
            return perf_counter() - self.began

        return case


class _Body(httpx2.SyncByteStream):
    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def __iter__(self) -> Iterator[bytes]:
        self._provider.began = perf_counter()
        yield from self._provider.pieces


class OverHttpx2:
    """thinkback's ``Transport`` over a given httpx2 client."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client

    @contextmanager
    def post(self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts) -> Iterator[HttpResponse]:
        """POST, and the response's pieces as they come."""
        with self._client.stream("POST", url, headers=headers, content=body) as response:
            yield HttpResponse(response.status_code, dict(response.headers), response.iter_bytes())

    def close(self) -> None:
        """The client is the bench's own."""
