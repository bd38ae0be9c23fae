"""What the tests say to the Google personas: parts and contents as data, and a client that keeps what it gets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.referee.talk import Body, Got, send
from thinkback_referee import Referee
from thinkback_referee.jsons import as_list, as_object

CITY: Body = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
WEATHER: Body = {"name": "get_weather", "description": "The weather of a city", "parameters": CITY}
TIME: Body = {"name": "get_time", "description": "The local time of a city", "parameters": CITY}
TOOLS: list[Body] = [{"functionDeclarations": [WEATHER, TIME]}]
KEY = {"x-goog-api-key": "test-key", "content-type": "application/json"}
STUDIO = "/gemini/v1beta/models"
VERTEX = "/vertex/v1/projects/p1/locations/global/publishers/google/models"


def user(*parts: str | Body) -> Body:
    """A content of the user's."""
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: str | Body) -> Body:
    """A content of the model's."""
    return {**user(*parts), "role": "model"}


def call(signature: str = "", name: str = "get_weather", identifier: str = "a") -> Body:
    """A function call, signed or not."""
    signed: Body = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {"name": name, "args": {"city": "Oslo"}, "id": identifier}, **signed}


def answer(name: str = "get_weather", identifier: str = "a") -> Body:
    """A function response."""
    return {"functionResponse": {"name": name, "id": identifier, "response": {"result": "rain, 7 degrees"}}}


def post(
    referee: Referee, path: str, body: Mapping[str, object], headers: Mapping[str, str] = KEY, key: str | None = None
) -> Got:
    """A request; ``key`` is a bearer token."""
    return send(referee, "POST", path, json.dumps(body).encode(), headers, key)


def parts_of(got: Got) -> list[Body]:
    """The parts of a response, of the chunks of a stream, or of the array of them."""
    data = json.loads(got.data) if not got.events else [json.loads(event) for event in got.events]
    found = data if isinstance(data, list) else [data]
    contents = [as_object(as_object(as_list(as_object(chunk)["candidates"])[0])["content"]) for chunk in found]
    return [dict(as_object(part)) for content in contents for part in as_list(content["parts"])]


@dataclass
class Client:
    """A faithful client: gives every part back as it came, and answers every call with the same result."""

    referee: Referee
    path: str
    bearer: str | None = None
    config: Body = field(default_factory=dict)
    tools: Sequence[Body] = tuple(TOOLS)
    contents: list[Body] = field(default_factory=list)

    def ask(self, text: str) -> str:
        """One turn, run to its end; the final text."""
        self.contents.append(user(text))
        while True:
            body: Body = {"contents": self.contents, "tools": list(self.tools), "generationConfig": self.config}
            got = post(self.referee, self.path, body, KEY if self.bearer is None else {}, self.bearer)
            assert (200, None) == (got.status, got.headers.get("x-referee")), got.data
            parts = self.kept(parts_of(got))
            self.contents.append({"role": "model", "parts": parts})
            calls = [as_object(part["functionCall"]) for part in parts if "functionCall" in part]
            if not calls:
                return "".join(str(part["text"]) for part in parts if not part.get("thought"))
            answered = [{**answer(), "functionResponse": _answered(made)} for made in calls]
            self.contents.append({"role": "user", "parts": answered})

    def kept(self, parts: list[Body]) -> list[Body]:
        """What the client stores of a response: all of it."""
        return parts


def _answered(made: Mapping[str, object]) -> Body:
    tied: Body = {"id": made["id"]} if "id" in made else {}
    return {"name": made["name"], "response": {"result": "rain, 7 degrees"}, **tied}
