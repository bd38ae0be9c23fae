"""An engine with a log in memory, clients that forget, and a transport that plays what a test says."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from thinkback.drive.http import AsyncHttpx2Transport, AsyncTransport, HttpResponse, Timeouts
from thinkback.log.protocol import Store
from thinkback.model.commits import Commit
from thinkback.rules import load_rulebook
from thinkback.servers.gateway.config.schema import Alias, Config, To, Upstream
from thinkback.servers.gateway.engine.driver import respond
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.incoming import ClientGone, Incoming, Notes
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.stores import open_store
from thinkback.wire.writing import Problem
from thinkback_referee import Referee

DEEPSEEK, CLAUDE = "deepseek/deepseek-v4-pro", "anthropic/claude-opus-5-5"
BOUND = "anthropic/claude-fable-5-2"
JSON, SSE = "application/json", "text/event-stream"
PLACES = {"deepseek": "http://deepseek.test/v1", "anthropic": "http://claude.test"}
KEY = "sk-of-the-gateway-alone"
GRANT = Grant("k1", name="a key")
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ASKED = ("What is the weather in Oslo?", "And in both Bergen and Rome?")


class Logs:
    """One log for every tenant."""

    def __init__(self, log: Store | None = None) -> None:
        self.log: Store = log or open_store(":memory:")

    def of(self, tenant: str) -> Store:
        return self.log

    def close(self) -> None:
        self.log.close()


class Sealed:
    """Carriers in memory."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, bytes, str], tuple[bytes, int]] = {}

    def put(self, tenant: str, scope: bytes, sealed: Mapping[str, bytes], until: int) -> None:
        self.rows |= {(tenant, scope, response): (data, until) for response, data in sealed.items()}

    def get(self, tenant: str, scope: bytes, responses: Iterable[str], now: int) -> dict[str, bytes]:
        found = ((response, self.rows.get((tenant, scope, response))) for response in responses)
        return {response: row[0] for response, row in found if row is not None and row[1] > now}


class Kept:
    """A sink that keeps what is written; ``leaves_after`` so many bytes its client is gone."""

    def __init__(self, leaves_after: int = -1) -> None:
        self.notes = Notes()
        self.stop: Problem | None = None
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self._written = bytearray()
        self._leaves_after = leaves_after

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        assert self.status == 0
        self.status, self.headers = status, dict(headers)

    async def write(self, data: bytes) -> None:
        if 0 <= self._leaves_after <= len(self._written):
            raise ClientGone
        assert self.status != 0
        assert not self.ended
        self._written += data

    async def end(self, data: bytes = b"") -> None:
        await self.write(data)
        self.ended = True

    @property
    def body(self) -> bytes:
        """All that was written."""
        return bytes(self._written)

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The payloads of a stream, ``[DONE]`` as it is."""
        lines = [line[5:].strip() for line in self.body.decode().split("\n") if line.startswith("data:")]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]


class Plays:
    """A transport that answers with what ``answer`` gives for each body: status, content type, pieces (or an error)."""

    def __init__(self, answer: Callable[[bytes], tuple[int, str, Sequence[bytes | Exception]]]) -> None:
        self.sent: list[bytes] = []
        self.closed = 0
        self._answer = answer

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[HttpResponse]:
        self.sent.append(body)
        status, kind, pieces = self._answer(body)

        async def give() -> AsyncIterator[bytes]:
            for piece in pieces:
                if isinstance(piece, Exception):
                    raise piece
                yield piece

        try:
            yield HttpResponse(status, {"content-type": kind}, give())
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        """Nothing is open."""


def engine(
    transport: AsyncTransport,
    upstreams: Mapping[str, str] | Referee,
    log: Store | None = None,
    config: Config | None = None,
    secret: bytes = b"s" * 32,
) -> Engine:
    """An engine whose upstreams are endpoints at addresses, or those of a referee."""
    if isinstance(upstreams, Referee):
        upstreams = {name: upstreams.base_url(name) for name in ("deepseek", "anthropic", "openai", "gemini")}
    places = {
        name: Upstream(endpoint=name, base_url=url, key_env="THINKBACK_TEST_KEY") for name, url in upstreams.items()
    }
    alias = Alias((To("deepseek", "deepseek-v4-pro"),))
    made = msgspec.structs.replace(config or Config(), upstreams=places, models={"deepseek-v4-pro": alias})
    return Engine(made, Logs(log), Sealer(secret), load_rulebook({}), lambda proxy: transport, Sealed())  # type: ignore[arg-type]


def ask(
    engine: Engine,
    front: str,
    body: Mapping[str, Any] | bytes,
    *,
    grant: Grant = GRANT,
    headers: Mapping[str, str] | None = None,
    sink: Kept | None = None,
    model: str = "",
    streams: bool | None = None,
) -> Kept:
    """One request, answered."""
    kept = sink or Kept()
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    incoming = Incoming.of(front, data, headers or {}, grant, "r1", model, streams)
    asyncio.run(respond(engine, incoming, kept))
    return kept


def forgetful_chat(
    answer: Callable[[dict[str, Any]], Kept], model: str, turns: Sequence[str] = ASKED, **more: Any
) -> list[Kept]:
    """A client of chat completions that keeps texts and calls alone, through tool loops; stops at the first error."""
    messages: list[dict[str, Any]] = []
    answers: list[Kept] = []
    for asked in turns:
        messages.append({"role": "user", "content": asked})
        for _ in itertools.repeat(None, 5):
            kept = answer({"model": model, "messages": messages, "tools": [TOOL], **more})
            answers.append(kept)
            if kept.status != 200:
                return answers
            message = _message(kept)
            messages.append(message)
            if not message.get("tool_calls"):
                break
            for call in message["tool_calls"]:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": "7 degrees"})
    return answers


def _message(kept: Kept) -> dict[str, Any]:
    """The message of a response without anything but text and calls."""
    if kept.headers["content-type"].startswith("application/json"):
        full = kept.json["choices"][0]["message"]
    else:
        full = {"content": "", "tool_calls": []}
        for event in kept.events:
            for choice in event["choices"] if isinstance(event, dict) else ():
                delta = choice["delta"]
                full["content"] += delta.get("content") or ""
                for piece in delta.get("tool_calls") or ():
                    if piece["index"] == len(full["tool_calls"]):
                        empty = {"name": "", "arguments": ""}
                        full["tool_calls"].append({"id": "", "type": "function", "function": empty})
                    call = full["tool_calls"][piece["index"]]
                    call["id"] = call["id"] or piece.get("id") or ""
                    for key in ("name", "arguments"):
                        call["function"][key] += piece.get("function", {}).get(key) or ""
    message = {"role": "assistant", "content": full.get("content")}
    return {**message, "tool_calls": full["tool_calls"]} if full.get("tool_calls") else message


def commits(engine: Engine, session: str = "") -> list[Commit]:
    """The commits of the one session there is, or of ``session``."""
    log = engine.logs.of("default")
    info = log.find_session(session) if session else log.list_sessions()[0]
    assert info is not None
    return log.read(info.id, branch=info.branch)


class Fresh:
    """httpx2's transport, one for each event loop: each request of a test has its own."""

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[HttpResponse]:
        transport = AsyncHttpx2Transport()
        try:
            async with transport.post(url, headers, body, timeouts) as response:
                yield response
        finally:
            await transport.aclose()

    async def aclose(self) -> None:
        """Each is closed by its own loop."""


def question(**more: Any) -> dict[str, Any]:
    """A request of one question."""
    return {"model": DEEPSEEK, "messages": [{"role": "user", "content": "Why?"}], **more}


def chat(text: str, thought: str = "") -> bytes:
    """A whole chat completion."""
    message = {"role": "assistant", "content": text, **({"reasoning_content": thought} if thought else {})}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return json.dumps({"id": "c1", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def chunks(thought: str, text: str, usage: bool = False) -> bytes:
    """A stream of one."""
    deltas: Sequence[dict[str, Any]] = [{"role": "assistant"}, {"reasoning_content": thought}, {"content": text}]
    chunks: list[dict[str, Any]] = [{"id": "c1", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage:
        details = {"reasoning_tokens": 2}
        counts = {"prompt_tokens": 7, "completion_tokens": 3, "completion_tokens_details": details}
        chunks.append({"id": "c1", "choices": [], "usage": counts})
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n"]).encode()
