"""litellm as a client: one function and one message format; the prefix of the model's name says which API it speaks."""

from __future__ import annotations

import os
from functools import partial
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
    joined,
    loop,
    loop_async,
)
from bench.gateway_clients.schema import Weather
from bench.peers.places import CHAT_TOOLS, RESPONSES_TOOLS


def _hold(prefix: str, job: Job) -> list[str]:
    # Without it the import asks the network for a table of prices.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    package: Any = litellm
    messages: list[Any] = []
    request: dict[str, Any] = {
        "model": prefix + job.model,
        "messages": messages,
        "tools": CHAT_TOOLS,
        "api_base": job.base_url + ("/v1beta" if prefix == "gemini/" else ""),
        "api_key": job.key,
        "max_retries": 0,
    }
    if job.log:
        from openai import AsyncOpenAI, OpenAI

        place = {"base_url": job.base_url, "api_key": job.key, "max_retries": 0}
        is_async = job.mode in (ASYNC, ASYNC_STREAMED)
        several: Any = AsyncOpenAI if is_async else OpenAI
        request["client"] = several(http_client=inside_async(job) if is_async else inside(job), **place)
    if job.effort:
        request["reasoning_effort"] = job.effort
    if job.mode == STRUCTURED:
        request["response_format"] = Weather

    def take(new: New) -> dict[str, Any]:
        if isinstance(new, str):
            messages.append({"role": "user", "content": new})
        else:
            messages.extend({"role": "tool", "tool_call_id": call.id, "content": text} for call, text in new)
        return request

    def keep(response: Any) -> Answer:
        message = response.choices[0].message
        messages.append(message)
        calls = [call_of(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()]
        return Answer(message.content or "", calls)

    async def ask_async(new: New) -> Answer:
        if job.mode == ASYNC:
            return keep(await package.acompletion(**take(new)))
        chunks = [chunk async for chunk in await package.acompletion(stream=True, **take(new))]
        return keep(package.stream_chunk_builder(chunks, messages=messages))

    def ask(new: New) -> Answer:
        if job.mode == STREAMED:
            chunks = list(package.completion(stream=True, **take(new)))
            return keep(package.stream_chunk_builder(chunks, messages=messages))
        answer = keep(package.completion(**take(new)))
        if job.mode == STRUCTURED and not answer.calls:
            return Answer(Weather.model_validate_json(answer.text).model_dump_json(), [])
        return answer

    return loop_async(job, ask_async) if job.mode in (ASYNC, ASYNC_STREAMED) else loop(job, ask)


def _hold_responses(job: Job) -> list[str]:
    """``litellm.responses``: the Responses API as the package has it."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    package: Any = litellm
    items: list[Any] = []
    request: dict[str, Any] = {
        "model": f"openai/{job.model}",
        "input": items,
        "tools": RESPONSES_TOOLS,
        "api_base": job.base_url,
        "api_key": job.key,
    }
    if job.effort:
        request["reasoning"] = {"effort": job.effort}
    if job.mode == STRUCTURED:
        request["text_format"] = Weather

    def take(new: New) -> dict[str, Any]:
        if isinstance(new, str):
            items.append({"role": "user", "content": new})
        else:
            items.extend({"type": "function_call_output", "call_id": c.id, "output": text} for c, text in new)
        return request

    def keep(response: Any) -> Answer:
        items.extend(response.output)
        calls = [call_of(i.call_id, i.name, i.arguments) for i in response.output if i.type == "function_call"]
        text = joined(part.text for i in response.output if i.type == "message" for part in i.content)
        if job.mode == STRUCTURED and not calls:
            text = Weather.model_validate_json(text).model_dump_json()
        return Answer(text, calls)

    async def ask_async(new: New) -> Answer:
        if job.mode == ASYNC:
            return keep(await package.aresponses(**take(new)))
        events = [event async for event in await package.aresponses(stream=True, **take(new))]
        return keep(_last(events))

    def ask(new: New) -> Answer:
        if job.mode == STREAMED:
            return keep(_last(list(package.responses(stream=True, **take(new)))))
        return keep(package.responses(**take(new)))

    return loop_async(job, ask_async) if job.mode in (ASYNC, ASYNC_STREAMED) else loop(job, ask)


def _last(events: list[Any]) -> Any:
    """The response that the last event brings."""
    return next(event.response for event in reversed(events) if event.type == "response.completed")


_OLDER = "it sends by clients of the older httpx; the transport stands on httpx2"


def _script(name: str, front: str, prefix: str, base: str, shapes: str = "", bypasses: str = "") -> Script:
    lines = (
        f'import litellm\nlitellm.completion(model="{prefix}...", messages=messages, '
        f'api_base="{base}", api_key="tb-...")'
    )
    return Script(name, front, ("litellm",), (*WAYS, STRUCTURED), partial(_hold, prefix), lines, {}, shapes, bypasses)


_ADDRESS = "http://127.0.0.1:8484"
CHAT = _script("litellm openai/", "openai-chat", "openai/", f"{_ADDRESS}/v1")
RESPONSES = Script(
    "litellm responses",
    "openai-responses",
    ("litellm",),
    (*WAYS, STRUCTURED),
    _hold_responses,
    f'import litellm\nlitellm.responses(model="openai/...", input="...", api_base="{_ADDRESS}/v1", api_key="tb-...")',
    bypasses=_OLDER,
)
MESSAGES = _script("litellm anthropic/", "anthropic", "anthropic/", _ADDRESS, "claude", _OLDER)
GEMINI = _script("litellm gemini/", "gemini", "gemini/", f"{_ADDRESS}/v1beta", "gemini", _OLDER)
