"""langchain: an agent whose model calls carry the reasoning that the messages of its chat model have lost."""

import os

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from thinkback.adapters.langchain import ThinkbackMiddleware


def weather(city: str) -> str:
    """The weather of a city"""
    return f"sunny in {city}"


model = ChatOpenAI(
    model="deepseek-v4-pro",
    base_url=os.environ.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
    api_key=os.environ["DEEPSEEK_API_KEY"],
)
agent = create_agent(model, [weather], middleware=[ThinkbackMiddleware("chats.db")], checkpointer=InMemorySaver())
for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
    config = {"configurable": {"thread_id": "weather-langchain"}}
    answer = agent.invoke({"messages": [("user", question)]}, config)["messages"][-1]
    print(answer.text)
print(answer.response_metadata["thinkback"]["why"])
