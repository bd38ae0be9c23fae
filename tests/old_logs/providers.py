"""Providers that answer again as they did when a set of logs was made, at the same addresses in every process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple
from unittest import mock

from tests.conformance.moves import PLACES, TOOLS
from thinkback_referee import Call, Exchange, Referee, Step
from thinkback_referee.persona import Asked
from thinkback_referee.transport import Incoming, Reply

ADDRESS = "http://providers.localhost"
"""Under which all of them are reached through a proxy: reasoning is bound to the address it came from."""
KEY = "sk-of-the-old-logs-0123456789"
ASKED = (
    "This is {name}. What is the weather in Oslo?",
    "And what is the weather in Rome?",
    "Thank you. What is the time in Bergen?",
)
HOSTS = {place.dialect: place.host for place in PLACES}

Json = dict[str, Any]

__all__ = ["ADDRESS", "ASKED", "HOSTS", "KEY", "PLACES", "TOOLS", "Providers", "Seen", "behind"]


class Seen(NamedTuple):
    """A request as it came to a provider, and what was said to it."""

    path: str
    headers: dict[str, str]
    body: str
    step: Json
    status: int


class Providers(Referee):
    """The referee as a proxy."""

    def __init__(self) -> None:
        super().__init__()
        self._came: list[Incoming] = []

    def at(self, host: str) -> str:
        """The base URL of a provider."""
        return self.base_url(host).replace(self.url, ADDRESS)

    def respond(self, incoming: Incoming) -> Reply:
        incoming = replace(incoming, path=incoming.path.removeprefix(ADDRESS))
        before = len(self.requests)
        reply = super().respond(incoming)
        if len(self.requests) > before:  # a question about a model's limits is no request of a conversation
            self._came.append(incoming)
        return reply

    @property
    def seen(self) -> list[Seen]:
        """Every request since ``begin``."""
        return [_seen(came, exchange) for came, exchange in zip(self._came, self.requests, strict=True)]

    def begin(self, earlier: Iterable[Seen] = (), later: Iterable[Seen] = ()) -> None:
        """Another conversation: know what was said ``earlier``, and say ``later`` what was said then."""
        self.reset()
        for seen in earlier:
            self.push(_step(seen.step))
            assert seen.status == super().respond(Incoming("POST", seen.path, seen.headers, seen.body.encode())).status
        self.forget_requests()
        self._came.clear()
        for seen in later:
            self.push(_step(seen.step))

    def digest(self, asked: Asked, step: Step) -> str:
        """What opaque values are made of: nothing that another version of the referee would see in another way, or that
        later versions say explicitly of functions.
        """
        calls = [[call.name, call.arguments] for call in step.tool_calls]
        said = [asked.host, asked.model, _unstrict(asked.body), step.reasoning, step.text, calls]
        return sha256(json.dumps(said, sort_keys=True, default=dict).encode()).hexdigest()


def _unstrict(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request whose functions do not say that their calls are not held to the schema."""
    tools = body.get("tools")
    if not isinstance(tools, list):
        return dict(body)
    return {**body, "tools": [{key: value for key, value in each.items() if key != "strict"} for each in tools]}


@contextmanager
def behind(providers: Providers) -> Iterator[None]:
    """This process and those it starts reach the providers, and no other proxy."""
    named: Mapping[str, str] = {"http_proxy": providers.url, "no_proxy": "", "NO_PROXY": "", "UP": KEY}
    with mock.patch.dict("os.environ", named):
        yield


def _seen(came: Incoming, exchange: Exchange) -> Seen:
    kept = {name: value for name, value in came.headers.items() if name not in ("host", "content-length", "user-agent")}
    step = exchange.step or Step()
    calls = [{"name": call.name, "arguments": call.arguments} for call in step.tool_calls]
    said = {"reasoning": step.reasoning, "text": step.text, "tool_calls": calls}
    return Seen(came.path, kept, came.body.decode(), said, exchange.status)


def _step(said: Json) -> Step:
    calls = [Call(call["name"], call["arguments"]) for call in said["tool_calls"]]
    return Step(reasoning=said["reasoning"], text=said["text"], tool_calls=calls)
