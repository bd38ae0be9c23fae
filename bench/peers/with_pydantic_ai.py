"""pydantic-ai: an agent with tools that run elsewhere, and its message history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.peers.places import ABOUT, KEY, SCHEMA, VERSION, Place
from bench.peers.play import Call, Locate, Peer


class _Client:
    def __init__(self, place: Place, locate: Locate, stream: bool) -> None:
        from pydantic_ai import Agent, DeferredToolRequests, ExternalToolset, ToolDefinition

        tools = [ToolDefinition(name=n, description=a, parameters_json_schema=SCHEMA) for n, a in ABOUT.items()]
        agent: Any = Agent
        self._agent = agent(output_type=[str, DeferredToolRequests], toolsets=[ExternalToolset(tools)])
        self._locate = locate
        self._stream = stream
        self._history: list[Any] = []
        self._place = place
        self._model = _model(place, locate)

    def say(self, text: str) -> Sequence[Call]:
        return self._run(user_prompt=text)

    def give(self, results: Mapping[str, str]) -> Sequence[Call]:
        from pydantic_ai import DeferredToolResults

        return self._run(deferred_tool_results=DeferredToolResults(calls=dict(results)))

    def move(self, place: Place) -> None:
        self._place = place
        self._model = _model(place, self._locate)

    def close(self) -> None:
        """It shows no way to."""

    def _run(self, **options: Any) -> list[Call]:
        result = self._agent.run_sync(
            message_history=self._history,
            model=self._model,
            model_settings={"thinking": self._place.effort} if self._place.effort else {},
            event_stream_handler=_read if self._stream else None,
            **options,
        )
        self._history = result.all_messages()
        return [Call(call.tool_call_id, call.tool_name) for call in getattr(result.output, "calls", ())]


async def _read(context: Any, events: Any) -> None:
    """With a handler the model is asked for a stream."""
    async for _ in events:
        pass


def _openai(url: str) -> Any:
    from openai import AsyncOpenAI

    return AsyncOpenAI(base_url=url, api_key=KEY)


def _deepseek(model: str, url: str) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.deepseek import DeepSeekProvider

    return OpenAIChatModel(model, provider=DeepSeekProvider(openai_client=_openai(url)))


def _kimi(model: str, url: str) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.moonshotai import MoonshotAIProvider

    return OpenAIChatModel(model, provider=MoonshotAIProvider(api_key=KEY, base_url=url))


def _groq(model: str, url: str) -> Any:
    from groq import AsyncGroq
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    return GroqModel(model, provider=GroqProvider(groq_client=AsyncGroq(api_key=KEY, base_url=url)))


def _mistral(model: str, url: str) -> Any:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    return MistralModel(model, provider=MistralProvider(api_key=KEY, base_url=url))


def _chat(model: str, url: str) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(model, provider=OpenAIProvider(api_key=KEY, base_url=url))


def _responses(model: str, url: str) -> Any:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(model, provider=OpenAIProvider(api_key=KEY, base_url=url))


def _azure(model: str, url: str) -> Any:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.azure import AzureProvider

    return OpenAIResponsesModel(model, provider=AzureProvider(api_key=KEY, azure_endpoint=url))


def _openrouter(model: str, url: str) -> Any:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    return OpenRouterModel(model, provider=OpenRouterProvider(openai_client=_openai(url)))


def _anthropic(model: str, url: str) -> Any:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(api_key=KEY, base_url=url, default_headers=VERSION)
    return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))


def _gemini(model: str, url: str) -> Any:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    # Its client adds the version to the address.
    return GoogleModel(model, provider=GoogleProvider(api_key=KEY, base_url=url.removesuffix("/v1beta")))


def _cohere(model: str, url: str) -> Any:
    from cohere import AsyncClientV2
    from pydantic_ai.models.cohere import CohereModel
    from pydantic_ai.providers.cohere import CohereProvider

    client = AsyncClientV2(api_key=KEY, base_url=url.removesuffix("/v2"))
    return CohereModel(model, provider=CohereProvider(cohere_client=client))


_MODELS: dict[str, Callable[[str, str], Any]] = {
    "DeepSeek chat": _deepseek,
    "Kimi chat": _kimi,
    "Groq chat": _groq,
    "Mistral": _mistral,
    "OpenAI chat": _chat,
    "OpenAI Responses": _responses,
    "Azure Responses": _azure,
    "OpenRouter chat": _openrouter,
    "Anthropic 4.5": _anthropic,
    "Anthropic 5.5": _anthropic,
    "Gemini": _gemini,
    "Cohere": _cohere,
}


def _model(place: Place, locate: Locate) -> Any:
    return _MODELS[place.name](place.model, locate(place))


PEER = Peer(
    name="pydantic-ai",
    packages=("pydantic-ai-slim",),
    open=_Client,
    places=frozenset(_MODELS),
    turns=(
        "`agent.run_sync(prompt, message_history=result.all_messages())` with each provider's own model class; tools "
        "in an `ExternalToolset`, results as `deferred_tool_results`; `thinking` for 4.5 and OpenRouter; streamed: "
        "`event_stream_handler`. Its model for xAI speaks gRPC, which the referee does not play"
    ),
    switch="The same `message_history` with another `model`.",
    switches=True,
    apart={
        ("Cohere", True): "it does not stream from Cohere",
        ("Mistral", True): "its client of Mistral wants each call in one piece; the referee sends it in several",
    },
)
