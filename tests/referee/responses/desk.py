"""One client of the Responses persona, without a server: what it asks, hears, and is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from thinkback_referee import Step, Verdict
from thinkback_referee.jsons import JsonObject, as_list, as_object, compact
from thinkback_referee.persona import Asked, Persona, Rendered, View
from thinkback_referee.responses import RESPONSES
from thinkback_referee.responses.ledger import Ledger
from thinkback_referee.responses.request import Request

Body = dict[str, object]

WEATHER: Body = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ENCRYPTED: Body = {"include": ["reasoning.encrypted_content"]}
STATELESS: Body = {**ENCRYPTED, "store": False}


def user(text: str) -> Body:
    """A user message."""
    return {"role": "user", "content": text}


def said(text: str, **fields: object) -> Body:
    """A message of the model as a client words it."""
    return {"role": "assistant", "content": text, **fields}


def output(call_id: str, text: str = "rain") -> Body:
    """What a call returned."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


@dataclass
class Desk:
    """A client with one key at one model; ``parameters`` go with every request."""

    host: str
    model: str
    parameters: Body = field(default_factory=dict)
    key: str = "k"
    persona: Persona[Request, Ledger] = field(default_factory=lambda: Persona(RESPONSES))

    def other(self, host: str = "", model: str = "", key: str = "") -> Desk:
        """A client elsewhere, of the same referee."""
        return Desk(host or self.host, model or self.model, self.parameters, key or self.key, self.persona)

    def verdict(self, *items: Mapping[str, object], **parameters: object) -> Verdict:
        """The verdict on these input items."""
        return self.persona.judge(self.asked(*items, **parameters))

    def view(self, *items: Mapping[str, object], **parameters: object) -> View:
        """What the house model sees of them."""
        return self.persona.view(self.asked(*items, **parameters))

    def rendered(self, step: Step, *items: Mapping[str, object], **parameters: object) -> Rendered:
        """The answer in bytes."""
        asked = self.asked(*items, **parameters)
        return self.persona.render(asked, step, sha256(f"{self.host}{compact(asked.body)}{step}".encode()).hexdigest())

    def answer(self, step: Step, *items: Mapping[str, object], **parameters: object) -> JsonObject:
        """The response object."""
        return dict(as_object(json.loads(self.rendered(step, *items, **parameters).whole)))

    def items(self, step: Step, *items: Mapping[str, object], **parameters: object) -> list[Body]:
        """The output items of the answer."""
        return [dict(as_object(item)) for item in as_list(self.answer(step, *items, **parameters)["output"])]

    def events(self, step: Step, *items: Mapping[str, object], **parameters: object) -> list[Body]:
        """The events of the answer as a stream."""
        data = b"".join(self.rendered(step, *items, stream=True, **parameters).events).decode()
        lines = [line.removeprefix("data: ") for line in data.split("\n") if line.startswith("data: ")]
        return [dict(as_object(json.loads(line))) for line in lines]

    def asked(self, *items: Mapping[str, object], **parameters: object) -> Asked:
        """The request as the server hands it over."""
        body: Body = {"model": self.model, "input": [dict(item) for item in items], **self.parameters, **parameters}
        headers = {"authorization": f"Bearer {self.key}", "chatgpt-account-id": self.key}
        return Asked(self.host, "/responses", headers, body, self.model, body.get("stream") is True)


def without(item: Mapping[str, object], *names: str) -> Body:
    """The item without some of its fields."""
    return {name: value for name, value in item.items() if name not in names}
