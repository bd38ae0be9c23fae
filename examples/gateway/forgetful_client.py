"""A client that sends a call back without its reasoning: straight to the referee, then through a gateway.

The environment variable THINKBACK_GATEWAY_KEY has the key of a gateway that demands one.
"""

import json
import os
import sys
import urllib.error
import urllib.request

WEATHER = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
KEY = os.environ.get("THINKBACK_GATEWAY_KEY", "any")
HEADERS = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}


def ask(url, body):
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), HEADERS)
    try:
        return urllib.request.urlopen(request)
    except urllib.error.HTTPError as refused:
        return refused


for url, model in (
    ("http://127.0.0.1:8077/deepseek", "deepseek-v4-pro"),
    ("http://127.0.0.1:8484/v1", "referee/deepseek-v4-pro"),
):
    messages = [{"role": "user", "content": "What is the weather in Oslo?"}]
    body = {"model": model, "messages": messages, "tools": [{"type": "function", "function": WEATHER}]}
    with ask(url, body) as first:
        if first.status == 401:
            sys.exit(f"{url} refused the key: set THINKBACK_GATEWAY_KEY to one of `thinkback gateway keys create`")
        if first.status != 200:
            sys.exit(f"{url} answered {first.status}: {first.read().decode()}")
        call = json.load(first)["choices"][0]["message"]["tool_calls"][0]
    messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": call["id"], "content": "rain"})
    with ask(url, body) as answer:
        print(f"HTTP/1.1 {answer.status} {answer.reason}")
        told = [f"{name}: {value}" for name, value in answer.headers.items() if name.startswith("thinkback-")]
        print("\n".join(told) if told else json.load(answer)["error"]["message"] + "\n")
