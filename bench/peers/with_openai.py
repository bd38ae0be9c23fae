"""The openai package: chat completions, and the Responses API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.peers.places import CHAT_TOOLS, KEY, RESPONSES_TOOLS, Place
from bench.peers.play import Call, Locate, Peer


class _Chat:
    def __init__(self, place: Place, locate: Locate, stream: bool) -> None:
        from openai import OpenAI

        self._client: Any = OpenAI(base_url=locate(place), api_key=KEY)
        self._messages: list[Any] = []
        self._request: dict[str, Any] = {"model": place.model, "tools": CHAT_TOOLS}
        if place.effort:
            self._request["reasoning_effort"] = place.effort

    def say(self, text: str) -> Sequence[Call]:
        self._messages.append({"role": "user", "content": text})
        return self._ask()

    def give(self, results: Mapping[str, str]) -> Sequence[Call]:
        for call, result in results.items():
            self._messages.append({"role": "tool", "tool_call_id": call, "content": result})
        return self._ask()

    def move(self, place: Place) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._client.close()

    def _ask(self) -> list[Call]:
        request = {**self._request, "messages": self._messages}
        message = self._client.chat.completions.create(**request).choices[0].message
        self._messages.append(message)
        return [Call(call.id, call.function.name) for call in message.tool_calls or ()]


class _Responses:
    def __init__(self, place: Place, locate: Locate, stream: bool) -> None:
        from openai import OpenAI

        self._client: Any = OpenAI(base_url=locate(place), api_key=KEY)
        self._stream = stream
        self._input: list[Any] = []
        self._request: dict[str, Any] = {"model": place.model, "tools": RESPONSES_TOOLS}
        if place.effort:
            self._request["reasoning"] = {"effort": place.effort}

    def say(self, text: str) -> Sequence[Call]:
        self._input.append({"role": "user", "content": text})
        return self._ask()

    def give(self, results: Mapping[str, str]) -> Sequence[Call]:
        for call, result in results.items():
            self._input.append({"type": "function_call_output", "call_id": call, "output": result})
        return self._ask()

    def move(self, place: Place) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._client.close()

    def _ask(self) -> list[Call]:
        request = {**self._request, "input": self._input}
        if self._stream:
            with self._client.responses.stream(**request) as stream:
                response = stream.get_final_response()
        else:
            response = self._client.responses.create(**request)
        self._input += response.output
        return [Call(item.call_id, item.name) for item in response.output if item.type == "function_call"]


_ONE_FORMAT = "n/a: the package has no history of its own; each provider documents one for itself."

_PLACES = frozenset({"DeepSeek chat", "Kimi chat", "Groq chat", "OpenAI chat", "OpenRouter chat", "Gemini chat"})
CHAT = Peer(
    name="openai chat",
    packages=("openai",),
    open=_Chat,
    places=_PLACES,
    apart={(place, True): "the guides leave it to the program to join the chunks" for place in _PLACES},
    turns=(
        "`messages.append(completion.choices[0].message)`, results as `tool` messages, as the guides of OpenAI, "
        "DeepSeek, Kimi, Groq, OpenRouter and Gemini show it with `OpenAI(base_url=...)`"
    ),
    switch=_ONE_FORMAT,
)
RESPONSES = Peer(
    name="openai Responses",
    packages=("openai",),
    open=_Responses,
    places=frozenset({"OpenAI Responses", "Azure Responses", "xAI Responses"}),
    turns=(
        "`input += response.output`, results as `function_call_output` items, nothing else set; streamed: "
        "`responses.stream(...)`, `get_final_response()`"
    ),
    switch=_ONE_FORMAT,
)
