"""pydantic-ai: conversations in a log; the capability repairs requests that are refused for reasoning."""

import asyncio
import os

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from thinkback.adapters.pydantic_ai import ConversationStore, Reasoning


def weather(city: str) -> str:
    """The weather of a city"""
    return f"sunny in {city}"


async def main() -> None:
    """Each question could come days later, in another process."""
    client = AsyncOpenAI(
        base_url=os.environ.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"), api_key=os.environ["DEEPSEEK_API_KEY"]
    )
    model = OpenAIChatModel("deepseek-v4-pro", provider=OpenAIProvider(openai_client=client))
    reasoning = Reasoning()
    agent = Agent(model, tools=[weather], capabilities=[reasoning])
    for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
        store = ConversationStore("sessions.db")
        conversation = await store.load("bea") or Conversation(conversation_id="bea")
        result = await agent.run(question, conversation=conversation)
        await store.save(result)
        print(result.output)
        store.close()
    print(reasoning.why())


asyncio.run(main())
