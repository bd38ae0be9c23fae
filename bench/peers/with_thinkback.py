"""thinkback itself, used through its public face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import thinkback
from bench.peers.places import CHAT_TOOLS, KEY, PLACES, Place
from bench.peers.play import Call, Locate, Peer


class _Client:
    def __init__(self, place: Place, locate: Locate, stream: bool) -> None:
        self._locate = locate
        self._stream = stream
        self._place = place
        self._store = thinkback.open(":memory:", rules={}, settings={})
        self._session = self._store.session("peers", **self._target(place))

    def say(self, text: str) -> Sequence[Call]:
        return _calls(self._session.chat(text, **self._options()))

    def give(self, results: Mapping[str, str]) -> Sequence[Call]:
        return _calls(self._session.generate(tool_results=results, **self._options()))

    def move(self, place: Place) -> None:
        self._place = place
        self._session.use(**self._target(place))

    def close(self) -> None:
        self._store.close()

    def _options(self) -> Any:
        settings = {"reasoning.effort": self._place.effort} if self._place.effort else {}
        return {"tools": CHAT_TOOLS, "stream": self._stream, "settings": settings}

    def _target(self, place: Place) -> dict[str, Any]:
        return {
            "endpoint": place.endpoint,
            "model": place.model,
            "base_url": self._locate(place),
            "api_key": KEY,
        }


def _calls(reply: thinkback.Reply) -> list[Call]:
    return [Call(call.id, call.name) for call in reply.tool_calls]


PEER = Peer(
    name="thinkback",
    packages=("thinkback",),
    open=_Client,
    places=frozenset(PLACES),
    turns="`session.chat(prompt)`, then `session.generate(tool_results=...)`; it builds each request from its log.",
    switch="`session.use(endpoint=..., model=...)`, then on as before, also while calls wait.",
    switches=True,
)
