"""langchain-openai: a chat model with tools, whose messages drop the reasoning of other providers."""

import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

import thinkback


def weather(city: str) -> str:
    """The weather of a city"""
    return f"sunny in {city}"


model = ChatOpenAI(
    model="deepseek-v4-pro",
    base_url=os.environ.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
    api_key=os.environ["DEEPSEEK_API_KEY"],
    http_client=thinkback.http_client("chats.db"),
).bind_tools([weather])
messages = []
for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
    messages.append(HumanMessage(question))
    while True:
        answer = model.invoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            break
        messages += [ToolMessage(weather(**call["args"]), tool_call_id=call["id"]) for call in answer.tool_calls]
    print(answer.content)
print(thinkback.why())
