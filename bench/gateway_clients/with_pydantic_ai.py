"""pydantic-ai: an agent whose tools it runs itself, with the model class of each API."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench.gateway_clients.job import (
    ASYNC,
    ASYNC_STREAMED,
    STREAMED,
    STRUCTURED,
    SYNC,
    TOOLS,
    Job,
    Script,
    inside_async,
    run,
)
from bench.gateway_clients.schema import Weather
from bench.peers.places import VERSION


def _openai(job: Job, http: Any) -> Any:
    from openai import AsyncOpenAI
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=job.base_url, api_key=job.key, max_retries=0, http_client=http)
    return OpenAIProvider(openai_client=client)


def _chat(job: Job) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel

    # It does not ask OpenRouter for reasoning, whatever it is told.
    told = job._replace(asks=job.effort or job.asks)
    return OpenAIChatModel(job.model, provider=_openai(job, inside_async(told)))


def _responses(job: Job) -> Any:
    from pydantic_ai.models.openai import OpenAIResponsesModel

    return OpenAIResponsesModel(job.model, provider=_openai(job, inside_async(job)))


def _messages(job: Job) -> Any:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    several: Any = AsyncAnthropic
    options = {"default_headers": VERSION, "max_retries": 0, "http_client": inside_async(job)}
    client = several(api_key=job.key, base_url=job.base_url, **options)
    return AnthropicModel(job.model, provider=AnthropicProvider(anthropic_client=client))


def _gemini(job: Job) -> Any:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(
        job.model, provider=GoogleProvider(api_key=job.key, base_url=job.base_url, http_client=inside_async(job))
    )


def _hold(make: Callable[[Job], Any], job: Job) -> list[str]:
    from pydantic_ai import Agent, NativeOutput

    several: Any = Agent
    output: Any = NativeOutput(Weather) if job.mode == STRUCTURED else str
    settings = {"thinking": job.effort} if job.effort else {}
    agent = several(make(job), tools=list(TOOLS.values()), output_type=output, model_settings=settings)
    if job.mode in (ASYNC, ASYNC_STREAMED):
        return run(_several(agent, job))
    said: list[str] = []
    history: list[Any] = []
    for prompt in job.prompts:
        read = _read if job.mode == STREAMED else None
        result = agent.run_sync(prompt, message_history=history, event_stream_handler=read)
        history = result.all_messages()
        said.append(_text(result.output))
    return said


async def _several(agent: Any, job: Job) -> list[str]:
    said: list[str] = []
    history: list[Any] = []
    for prompt in job.prompts:
        if job.mode == ASYNC:
            result = await agent.run(prompt, message_history=history)
            said.append(_text(result.output))
        else:
            async with agent.run_stream(prompt, message_history=history) as result:
                said.append(_text(await result.get_output()))
        history = result.all_messages()
    return said


async def _read(context: Any, events: Any) -> None:
    """With a handler the model is asked for a stream."""
    async for _ in events:
        pass


def _text(output: Any) -> str:
    return output if isinstance(output, str) else str(output.model_dump_json())


_MODES = (SYNC, ASYNC, STREAMED, ASYNC_STREAMED, STRUCTURED)


def _script(name: str, front: str, make: Callable[[Job], Any], lines: str) -> Script:
    shapes = "claude" if front == "anthropic" else ""
    return Script(name, front, ("pydantic-ai-slim",), _MODES, partial(_hold, make), lines, shapes=shapes)


CHAT = _script(
    "pydantic-ai OpenAIChatModel",
    "openai-chat",
    _chat,
    'provider = OpenAIProvider(base_url="http://127.0.0.1:8484/v1", api_key="tb-...")\n'
    'agent = Agent(OpenAIChatModel("...", provider=provider))',
)
RESPONSES = _script(
    "pydantic-ai OpenAIResponsesModel",
    "openai-responses",
    _responses,
    'provider = OpenAIProvider(base_url="http://127.0.0.1:8484/v1", api_key="tb-...")\n'
    'agent = Agent(OpenAIResponsesModel("...", provider=provider))',
)
MESSAGES = _script(
    "pydantic-ai AnthropicModel",
    "anthropic",
    _messages,
    'client = AsyncAnthropic(base_url="http://127.0.0.1:8484", api_key="tb-...")\n'
    'agent = Agent(AnthropicModel("...", provider=AnthropicProvider(anthropic_client=client)))',
)
GEMINI = _script(
    "pydantic-ai GoogleModel",
    "gemini",
    _gemini,
    'provider = GoogleProvider(base_url="http://127.0.0.1:8484", api_key="tb-...")\n'
    'agent = Agent(GoogleModel("...", provider=provider))',
)
