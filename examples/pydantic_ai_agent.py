"""pydantic-ai: an agent on the openai package's client."""

import os

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import thinkback

client = AsyncOpenAI(
    base_url=os.environ.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
    api_key=os.environ["DEEPSEEK_API_KEY"],
    http_client=thinkback.async_http_client("chats.db"),
)
agent = Agent(OpenAIChatModel("deepseek-v4-pro", provider=OpenAIProvider(openai_client=client)))


@agent.tool_plain
def weather(city: str) -> str:
    """The weather of a city"""
    return f"sunny in {city}"


history = []
for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
    result = agent.run_sync(question, message_history=history)
    history = result.all_messages()
    print(result.output)
print(thinkback.why())
