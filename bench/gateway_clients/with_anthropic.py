"""The anthropic package: the Messages API."""

from __future__ import annotations

from typing import Any

from bench.gateway_clients.job import (
    ASYNC,
    ASYNC_STREAMED,
    REBUILT,
    STREAMED,
    STRUCTURED,
    SYNC,
    TOOLS,
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
from bench.peers.places import MESSAGES_TOOLS, VERSION

RAW, RUNNER = "raw stream", "tool runner"


class _Messages:
    def __init__(self, job: Job) -> None:
        self.messages: list[Any] = []
        self._rebuilt = job.mode in (REBUILT, RAW)
        self.request: dict[str, Any] = {"model": job.model, "max_tokens": 16_000, "tools": MESSAGES_TOOLS}
        if job.effort:
            self.request["thinking"] = {"type": "enabled", "budget_tokens": 10_000}

    def take(self, new: New) -> dict[str, Any]:
        content: Any = new
        if not isinstance(new, str):
            content = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in new]
        self.messages.append({"role": "user", "content": content})
        return {**self.request, "messages": self.messages}

    def keep(self, content: list[Any]) -> Answer:
        if self._rebuilt:
            content = [b for b in content if b.type in ("text", "tool_use")]
        self.messages.append({"role": "assistant", "content": content})
        calls = [call_of(b.id, b.name, b.input) for b in content if b.type == "tool_use"]
        return Answer(joined(b.text for b in content if b.type == "text"), calls)


def _hold(job: Job) -> list[str]:
    from anthropic import Anthropic, AsyncAnthropic

    kept = _Messages(job)
    place: Any = {"base_url": job.base_url, "api_key": job.key, "default_headers": VERSION, "max_retries": 0}
    if job.mode in (ASYNC, ASYNC_STREAMED):
        several: Any = AsyncAnthropic(http_client=inside_async(job), **place)

        async def ask_async(new: New) -> Answer:
            request = kept.take(new)
            if job.mode == ASYNC:
                return kept.keep((await several.messages.create(**request)).content)
            async with several.messages.stream(**request) as stream:
                return kept.keep((await stream.get_final_message()).content)

        return loop_async(job, ask_async)
    one: Any = Anthropic(http_client=inside(job), **place)
    if job.mode == RUNNER:
        return [_run(one, kept, prompt) for prompt in job.prompts]

    def ask(new: New) -> Answer:
        request = kept.take(new)
        if job.mode == STREAMED:
            with one.messages.stream(**request) as stream:
                return kept.keep(stream.get_final_message().content)
        if job.mode == RAW:
            return kept.keep(_read(one.messages.create(stream=True, **request)))
        if job.mode == STRUCTURED:
            message = one.messages.parse(output_format=Weather, **request)
            answer = kept.keep(message.content)
            return answer if answer.calls else Answer(message.parsed_output.model_dump_json(), [])
        return kept.keep(one.messages.create(**request).content)

    return loop(job, ask)


def _run(client: Any, kept: _Messages, prompt: str) -> str:
    """A turn by the package's own loop over functions."""
    from anthropic import beta_tool

    tools = [beta_tool(function) for function in TOOLS.values()]
    request = {**kept.take(prompt), "tools": tools}
    text = ""
    # Otherwise the package asks for a thread that the provider keeps.
    runner = client.beta.messages.tool_runner(thread=False, **request)
    for message in runner:
        text = kept.keep(message.content).text
        results = runner.generate_tool_call_response()
        if results is not None:
            kept.messages.append(results)
    return text


def _read(events: Any) -> list[Any]:
    """Text and calls of a stream, put together by hand."""
    from anthropic.types import TextBlock, ToolUseBlock

    started: dict[int, Any] = {}
    pieces: dict[int, str] = {}
    for event in events:
        if event.type == "content_block_start":
            started[event.index] = event.content_block
        if event.type == "content_block_delta":
            piece = getattr(event.delta, "text", "") or getattr(event.delta, "partial_json", "")
            pieces[event.index] = pieces.get(event.index, "") + piece
    blocks: list[Any] = []
    for index, block in started.items():
        if block.type == "text":
            blocks.append(TextBlock(type="text", text=pieces.get(index, "")))
        if block.type == "tool_use":
            arguments: Any = call_of(block.id, block.name, pieces.get(index) or "{}").arguments
            blocks.append(ToolUseBlock(type="tool_use", id=block.id, name=block.name, input=arguments))
    return blocks


MESSAGES = Script(
    "anthropic",
    "anthropic",
    ("anthropic",),
    (SYNC, ASYNC, STREAMED, ASYNC_STREAMED, RAW, REBUILT, RUNNER, STRUCTURED),
    _hold,
    'from anthropic import Anthropic\nclient = Anthropic(base_url="http://127.0.0.1:8484", api_key="tb-...")',
)
