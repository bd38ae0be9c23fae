"""The openai package on the Responses API: a program that keeps texts and calls alone, and no reasoning items."""

import json

import openai

import thinkback

TOOL = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}

client = openai.OpenAI(http_client=thinkback.http_client("chats.db"))
messages = []
with thinkback.conversation("weather"):
    for question in ("What is the weather in Oslo?", "And what is the weather in Rome?"):
        messages.append({"role": "user", "content": question})
        while True:
            response = client.responses.create(model="gpt-5.6", input=messages, tools=[TOOL], store=False)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            for call in calls:
                named = {"call_id": call.call_id, "name": call.name, "arguments": call.arguments}
                messages.append({"type": "function_call", **named})
                text = f"sunny in {json.loads(call.arguments)['city']}"
                messages.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
        messages.append({"role": "assistant", "content": response.output_text})
        print(response.output_text)
    print(thinkback.why())
