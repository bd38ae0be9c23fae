"""A provider on no network: an inner transport that answers with bytes, and notes what it is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx2

from tests.proxy.playbook import ANSWER

URL = "https://api.moonshot.ai/v1/chat/completions"
KEY = "sk-not-for-the-log"
SSE = {"content-type": "text/event-stream", "x-request-id": "r1"}
WHOLE = json.dumps(
    {"id": "c1", "choices": [{"message": {"reasoning_content": "Hm.", "content": "42."}, "finish_reason": "stop"}]},
    indent=1,
).encode()
"""A response as a document, written as nobody here would write it."""


class Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Pieces of a body; an exception among them is raised. A ``Hang`` waits for its end, as a silent provider does."""

    def __init__(self, pieces: tuple[bytes | Exception | None, ...]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            assert piece is not None
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            if piece is None:
                await asyncio.Event().wait()
            else:
                yield piece


class Provider(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Answers in turn; the last answer again and again."""

    def __init__(self, *answers: Callable[[], httpx2.Response] | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was asked, as JSON."""
        return [json.loads(request.content) for request in self.asked]


def streams(*pieces: bytes | Exception | None) -> Callable[[], httpx2.Response]:
    """A stream of these pieces; ``None`` is silence without end."""
    return lambda: httpx2.Response(200, headers=SSE, stream=Body(pieces or ANSWER))


def says(status: int, body: bytes, **headers: str) -> Callable[[], httpx2.Response]:
    """A document."""
    kind = {"content-type": "application/json", **headers}
    return lambda: httpx2.Response(status, headers=kind, stream=Body((body,)))


def question(*said: str, stream: bool = True) -> bytes:
    """A conversation of these words, in the spelling of a program."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said or ("Why?",))]
    body = {"model": "kimi-k2-thinking", "messages": messages, "unknown": 1.0, "stream": stream}
    return json.dumps(body, indent=2).encode()


HEADERS = {"authorization": f"Bearer {KEY}", "content-type": "application/json", "x-own": "1"}
