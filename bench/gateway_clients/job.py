"""One conversation of one client: what its script is told, the tools it runs, and how clients without a loop loop.

Only a job that goes through the transport imports thinkback: the others run where it is not installed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

SYNC, ASYNC, STREAMED, ASYNC_STREAMED = "sync", "async", "streamed", "async streamed"
REBUILT, STRUCTURED = "rebuilt", "structured"
WAYS = (SYNC, ASYNC, STREAMED, ASYNC_STREAMED)


class Job(NamedTuple):
    """``base_url`` is as a client of the front is configured with it: with the version for OpenAI's, else without."""

    client: str
    mode: str
    base_url: str
    key: str
    model: str
    effort: str
    """What the client asks for itself; empty: nothing."""
    prompts: list[str]
    log: str = ""
    """Where the transport records; empty: the client goes without it."""
    endpoint: str = ""
    """What thinkback calls the place."""
    routed: str = ""
    """The model to which the transport sends all requests there; empty: the client asks the place itself."""
    asks: str = ""
    """What the transport asks for, where the client has no word for it."""


class Call(NamedTuple):
    """A tool call that waits."""

    id: str
    name: str
    arguments: dict[str, str]


class Result(NamedTuple):
    """What a tool said to a call."""

    call: Call
    text: str


class Answer(NamedTuple):
    """What a response said: text, or calls."""

    text: str
    calls: list[Call]


New: TypeAlias = str | list[Result]
"""What is new in the next request: the user's words, or the results of all calls."""


class Script(NamedTuple):
    """A client as its documentation uses it. ``hold`` has the conversation and gives the answers of its turns."""

    name: str
    front: str
    packages: tuple[str, ...]
    modes: tuple[str, ...]
    hold: Callable[[Job], list[str]] | None
    """Absent: it is not Python's."""
    lines: str
    """How it is pointed at the gateway."""
    unserved: Mapping[str, str] = {}
    """Providers at which it is known not to be served through the gateway, and why."""
    shapes: str = ""
    """How names of models begin with which it asks for answers by a schema; by others it would force a call, which
    models that think refuse, or put the schema into the prompt."""
    bypasses: str = ""
    """Why none of its requests can go through the transport; empty: they can."""


def weather(city: str) -> str:
    """The weather of a city"""
    return f"result of weather in {city}"


def clock(city: str) -> str:
    """The time in a city"""
    return f"result of clock in {city}"


TOOLS: dict[str, Callable[[str], str]] = {"weather": weather, "clock": clock}


def call_of(id: str, name: str, arguments: str | Mapping[str, str]) -> Call:
    """A call, whose arguments may still be text."""
    return Call(id, name, json.loads(arguments) if isinstance(arguments, str) else dict(arguments))


def talk(prompts: Iterable[str]) -> Generator[New, Answer, list[str]]:
    """What to send next, given the last response; returns the text that ended each turn."""
    said = []
    for prompt in prompts:
        answer = yield prompt
        while answer.calls:
            answer = yield [Result(call, TOOLS[call.name](call.arguments["city"])) for call in answer.calls]
        said.append(answer.text)
    return said


def loop(job: Job, ask: Callable[[New], Answer]) -> list[str]:
    """The conversation with a client that asks once when told."""
    talking = talk(job.prompts)
    new = next(talking)
    while True:
        try:
            new = talking.send(ask(new))
        except StopIteration as end:
            return list(end.value)


_LOOP: list[asyncio.AbstractEventLoop] = []


def run(work: Coroutine[object, object, list[str]]) -> list[str]:
    """Run it in the process's one event loop: some clients keep connections for all who ask at the same address."""
    if not _LOOP:
        _LOOP.append(asyncio.new_event_loop())
    return _LOOP[0].run_until_complete(work)


def loop_async(job: Job, ask: Callable[[New], Awaitable[Answer]]) -> list[str]:
    """As ``loop``, with a client that is awaited."""

    async def talk_on() -> list[str]:
        talking = talk(job.prompts)
        new = next(talking)
        while True:
            answer = await ask(new)
            try:
                new = talking.send(answer)
            except StopIteration as end:
                return list(end.value)

    return run(talk_on())


def inside(job: Job) -> Any:
    """An HTTP client with the transport in it; ``None`` where the job has none."""
    if not job.log:
        return None
    import thinkback

    return thinkback.http_client(job.log, **inside_options(job))


def inside_async(job: Job) -> Any:
    """The same for asyncio."""
    if not job.log:
        return None
    import thinkback

    return thinkback.async_http_client(job.log, **inside_options(job))


def inside_options(job: Job) -> Any:
    """The options of the transport for a job."""
    way = {"route": f"{job.endpoint}/{job.routed}"} if job.routed else {"endpoint": job.endpoint}
    return {**way, "settings": {"reasoning.effort": job.asks} if job.asks else None}


def joined(texts: Iterable[str | None]) -> str:
    """Pieces of text as one."""
    return "".join(text for text in texts if text)
