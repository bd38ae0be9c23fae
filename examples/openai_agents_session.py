"""openai-agents: the history of a conversation in a log; the transport beside it has another one."""

import asyncio
import os

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

import thinkback
from thinkback.adapters.openai_agents import Session


@function_tool
def weather(city: str) -> str:
    """The weather of a city"""
    return f"sunny in {city}"


async def main() -> None:
    """Each question could come days later, in another process."""
    http = thinkback.async_http_client("chats.db")
    client = AsyncOpenAI(base_url=os.environ.get("OPENAI_BASE_URL"), http_client=http)
    agent = Agent("Weather", model=OpenAIResponsesModel("gpt-5", client), tools=[weather])
    for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
        session = Session("ada", "sessions.db", endpoint="openai")
        config = RunConfig(call_model_input_filter=session.input_filter)
        result = await Runner.run(agent, question, session=session, run_config=config)
        print(result.final_output)
        session.close()


set_tracing_disabled(True)
asyncio.run(main())
print(thinkback.why())
