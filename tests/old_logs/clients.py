"""Clients of the gateway that keep a conversation in their own dialect, whole or without its reasoning."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.old_logs.providers import TOOLS, Json
from tests.servers.gateway.harness.carried import MESSAGES, forgotten
from tests.servers.gateway.harness.house import House, Reply

FRONTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
RESULT = "7 degrees and clear"


class Call(NamedTuple):
    """A call that waits for its result."""

    id: str
    name: str


class Client:
    """One conversation. ``messages`` is what it keeps; one that ``forgets`` sends it without reasoning."""

    def __init__(self, front: str, model: str, key: str, user: str, forgets: bool, messages: list[Json]) -> None:
        self.front, self.model, self.key, self.user, self.forgets = front, model, key, user, forgets
        self.messages = messages

    def ask(self, house: House, text: str, **headers: str) -> Reply:
        """The person's next message, behind the results of the calls that wait."""
        if self.messages and (calls := _calls(self.front, self.messages)):
            self.messages += _results(self.front, calls)
        self.messages.append({"parts": [{"text": text}], "role": "user"} if self._gemini else _user(text))
        return self._send(house, headers)

    def give(self, house: House) -> Reply:
        """The results of the calls that wait."""
        self.messages += _results(self.front, _calls(self.front, self.messages))
        return self._send(house, {})

    @property
    def body(self) -> Json:
        """The next request."""
        whole = {**_ABOUT[self.front], MESSAGES.get(self.front, "messages"): self.messages}
        if not self._gemini:
            whole["model"] = self.model
        if not self.forgets:
            whole |= _SHOWN[self.front]
        if self.user:
            whole |= _USER[self.front](self.user)
        return forgotten(self.front, whole) if self.forgets else whole

    @property
    def path(self) -> str:
        """Where it goes."""
        return _PATHS[self.front].format(model=self.model)

    @property
    def _gemini(self) -> bool:
        return self.front == "gemini"

    def _send(self, house: House, headers: dict[str, str]) -> Reply:
        reply = house.ask(self.body, self.path, authorization=f"Bearer {self.key}", **headers)
        if reply.status == 200:
            self.messages += _said(self.front, json.loads(reply.body))
        return reply


def _user(text: str) -> Json:
    return {"role": "user", "content": text}


_FUNCTIONS: list[Any] = [tool["function"] for tool in TOOLS]
_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/{model}:generateContent",
}
_ABOUT: dict[str, Json] = {
    "openai-chat": {"tools": TOOLS},
    "openai-responses": {"tools": [{"type": "function", **function} for function in _FUNCTIONS]},
    "anthropic": {
        "max_tokens": 16_000,
        "tools": [
            {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
            for each in _FUNCTIONS
        ],
    },
    "gemini": {"tools": [{"functionDeclarations": _FUNCTIONS}]},
}
_SHOWN: dict[str, Json] = {
    "openai-responses": {"include": ["reasoning.encrypted_content"], "store": False},
    "anthropic": {"thinking": {"type": "adaptive"}},
    "gemini": {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}},
}
"""How a client asks to be shown reasoning."""
_USER: dict[str, Any] = {
    "openai-chat": lambda user: {"user": user},
    "openai-responses": lambda user: {"safety_identifier": user},
    "anthropic": lambda user: {"metadata": {"user_id": user}},
    "gemini": lambda user: {"labels": {"user_id": user}},
}


def _said(front: str, answer: Json) -> list[Json]:
    """What a response adds to the messages."""
    match front:
        case "openai-chat":
            return [answer["choices"][0]["message"]]
        case "openai-responses":
            return list(answer["output"])
        case "anthropic":
            return [{"role": "assistant", "content": answer["content"]}]
        case _:
            return [answer["candidates"][0]["content"]]


def _calls(front: str, messages: list[Json]) -> list[Call]:
    """The calls of the last response."""
    last = messages[-1]
    if last.get("role") in ("tool", "user"):
        return []
    match front:
        case "openai-chat":
            return [Call(call["id"], call["function"]["name"]) for call in last.get("tool_calls") or ()]
        case "openai-responses":
            return [Call(last["call_id"], last["name"])] if last.get("type") == "function_call" else []
        case "anthropic":
            return [Call(part["id"], part["name"]) for part in last["content"] if part["type"] == "tool_use"]
        case _:
            found = [part["functionCall"] for part in last["parts"] if "functionCall" in part]
            return [Call(call.get("id", ""), call["name"]) for call in found]


def _results(front: str, calls: list[Call]) -> list[Json]:
    assert calls, "no call waits"
    match front:
        case "openai-chat":
            return [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in calls]
        case "openai-responses":
            return [{"type": "function_call_output", "call_id": call.id, "output": RESULT} for call in calls]
        case "anthropic":
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": RESULT} for call in calls]
            return [{"role": "user", "content": results}]
        case _:
            given = [
                {"name": call.name, "response": {"result": RESULT}, **({"id": call.id} if call.id else {})}
                for call in calls
            ]
            return [{"role": "user", "parts": [{"functionResponse": each} for each in given]}]
