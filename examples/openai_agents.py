"""openai-agents: an agent whose model asks through a client with the transport in it."""

import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

import thinkback


@function_tool
def weather(city: str) -> str:
    """The weather of a city"""
    return f"sunny in {city}"


set_tracing_disabled(True)
client = AsyncOpenAI(
    base_url=os.environ.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
    api_key=os.environ["DEEPSEEK_API_KEY"],
    http_client=thinkback.async_http_client("chats.db"),
)
agent = Agent("Weather", model=OpenAIChatCompletionsModel("deepseek-v4-pro", client), tools=[weather])
history = []
for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
    result = Runner.run_sync(agent, [*history, {"role": "user", "content": question}])
    history = result.to_input_list()
    print(result.final_output)
print(thinkback.why())
