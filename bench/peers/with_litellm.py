"""litellm: one function and one message format for all providers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from bench.peers.places import CHAT_TOOLS, KEY, Place
from bench.peers.play import Call, Locate, Peer

# Its documentation's name of each provider; `responses/` takes a completion to the Responses API.
_MODELS = {
    "DeepSeek chat": "deepseek/",
    "Kimi chat": "moonshot/",
    "Groq chat": "groq/",
    "Mistral": "mistral/",
    "OpenAI chat": "openai/",
    "OpenAI Responses": "openai/responses/",
    "Azure Responses": "azure/responses/",
    "xAI Responses": "xai/responses/",
    "OpenRouter chat": "openrouter/",
    "Anthropic 4.5": "anthropic/",
    "Anthropic 5.5": "anthropic/",
    "Gemini": "gemini/",
    "Ollama": "ollama_chat/",
}


class _Client:
    def __init__(self, place: Place, locate: Locate, stream: bool) -> None:
        # Without it the import asks the network for a table of prices.
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        self._locate = locate
        self._stream = stream
        self._messages: list[Any] = []
        self._place = place

    def say(self, text: str) -> Sequence[Call]:
        self._messages.append({"role": "user", "content": text})
        return self._ask()

    def give(self, results: Mapping[str, str]) -> Sequence[Call]:
        for call, result in results.items():
            self._messages.append({"role": "tool", "tool_call_id": call, "content": result})
        return self._ask()

    def move(self, place: Place) -> None:
        self._place = place

    def close(self) -> None:
        """It shows no way to."""

    def _ask(self) -> list[Call]:
        import litellm

        complete: Any = litellm.completion
        place = self._place
        effort = {"reasoning_effort": place.effort} if place.effort else {}
        answer = complete(
            model=_MODELS[place.name] + place.model,
            messages=self._messages,
            tools=CHAT_TOOLS,
            api_base=_base(place, self._locate(place)),
            api_key=KEY,
            stream=self._stream,
            **effort,
        )
        if self._stream:
            build: Any = litellm.stream_chunk_builder
            answer = build(list(answer), messages=self._messages)
        message = answer.choices[0].message
        self._messages.append(message)
        return [Call(call.id, call.function.name) for call in message.tool_calls or ()]


def _base(place: Place, url: str) -> str:
    """What its documentation calls ``api_base``: sometimes the address of the API, sometimes that of the host."""
    match place.name:
        case "Azure Responses":
            return url.removesuffix("/openai/v1")
        case "Ollama":
            return url.removesuffix("/api")
        case _:
            return url


_NO_BASE = "no documentation found of what its `api_base` is for Cohere"
PEER = Peer(
    name="litellm",
    packages=("litellm",),
    open=_Client,
    places=frozenset(_MODELS),
    turns=(
        "`completion(model=..., messages=..., api_base=...)`, `messages.append(response.choices[0].message)`, results "
        "as `tool` messages; `openai/responses/...` for the Responses API; `reasoning_effort` for 4.5 and OpenRouter; "
        "streamed: `stream_chunk_builder`"
    ),
    switch="The same `messages` with another `model`.",
    switches=True,
    apart={
        ("Groq chat", False): "it reads `service_tier`, which the referee's Groq does not send",
        ("Cohere", False): _NO_BASE,
        ("Cohere", True): _NO_BASE,
    },
)
