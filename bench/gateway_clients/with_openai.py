"""The openai package: chat completions, and the Responses API."""

from __future__ import annotations

from typing import Any

from bench.gateway_clients.job import (
    ASYNC,
    ASYNC_STREAMED,
    REBUILT,
    STREAMED,
    STRUCTURED,
    SYNC,
    Answer,
    Call,
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
from bench.gateway_clients.schema import STRICT_TOOLS, Weather
from bench.peers.places import CHAT_TOOLS, RESPONSES_TOOLS

HELPER, BY_ID, STATELESS = "stream helper", "previous_response_id", "store=False"


class _Chat:
    """The messages so far; ``rebuilt`` as most programs keep them: role, content and calls."""

    def __init__(self, job: Job) -> None:
        self._messages: list[Any] = []
        self._job = job
        self._request: dict[str, Any] = {"model": job.model, "tools": CHAT_TOOLS}
        if job.effort:
            self._request["reasoning_effort"] = job.effort

    def take(self, new: New) -> dict[str, Any]:
        if isinstance(new, str):
            self._messages.append({"role": "user", "content": new})
        else:
            for call, text in new:
                self._messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        return {**self._request, "messages": self._messages}

    def keep(self, message: Any) -> Answer:
        calls = [call_of(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()]
        text = _text(message.content)
        if self._job.mode in (REBUILT, HELPER, STRUCTURED):
            # What the helpers add to a message, `parsed`, is not for the wire.
            self.rebuild(text, [c.model_dump() for c in message.tool_calls or ()])
        else:
            self._messages.append(message)
        return Answer(text, calls)

    def rebuild(self, text: str, calls: list[dict[str, Any]]) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {"id": c["id"], "type": "function", "function": {k: c["function"][k] for k in ("name", "arguments")}}
                for c in calls
            ]
        self._messages.append(message)


def _text(content: Any) -> str:
    """What a message says; Mistral's content is a list of chunks."""
    if isinstance(content, list):
        return joined(chunk.get("text") for chunk in content)
    return content or ""


class _Joined:
    """Chunks put together by hand, as the guides leave it to the program."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: list[dict[str, Any]] = []

    def add(self, chunk: Any) -> None:
        for choice in chunk.choices:
            self.text += _text(choice.delta.content)
            for piece in choice.delta.tool_calls or ():
                while len(self.calls) <= piece.index:
                    self.calls.append({"id": "", "function": {"name": "", "arguments": ""}})
                call = self.calls[piece.index]
                call["id"] += piece.id or ""
                call["function"]["name"] += piece.function.name or ""
                call["function"]["arguments"] += piece.function.arguments or ""

    def answer(self, chat: _Chat) -> Answer:
        chat.rebuild(self.text, self.calls)
        return Answer(self.text, [call_of(c["id"], **c["function"]) for c in self.calls])


def _chat(job: Job) -> list[str]:
    from openai import AsyncOpenAI, OpenAI

    chat, place = _Chat(job), {"base_url": job.base_url, "api_key": job.key, "max_retries": 0}
    if job.mode in (ASYNC, ASYNC_STREAMED):
        several: Any = AsyncOpenAI(http_client=inside_async(job), **place)  # type: ignore[arg-type]

        async def ask_async(new: New) -> Answer:
            request = chat.take(new)
            if job.mode == ASYNC:
                return chat.keep((await several.chat.completions.create(**request)).choices[0].message)
            message = _Joined()
            async for chunk in await several.chat.completions.create(stream=True, **request):
                message.add(chunk)
            return message.answer(chat)

        return loop_async(job, ask_async)
    one: Any = OpenAI(http_client=inside(job), **place)  # type: ignore[arg-type]

    def ask(new: New) -> Answer:
        request = chat.take(new)
        if job.mode == STREAMED:
            message = _Joined()
            for chunk in one.chat.completions.create(stream=True, **request):
                message.add(chunk)
            return message.answer(chat)
        if job.mode == HELPER:
            with one.chat.completions.stream(**request) as stream:
                return chat.keep(stream.get_final_completion().choices[0].message)
        if job.mode == STRUCTURED:
            request = {**request, "tools": STRICT_TOOLS}
            answer = chat.keep(one.chat.completions.parse(response_format=Weather, **request).choices[0].message)
            return answer if answer.calls else Answer(Weather.model_validate_json(answer.text).model_dump_json(), [])
        return chat.keep(one.chat.completions.create(**request).choices[0].message)

    return loop(job, ask)


class _Responses:
    def __init__(self, job: Job) -> None:
        self._input: list[Any] = []
        self._job = job
        self._before = ""
        self._request: dict[str, Any] = {"model": job.model, "tools": RESPONSES_TOOLS}
        if job.effort:
            self._request["reasoning"] = {"effort": job.effort}
        if job.mode == STATELESS:
            self._request["store"] = False

    def take(self, new: New) -> dict[str, Any]:
        if self._job.mode == BY_ID:
            self._input = []
        if isinstance(new, str):
            self._input.append({"role": "user", "content": new})
        else:
            for call, text in new:
                self._input.append({"type": "function_call_output", "call_id": call.id, "output": text})
        before = {"previous_response_id": self._before} if self._before else {}
        return {**self._request, **before, "input": self._input}

    def keep(self, response: Any) -> Answer:
        if self._job.mode == BY_ID:
            self._before = response.id
        elif self._job.mode == REBUILT:
            self._input += [item for item in response.output if item.type != "reasoning"]
        else:
            self._input += response.output
        calls = [i for i in response.output if i.type == "function_call"]
        return Answer(response.output_text, [Call(*call_of(c.call_id, c.name, c.arguments)) for c in calls])


def _responses(job: Job) -> list[str]:
    from openai import AsyncOpenAI, OpenAI

    kept, place = _Responses(job), {"base_url": job.base_url, "api_key": job.key, "max_retries": 0}
    if job.mode in (ASYNC, ASYNC_STREAMED):
        several: Any = AsyncOpenAI(http_client=inside_async(job), **place)  # type: ignore[arg-type]

        async def ask_async(new: New) -> Answer:
            request = kept.take(new)
            if job.mode == ASYNC:
                return kept.keep(await several.responses.create(**request))
            async for event in await several.responses.create(stream=True, **request):
                if event.type == "response.completed":
                    return kept.keep(event.response)
            raise RuntimeError("the stream ended without its last event")

        return loop_async(job, ask_async)
    one: Any = OpenAI(http_client=inside(job), **place)  # type: ignore[arg-type]

    def ask(new: New) -> Answer:
        request = kept.take(new)
        if job.mode == STREAMED:
            with one.responses.stream(**request) as stream:
                return kept.keep(stream.get_final_response())
        if job.mode == STRUCTURED:
            tools = [{"type": "function", **tool["function"]} for tool in STRICT_TOOLS]  # type: ignore[dict-item]
            response = one.responses.parse(text_format=Weather, **{**request, "tools": tools})
            answer = kept.keep(response)
            return answer if answer.calls else Answer(response.output_parsed.model_dump_json(), [])
        return kept.keep(one.responses.create(**request))

    return loop(job, ask)


CHAT = Script(
    "openai chat",
    "openai-chat",
    ("openai",),
    (SYNC, ASYNC, STREAMED, ASYNC_STREAMED, HELPER, REBUILT, STRUCTURED),
    _chat,
    'from openai import OpenAI\nclient = OpenAI(base_url="http://127.0.0.1:8484/v1", api_key="tb-...")',
)
RESPONSES = Script(
    "openai Responses",
    "openai-responses",
    ("openai",),
    (SYNC, ASYNC, STREAMED, ASYNC_STREAMED, STATELESS, BY_ID, REBUILT, STRUCTURED),
    _responses,
    'client = OpenAI(base_url="http://127.0.0.1:8484/v1", api_key="tb-...")\n'
    'client.responses.create(model="...", input="...")',
)
