"""langchain: chat models of three providers, with one message format."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any

from bench.gateway_clients.job import (
    ASYNC,
    ASYNC_STREAMED,
    STREAMED,
    STRUCTURED,
    WAYS,
    Answer,
    Job,
    New,
    Script,
    call_of,
    inside,
    inside_async,
    inside_options,
    loop,
    loop_async,
)
from bench.gateway_clients.schema import STRICT_TOOLS, Weather
from bench.peers.places import CHAT_TOOLS, VERSION


def _chat(job: Job, **options: Any) -> Any:
    from langchain_openai import ChatOpenAI

    chat: Any = ChatOpenAI
    effort = {"reasoning_effort": job.effort} if job.effort else {}
    clients = {"http_client": inside(job), "http_async_client": inside_async(job)}
    place = {"model": job.model, "base_url": job.base_url, "api_key": job.key, "max_retries": 0}
    return chat(**place, **clients, **effort, **options)


def _messages(job: Job) -> Any:
    from langchain_anthropic import ChatAnthropic

    messages: Any = ChatAnthropic
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 10_000}} if job.effort else {}
    model = messages(
        model=job.model,
        base_url=job.base_url,
        api_key=job.key,
        max_tokens=16_000,
        max_retries=0,
        default_headers=VERSION,
        **thinking,
    )
    return _through(job, model)


def _gemini(job: Job) -> Any:
    from langchain_google_genai import ChatGoogleGenerativeAI

    gemini: Any = ChatGoogleGenerativeAI
    # Otherwise it sends a temperature of 0.7, which some models that think refuse.
    options = {"base_url": job.base_url, "google_api_key": job.key, "max_retries": 1, "temperature": None}
    return _through(job, gemini(model=job.model, **options))


def _through(job: Job, model: Any) -> Any:
    """A chat model that takes no HTTP client, by way of the middleware."""
    if not job.log:
        return model
    from thinkback.adapters.langchain import ThinkbackMiddleware

    return ThinkbackMiddleware(job.log, **inside_options(job)).through(model)


def _hold(make: Callable[[Job], Any], job: Job) -> list[str]:
    from langchain_core.messages import HumanMessage, ToolMessage

    model = make(job).bind_tools(**_tools(job))
    messages: list[Any] = []

    def take(new: New) -> list[Any]:
        if isinstance(new, str):
            messages.append(HumanMessage(new))
        else:
            messages.extend(ToolMessage(text, tool_call_id=call.id) for call, text in new)
        return messages

    def keep(answer: Any) -> Answer:
        messages.append(answer)
        calls = [call_of(call["id"], call["name"], call["args"]) for call in answer.tool_calls]
        shaped = job.mode == STRUCTURED and not calls
        return Answer(Weather.model_validate_json(answer.text).model_dump_json() if shaped else answer.text, calls)

    async def ask_async(new: New) -> Answer:
        if job.mode == ASYNC:
            return keep(await model.ainvoke(take(new)))
        return keep(reduce(add, [piece async for piece in model.astream(take(new))]))

    def ask(new: New) -> Answer:
        if job.mode == STREAMED:
            return keep(reduce(add, model.stream(take(new))))
        return keep(model.invoke(take(new)))

    if job.mode in (ASYNC, ASYNC_STREAMED):
        return loop_async(job, ask_async)
    return loop(job, ask)


def _tools(job: Job) -> dict[str, Any]:
    """The tools, and what an answer must look like."""
    if job.mode != STRUCTURED:
        return {"tools": CHAT_TOOLS}
    schema = Weather.model_json_schema()
    if "Google" in job.client:
        return {"tools": CHAT_TOOLS, "response_mime_type": "application/json", "response_json_schema": schema}
    shape = {"type": "json_schema", "json_schema": {"name": "Weather", "strict": True, "schema": schema}}
    return {"tools": STRICT_TOOLS if "OpenAI" in job.client else CHAT_TOOLS, "response_format": shape}


_MODES = (*WAYS, STRUCTURED)
CHAT = Script(
    "langchain ChatOpenAI",
    "openai-chat",
    ("langchain-openai", "langchain-core"),
    _MODES,
    partial(_hold, _chat),
    "from langchain_openai import ChatOpenAI\n"
    'model = ChatOpenAI(model="...", base_url="http://127.0.0.1:8484/v1", api_key="tb-...")',
)
RESPONSES = Script(
    "langchain ChatOpenAI, Responses",
    "openai-responses",
    ("langchain-openai", "langchain-core"),
    _MODES,
    partial(_hold, partial(_chat, use_responses_api=True)),
    "from langchain_openai import ChatOpenAI\n"
    'model = ChatOpenAI(model="...", base_url="http://127.0.0.1:8484/v1", api_key="tb-...", use_responses_api=True)',
)
MESSAGES = Script(
    "langchain ChatAnthropic",
    "anthropic",
    ("langchain-anthropic", "langchain-core"),
    _MODES,
    partial(_hold, _messages),
    "from langchain_anthropic import ChatAnthropic\n"
    'model = ChatAnthropic(model="...", base_url="http://127.0.0.1:8484", api_key="tb-...")',
)
GEMINI = Script(
    "langchain ChatGoogleGenerativeAI",
    "gemini",
    ("langchain-google-genai", "langchain-core"),
    _MODES,
    partial(_hold, _gemini),
    "from langchain_google_genai import ChatGoogleGenerativeAI\n"
    'model = ChatGoogleGenerativeAI(model="...", base_url="http://127.0.0.1:8484", google_api_key="tb-...")',
)
