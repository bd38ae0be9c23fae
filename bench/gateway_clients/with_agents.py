"""openai-agents: agents whose tools it runs itself, on chat completions and on the Responses API."""

from __future__ import annotations

from functools import partial
from typing import Any

from bench.gateway_clients.job import ASYNC, STREAMED, STRUCTURED, SYNC, TOOLS, Job, Script, inside_async, run
from bench.gateway_clients.schema import Weather

STATELESS = "store=False"


def _agent(responses: bool, job: Job) -> Any:
    from agents import (
        Agent,
        ModelSettings,
        OpenAIChatCompletionsModel,
        OpenAIResponsesModel,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI
    from openai.types.shared import Reasoning

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=job.base_url, api_key=job.key, max_retries=0, http_client=inside_async(job))
    kind: Any = OpenAIResponsesModel if responses else OpenAIChatCompletionsModel
    options: dict[str, Any] = {}
    if job.effort:
        options["reasoning"] = Reasoning(effort=job.effort)  # type: ignore[arg-type]
    if job.mode == STATELESS:
        options["store"] = False
    agent: Any = Agent
    return agent(
        name="Weather",
        model=kind(job.model, client),
        tools=[function_tool(function) for function in TOOLS.values()],
        model_settings=ModelSettings(**options),
        output_type=Weather if job.mode == STRUCTURED else None,
    )


def _hold(responses: bool, job: Job) -> list[str]:
    from agents import Runner

    agent, said, history = _agent(responses, job), [], []
    runner: Any = Runner
    if job.mode in (ASYNC, STREAMED):
        return run(_several(runner, agent, job))
    for prompt in job.prompts:
        history.append({"role": "user", "content": prompt})
        result = runner.run_sync(agent, history)
        history = result.to_input_list()
        said.append(_text(result.final_output))
    return said


async def _several(runner: Any, agent: Any, job: Job) -> list[str]:
    said: list[str] = []
    history: list[Any] = []
    for prompt in job.prompts:
        history.append({"role": "user", "content": prompt})
        if job.mode == STREAMED:
            result = runner.run_streamed(agent, history)
            async for _ in result.stream_events():
                pass
        else:
            result = await runner.run(agent, history)
        history = result.to_input_list()
        said.append(_text(result.final_output))
    return said


def _text(output: Any) -> str:
    return output if isinstance(output, str) else str(output.model_dump_json())


def _lines(kind: str) -> str:
    return (
        'client = AsyncOpenAI(base_url="http://127.0.0.1:8484/v1", api_key="tb-...")\n'
        f'agent = Agent(name="...", model={kind}("...", client))'
    )


CHAT = Script(
    "openai-agents, chat",
    "openai-chat",
    ("openai-agents",),
    (SYNC, ASYNC, STREAMED, STRUCTURED),
    partial(_hold, False),
    _lines("OpenAIChatCompletionsModel"),
)
RESPONSES = Script(
    "openai-agents, Responses",
    "openai-responses",
    ("openai-agents",),
    (SYNC, ASYNC, STREAMED, STATELESS, STRUCTURED),
    partial(_hold, True),
    _lines("OpenAIResponsesModel"),
)
