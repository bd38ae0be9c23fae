"""The anthropic package: a tool loop that sends back text and calls, without the thinking blocks in between."""

import anthropic

import thinkback

TOOL = {
    "name": "weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}

http = thinkback.http_client("chats.db")
client = anthropic.Anthropic(http_client=http, default_headers={"anthropic-version": "2023-06-01"})
messages = []
for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
    messages.append({"role": "user", "content": question})
    while True:
        said = client.messages.create(model="claude-opus-5-5", max_tokens=16_000, messages=messages, tools=[TOOL])
        kept = [block.model_dump() for block in said.content if block.type in ("text", "tool_use")]
        messages.append({"role": "assistant", "content": kept})
        calls = [block for block in said.content if block.type == "tool_use"]
        if not calls:
            break
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": f"sunny in {call.input['city']}"}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})
    print("".join(block.text for block in said.content if block.type == "text"))
print(thinkback.why())
