"""langchain-openai and langchain-anthropic: chat models with one message format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

from bench.peers.places import CHAT_TOOLS, KEY, VERSION, Place
from bench.peers.play import Call, Locate, Peer

_ANTHROPIC = frozenset({"Anthropic 4.5", "Anthropic 5.5"})
_RESPONSES = frozenset({"OpenAI Responses", "Azure Responses"})


class _Client:
    def __init__(self, place: Place, locate: Locate, stream: bool) -> None:
        self._locate = locate
        self._stream = stream
        self._messages: list[Any] = []
        self._model = _model(place, locate)

    def say(self, text: str) -> Sequence[Call]:
        from langchain_core.messages import HumanMessage

        self._messages.append(HumanMessage(text))
        return self._ask()

    def give(self, results: Mapping[str, str]) -> Sequence[Call]:
        from langchain_core.messages import ToolMessage

        self._messages += [ToolMessage(text, tool_call_id=call) for call, text in results.items()]
        return self._ask()

    def move(self, place: Place) -> None:
        self._model = _model(place, self._locate)

    def close(self) -> None:
        """It shows no way to."""

    def _ask(self) -> list[Call]:
        messages = self._messages
        answer = reduce(add, self._model.stream(messages)) if self._stream else self._model.invoke(messages)
        self._messages.append(answer)
        return [Call(call["id"], call["name"]) for call in answer.tool_calls]


def _model(place: Place, locate: Locate) -> Any:
    return _bare(place, locate(place)).bind_tools(CHAT_TOOLS)


def _bare(place: Place, url: str) -> Any:
    if place.name in _ANTHROPIC:
        from langchain_anthropic import ChatAnthropic

        options: dict[str, Any] = {"max_tokens": 16_000, "default_headers": VERSION}
        if place.effort:
            options["thinking"] = {"type": "enabled", "budget_tokens": 10_000}
        messages: Any = ChatAnthropic
        return messages(model=place.model, base_url=url, api_key=KEY, **options)
    from langchain_openai import ChatOpenAI

    chat: Any = ChatOpenAI
    return chat(model=place.model, base_url=url, api_key=KEY, use_responses_api=place.name in _RESPONSES)


PEER = Peer(
    name="langchain",
    packages=("langchain-openai", "langchain-anthropic", "langchain-core"),
    open=_Client,
    places=_ANTHROPIC | _RESPONSES | {"OpenAI chat"},
    turns=(
        "`messages.append(model.bind_tools(...).invoke(messages))`, results as `ToolMessage`; `ChatOpenAI` with "
        "`use_responses_api`, `ChatAnthropic` with `thinking` and a budget for 4.5; streamed: the sum of the chunks. "
        "Its documentation says that `ChatOpenAI` does not preserve the reasoning of other providers: they are n/a"
    ),
    switch="The same messages with another chat model.",
    switches=True,
)
