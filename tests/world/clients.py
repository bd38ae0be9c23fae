"""Programs that know nothing of reasoning: they keep words and calls, and send nothing else back."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types

from tests.world.mind import Json

KEY = "sk-of-the-world"
QUESTION = "What is the weather in Oslo?"
RESULT = "4 degrees, rain"
SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL: Json = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
CLAUDE_TOOL: Json = {"name": "get_weather", "input_schema": SCHEMA}


def openai_client(base_url: str, http_client: Any = None, **more: Any) -> openai.OpenAI:
    """A client of OpenAI's SDK that tries once."""
    return openai.OpenAI(base_url=base_url, api_key=KEY, http_client=http_client, max_retries=0, **more)


def chat_loop(client: openai.OpenAI, model: str, messages: list[Json], question: str = QUESTION) -> list[Json]:
    """One turn of chat completions with its tool loop, as examples write it; ``messages`` is what the program keeps."""
    messages.append({"role": "user", "content": question})
    for _ in range(4):
        sent: Any = {"messages": messages, "tools": [CHAT_TOOL]}
        answer = client.chat.completions.create(model=model, **sent)
        message = answer.choices[0].message
        kept: Json = {"role": "assistant", "content": message.content}
        if message.tool_calls:
            kept["tool_calls"] = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls]
        messages.append(kept)
        if not message.tool_calls:
            break
        messages += [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in message.tool_calls]
    return messages


async def async_chat_loop(client: openai.AsyncOpenAI, model: str, question: str = QUESTION) -> None:
    """The same, with a conversation of its own, for ``asyncio.gather``."""
    messages: list[Json] = [{"role": "user", "content": question}]
    for _ in range(4):
        sent: Any = {"messages": messages, "tools": [CHAT_TOOL]}
        answer = await client.chat.completions.create(model=model, **sent)
        calls = answer.choices[0].message.tool_calls or ()
        kept = [call.model_dump(include={"id", "type", "function"}) for call in calls]
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})
        if not calls:
            return
        messages[-1]["tool_calls"] = kept
        messages += [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in calls]


def claude_turn(
    client: anthropic.Anthropic, model: str, messages: list[Json], question: str, *, forgets: bool = True, **more: Any
) -> list[Json]:
    """One turn of Messages without tools; a client that ``forgets`` keeps the text alone."""
    messages.append({"role": "user", "content": question})
    sent: Any = {"messages": messages, **more}
    answer = client.messages.create(model=model, max_tokens=4000, **sent)
    content = [block.model_dump(exclude_none=True) for block in answer.content]
    kept = [block for block in content if block["type"] == "text"] if forgets else content
    messages.append({"role": "assistant", "content": kept})
    return messages


def claude_client(base_url: str, http_client: Any = None) -> anthropic.Anthropic:
    """A client of Anthropic's SDK that tries once."""
    return anthropic.Anthropic(base_url=base_url, api_key=KEY, http_client=http_client, max_retries=0)


def gemini_loop(base_url: str, http_client: Any, model: str, question: str = QUESTION) -> None:
    """One turn of google-genai with its tool loop; the program rebuilds what it sends from names and arguments."""
    options = types.HttpOptions(base_url=base_url, httpx_client=http_client)
    client = genai.Client(api_key=KEY, http_options=options)
    tool = types.Tool(
        function_declarations=[types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA)]
    )
    contents: Any = [types.Content(role="user", parts=[types.Part(text=question)])]
    for _ in range(4):
        answer = client.models.generate_content(
            model=model,
            contents=contents,
            config=types.GenerateContentConfig(tools=[tool]),
        )
        calls = answer.function_calls or []
        if not calls:
            return
        made = [types.Part(function_call=types.FunctionCall(name=c.name, args=c.args)) for c in calls]
        results = [types.Part.from_function_response(name=str(c.name), response={"result": RESULT}) for c in calls]
        contents += [types.Content(role="model", parts=made), types.Content(role="user", parts=results)]
