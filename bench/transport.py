"""The transport beside the bare SDK: the same requests of the openai package to a provider on no network.

Both take turns, request by request. Processor time is that of the process; wall time is shown with the time that one
commit of one row takes on the same disk in the same run.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

import httpx2
import openai

import thinkback
from bench.measure import Figure, Group, interleaved, spread
from thinkback.adapters.transport import transports
from thinkback.log.protocol import Durability
from thinkback.model.blocks import Origin
from thinkback.session.ids import new_id
from thinkback.wire.registry import dialect

_MODEL = "kimi-k2-thinking"
_PLACE = "https://api.moonshot.ai/v1"
_EXCHANGES = 5
_CHUNKS = 2000
_IMPORTS = {"openai": "import openai", "both": "import openai, thinkback; thinkback.http_client"}


class _Provider(httpx2.BaseTransport):
    """Answers at once: a document, or a stream of so many chunks."""

    def __init__(self, chunks: int = 0) -> None:
        self._chunks = [_chunk({"reasoning_content": "thought "})] * (chunks // 2)
        self._chunks += [_chunk({"content": "word "})] * (chunks // 2)
        self._chunks += [_chunk({}, "stop"), b"data: [DONE]\n\n"]

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if b'"stream":true' in request.content.replace(b" ", b""):
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Pieces(self._chunks))
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=_document())


class _Pieces(httpx2.SyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    said = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": _MODEL, "choices": [choice]}
    return f"data: {json.dumps(said)}\n\n".encode()


def _document() -> bytes:
    text = f"{new_id()} " + "an answer of some words " * 10
    message = {"role": "assistant", "reasoning_content": "a thought of some words " * 20, "content": text}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 100, "completion_tokens": 100, "total_tokens": 200}
    said = {"id": new_id(), "object": "chat.completion", "created": 1, "model": _MODEL, "choices": choices}
    return json.dumps({**said, "usage": usage}).encode()


class _Taken(NamedTuple):
    """Milliseconds of one request."""

    processor: float
    wall: float


def _client(transport: httpx2.BaseTransport) -> Any:
    return openai.OpenAI(api_key="bench", base_url=_PLACE, http_client=httpx2.Client(transport=transport))


class _Talk:
    """A conversation of its own, which grows by an exchange a request."""

    def __init__(self, client: Any, messages: int = 0) -> None:
        self._client = client
        self._messages: list[dict[str, str]] = []
        for _ in range(messages // 2):
            self._add("user")
            self._add("assistant")

    def _add(self, role: str) -> None:
        self._messages.append({"role": role, "content": f"{new_id()} " + "some words of a message " * 8})

    def ask(self) -> _Taken:
        self._add("user")
        processor, wall = time.process_time(), time.perf_counter()
        said = self._client.chat.completions.create(model=_MODEL, messages=self._messages)
        taken = _Taken((time.process_time() - processor) * 1e3, (time.perf_counter() - wall) * 1e3)
        self._messages.append({"role": "assistant", "content": said.choices[0].message.content})
        return taken


class _Cost(NamedTuple):
    """Milliseconds added to a request, at the median, and their spread; ``commit``: what one commit takes."""

    processor: float
    wall: float
    bare: _Taken
    noise: float
    commit: float


@cache
def _cost(durability: Durability, messages: int, rounds: int) -> _Cost:
    """Requests that make a conversation ``messages`` long, with the transport and without it in turn."""
    ours: list[_Taken] = []
    bare: list[_Taken] = []
    commits: list[float] = []
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as directory:
        place = Path(directory)
        transport = thinkback.Transport(place / "log.db", _Provider(), durability=durability)
        clients = _client(transport), _client(_Provider())
        with closing(transport), closing(_table(place / "plain.db", durability)) as plain:
            for at in range(-2, rounds):
                talks = [_Talk(client, messages - 10 if messages > 10 else 0) for client in clients]
                for _ in range(_EXCHANGES - 1):
                    for talk in talks:
                        talk.ask()
                taken = [talk.ask() for talk in talks]
                began = time.perf_counter()
                plain.execute("INSERT INTO plain (payload) VALUES (?)", (os.urandom(2000),))
                commit = (time.perf_counter() - began) * 1e3
                if at >= 0:
                    ours.append(taken[0])
                    bare.append(taken[1])
                    commits.append(commit)
    middle = _Taken(median(each.processor for each in bare), median(each.wall for each in bare))
    added = [mine.processor - other.processor for mine, other in zip(ours, bare, strict=True)]
    walls = [mine.wall - other.wall for mine, other in zip(ours, bare, strict=True)]
    return _Cost(median(added), median(walls), middle, spread(added), median(commits))


def _table(path: Path, durability: Durability) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute(f"PRAGMA synchronous = {durability.upper()}")
    db.execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, payload BLOB NOT NULL)")
    return db


def _processor(messages: int, aim: float | None, quick: bool) -> Figure:
    rounds = (7 if quick else 31) if messages <= 1000 else (1 if quick else 3)
    cost = _cost("normal", messages, rounds)
    return Figure(
        f"transport.request {messages}",
        cost.processor,
        "ms",
        aim=f"<= {aim:.1f} ms processor time added, conversation of {messages} messages" if aim else "",
        met=None if aim is None else cost.processor <= aim,
        noise=cost.noise,
        note=f"the SDK alone {cost.bare.processor:.2f} ms",
    )


def _wall(durability: Durability, quick: bool) -> Figure:
    cost = _cost(durability, 10, 7 if quick else 31)
    limit = 1.5 + cost.commit
    return Figure(
        f"transport.wall {durability}",
        cost.wall,
        "ms",
        aim="<= 1.5 ms and one commit added",
        met=cost.wall <= limit,
        note=f"one commit {cost.commit:.2f} ms, the SDK alone {cost.bare.wall:.2f} ms",
    )


def _chunks(quick: bool) -> Figure:
    """What a chunk costs on the way, over what its reader alone takes for it."""
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as directory:
        transport = thinkback.Transport(Path(directory) / "log.db", _Provider(_CHUNKS), durability="normal")
        pieces = _Provider(_CHUNKS)._chunks
        body = json.dumps({"model": _MODEL, "stream": True, "messages": [{"role": "user", "content": "Why?"}]})
        clients = {"ours": httpx2.Client(transport=transport), "bare": httpx2.Client(transport=_Provider(_CHUNKS))}

        def passed(client: httpx2.Client) -> float:
            began = time.process_time()
            with client.stream("POST", f"{_PLACE}/chat/completions", content=body) as response:
                for _ in response.iter_bytes():
                    pass
            return time.process_time() - began

        def read() -> float:
            reader = dialect("openai-chat").reader(Origin("openai-chat", _PLACE, _MODEL), "sse", None, "")
            began = time.process_time()
            for piece in pieces:
                reader.feed(piece)
            return time.process_time() - began

        cases: dict[str, Callable[[], float]] = {name: partial(passed, client) for name, client in clients.items()}
        samples = interleaved({**cases, "reader": read}, rounds=5 if quick else 21)
        transport.close()
    added, reader = samples.median("ours") - samples.median("bare"), samples.median("reader")
    return Figure(
        "transport.chunk",
        added / _CHUNKS * 1e6,
        "µs",
        added / reader,
        aim="<= 2x the reader's own time a chunk",
        met=added <= 2 * reader,
        noise=samples.noise("ours"),
        note=f"the reader alone {reader / _CHUNKS * 1e6:.1f} µs",
    )


def _import(quick: bool) -> Figure:
    environment = {**os.environ, "PYTHONPATH": str(Path(thinkback.__file__).parents[1])}

    def imported(code: str) -> float:
        """Processor seconds of a process: others may be at work on the same cores."""
        child = os.posix_spawn(sys.executable, [sys.executable, "-c", code], environment)
        _, status, used = os.wait4(child, 0)
        if os.waitstatus_to_exitcode(status):
            raise RuntimeError(f"{code} failed")
        return used.ru_utime + used.ru_stime

    cases: dict[str, Callable[[], float]] = {name: partial(imported, code) for name, code in _IMPORTS.items()}
    samples = interleaved(cases, rounds=5 if quick else 21, warm_up=2)
    extra = samples.over("both", "openai")
    return Figure(
        "transport.import",
        extra.value * 1e3,
        "ms",
        aim="<= 60 ms processor time over its host",
        met=extra.value * 1e3 <= 60,
        noise=extra.noise,
        note=f"`import openai` alone {samples.median('openai') * 1e3:.0f} ms",
    )


class _AsyncProvider(httpx2.AsyncBaseTransport):
    """Answers at once with a document."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return _Provider().handle_request(request)


async def _longest_wait(client: httpx2.AsyncClient, body: bytes) -> float:
    """Seconds for which a task that only wants to go on waited meanwhile, at most."""
    waits: list[float] = []

    async def goes_on() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0)
            waits.append(time.perf_counter() - began)

    task = asyncio.create_task(goes_on())
    await asyncio.sleep(0)
    waits.clear()
    await client.post(f"{_PLACE}/chat/completions", content=body)
    task.cancel()
    return max(waits)


def _lag(quick: bool) -> Figure:
    """What a large request under asyncio keeps others waiting, beside the same where all is done on the event loop."""
    messages = [{"role": "user", "content": f"{at} " + "some words of a message " * 8} for at in range(1000)]
    body = json.dumps({"model": _MODEL, "messages": messages}).encode()
    waits: dict[bool, list[float]] = {True: [], False: []}

    async def run(directory: str) -> None:
        transport = thinkback.AsyncTransport(Path(directory) / "log.db", _AsyncProvider(), durability="normal")
        async with httpx2.AsyncClient(transport=transport) as client:
            for at in range(-1, 5 if quick else 21):
                for is_apart, size in ((True, transports.LARGE), (False, len(body) + 1)):
                    with patch.object(transports, "LARGE", size):
                        taken = await _longest_wait(client, body)
                    waits[is_apart] += [taken] if at >= 0 else []

    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as directory:
        asyncio.run(run(directory))
    apart, on_loop = (median(waits[is_apart]) * 1e3 for is_apart in (True, False))
    return Figure(
        "transport.lag",
        apart,
        "ms",
        apart / on_loop,
        aim="<= 10 ms that other tasks wait, request of 1,000 messages",
        met=apart <= 10,
        noise=spread(waits[True]),
        note=f"{on_loop:.0f} ms where all is done on the event loop",
    )


GROUP = Group(
    "transport",
    (
        partial(_processor, 10, 1.0),
        partial(_wall, "normal"),
        partial(_wall, "full"),
        partial(_processor, 1000, None),
        partial(_processor, 10_000, None),
        _chunks,
        _lag,
        _import,
    ),
)
