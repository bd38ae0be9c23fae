"""The anthropic package: the Messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.peers.places import KEY, MESSAGES_TOOLS, VERSION, Place
from bench.peers.play import Call, Locate, Peer


class _Client:
    def __init__(self, place: Place, locate: Locate, stream: bool) -> None:
        from anthropic import Anthropic

        self._client: Any = Anthropic(base_url=locate(place), api_key=KEY, default_headers=VERSION)
        self._stream = stream
        self._messages: list[Any] = []
        self._request: dict[str, Any] = {"model": place.model, "max_tokens": 16_000, "tools": MESSAGES_TOOLS}
        if place.effort:
            self._request["thinking"] = {"type": "enabled", "budget_tokens": 10_000}

    def say(self, text: str) -> Sequence[Call]:
        self._messages.append({"role": "user", "content": text})
        return self._ask()

    def give(self, results: Mapping[str, str]) -> Sequence[Call]:
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results.items()]
        self._messages.append({"role": "user", "content": blocks})
        return self._ask()

    def move(self, place: Place) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._client.close()

    def _ask(self) -> list[Call]:
        request = {**self._request, "messages": self._messages}
        if self._stream:
            with self._client.messages.stream(**request) as stream:
                message = stream.get_final_message()
        else:
            message = self._client.messages.create(**request)
        self._messages.append({"role": "assistant", "content": message.content})
        return [Call(block.id, block.name) for block in message.content if block.type == "tool_use"]


PEER = Peer(
    name="anthropic",
    packages=("anthropic",),
    open=_Client,
    places=frozenset({"Anthropic 4.5", "Anthropic 5.5", "DeepSeek Messages"}),
    turns=(
        '`{"role": "assistant", "content": message.content}`, results as `tool_result` blocks; `thinking` with a '
        "budget for 4.5; streamed: `messages.stream(...)`, `get_final_message()`"
    ),
    switch="n/a: the package speaks one provider's format.",
)
