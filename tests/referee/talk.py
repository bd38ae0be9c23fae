"""What the tests of the referee say to it: bodies as data, and a client of the standard library alone."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from thinkback_referee import Referee
from thinkback_referee.jsons import as_list, as_object

Body = dict[str, object]

WEATHER: Body = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TIME: Body = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "The local time of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def user(text: str) -> Body:
    """A user message."""
    return {"role": "user", "content": text}


def said(text: str | None = "", *calls: str, **fields: object) -> Body:
    """An assistant message with calls of these ids and any further fields."""
    made = [{"id": call, "type": "function", "function": {"name": "get_weather", "arguments": "{}"}} for call in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if calls else {}), **fields}


def result(call: str, text: str = "rain") -> Body:
    """A tool message."""
    return {"role": "tool", "tool_call_id": call, "content": text}


def body(model: str, *messages: Body, **parameters: object) -> Body:
    """A request body."""
    return {"model": model, "messages": list(messages), **parameters}


@dataclass(frozen=True)
class Got:
    """A response, whole."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def json(self) -> Mapping[str, object]:
        """The body as a JSON object."""
        return as_object(json.loads(self.data))

    @property
    def message(self) -> Body:
        """The assistant message of a completion."""
        return dict(as_object(as_object(as_list(self.json["choices"])[0])["message"]))

    @property
    def events(self) -> list[str]:
        """The data of the server-sent events, in order."""
        return [line.removeprefix("data: ") for line in self.data.decode().split("\n") if line.startswith("data: ")]

    @property
    def chunks(self) -> list[Mapping[str, object]]:
        """The events that are JSON, parsed."""
        return [as_object(json.loads(event)) for event in self.events if event != "[DONE]"]

    @property
    def deltas(self) -> list[Mapping[str, object]]:
        """The deltas of the chunks that have a choice."""
        choices = [as_list(chunk.get("choices")) for chunk in self.chunks]
        return [as_object(as_object(listed[0])["delta"]) for listed in choices if listed]


def send(
    referee: Referee,
    method: str,
    path: str,
    data: bytes | Iterable[bytes] = b"",
    headers: Mapping[str, str] | None = None,
    key: str | None = "test-key",
) -> Got:
    """One request on a connection of its own; raises ``http.client.IncompleteRead`` for a body that breaks off."""
    connection = http.client.HTTPConnection(referee.url.removeprefix("http://"), timeout=20)
    sent = {**({"Authorization": f"Bearer {key}"} if key is not None else {}), **(headers or {})}
    try:
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Got(response.status, found, response.read())
    finally:
        connection.close()


def threads() -> set[threading.Thread]:
    """Those of every referee of this process; other servers have theirs."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("referee-")}


def post(referee: Referee, host: str, content: Body, *, key: str | None = "test-key", prefix: str = "") -> Got:
    """A chat request to a persona."""
    path = f"/{host}{prefix}/chat/completions"
    return send(referee, "POST", path, json.dumps(content).encode(), {"Content-Type": "application/json"}, key)


@dataclass
class Client:
    """A faithful client: appends every assistant message as it came, and answers every call with the same result."""

    referee: Referee
    host: str
    parameters: Body
    messages: list[Body]
    weather: str = "rain, 7 degrees"

    def ask(self, text: str) -> str:
        """One turn, run to its end; the final text."""
        self.messages.append(user(text))
        while True:
            got = post(self.referee, self.host, {**self.parameters, "messages": self.messages})
            assert (200, None) == (got.status, got.headers.get("x-referee"))
            self.messages.append(self.kept(got.message))
            calls = as_list(got.message.get("tool_calls"))
            if not calls:
                return text_of(got.message["content"])
            self.messages += [result(str(as_object(call)["id"]), self.weather) for call in calls]

    def kept(self, message: Body) -> Body:
        """What the client stores of a message: all of it."""
        return message


def text_of(content: object) -> str:
    """The visible text of a content value."""
    if isinstance(content, str):
        return content
    return "".join(str(as_object(part).get("text", "")) for part in as_list(content))
