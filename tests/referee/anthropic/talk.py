"""What the tests say to the personas of the Messages format: blocks as data, and a client that keeps what it gets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256

from thinkback_referee import Step
from thinkback_referee.anthropic import BINDING_BETA, VERSION
from thinkback_referee.house import house_step
from thinkback_referee.jsons import JsonObject, as_list, as_object
from thinkback_referee.persona import AnyPersona, Asked, Rendered
from thinkback_referee.transport import Incoming
from thinkback_referee.verdict import Verdict

CITY: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: JsonObject = {"name": "get_weather", "description": "The weather of a city", "input_schema": CITY}
TIME: JsonObject = {"name": "get_time", "description": "The local time of a city", "input_schema": CITY}
MANUAL: JsonObject = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
ADAPTIVE: JsonObject = {"thinking": {"type": "adaptive"}}
OFF: JsonObject = {"thinking": {"type": "disabled"}}
DROPPING: JsonObject = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
BINDING = {"anthropic-beta": BINDING_BETA}


def user(text: str) -> JsonObject:
    """A user message."""
    return {"role": "user", "content": text}


def said(*blocks: JsonObject | str) -> JsonObject:
    """An assistant message of blocks; strings are texts."""
    return {"role": "assistant", "content": [_block(block) for block in blocks]}


def thought(text: str = "hm", signature: str = "EqQB") -> JsonObject:
    """A thinking block."""
    return {"type": "thinking", "thinking": text, "signature": signature}


def call(identifier: str = "toolu_1", name: str = "get_weather") -> JsonObject:
    """A call of a tool."""
    return {"type": "tool_use", "id": identifier, "name": name, "input": {"city": "Oslo"}}


def results(*identifiers: str, text: str = "rain, 7 degrees") -> JsonObject:
    """A user message with the results of calls."""
    blocks = [{"type": "tool_result", "tool_use_id": identifier, "content": text} for identifier in identifiers]
    return {"role": "user", "content": blocks}


def calls_of(message: Mapping[str, object]) -> list[str]:
    """The ids of the calls in a message."""
    blocks = map(as_object, as_list(message["content"]))
    return [str(block["id"]) for block in blocks if block["type"] == "tool_use"]


def without(message: Mapping[str, object], *kinds: str) -> JsonObject:
    """A message without its blocks of these types; one that is a text stays as it is."""
    if isinstance(message["content"], str):
        return dict(message)
    blocks = [block for block in as_list(message["content"]) if as_object(block)["type"] not in kinds]
    return {**message, "content": blocks}


def with_block(message: Mapping[str, object], index: int, **fields: object) -> JsonObject:
    """A message with fields of one block replaced; None removes them."""
    changed = deepcopy(dict(message))
    block = as_list(changed["content"])[index]
    assert isinstance(block, dict)
    block.update(fields)
    for name in [name for name, value in fields.items() if value is None]:
        del block[name]
    return changed


def altered(value: str) -> str:
    """The value with its last letter or digit replaced by another one."""
    place = max(index for index, letter in enumerate(value) if letter.isalnum())
    return value[:place] + ("A" if value[place] != "A" else "B") + value[place + 1 :]


def read_events(data: bytes | Iterable[bytes]) -> list[Mapping[str, object]]:
    """The JSON of server-sent events."""
    text = (data if isinstance(data, bytes) else b"".join(data)).decode()
    lines = [line for line in text.split("\n") if line.startswith("data: ")]
    return [as_object(json.loads(line.removeprefix("data: "))) for line in lines]


@dataclass
class Talk:
    """A conversation with a persona, without a socket: a faithful client, unless a test makes it another one."""

    persona: AnyPersona
    parameters: JsonObject
    host: str = "anthropic"
    path: str = "/v1/messages"
    headers: dict[str, str] = field(default_factory=lambda: {"x-api-key": "org.key", "anthropic-version": VERSION})
    messages: list[JsonObject] = field(default_factory=list)

    def ask(self, **changes: object) -> Asked:
        """The request as it stands."""
        return self.asked({**self.parameters, "messages": self.messages, **changes})

    def asked(self, body: Mapping[str, object]) -> Asked:
        """A request that the persona could read."""
        found = self.read(body)
        assert isinstance(found, Asked), found
        return found

    def read(self, body: Mapping[str, object]) -> Asked | Verdict | None:
        """What the persona makes of a body."""
        incoming = Incoming("POST", f"/{self.host}{self.path}", self.headers, json.dumps(body).encode())
        return self.persona.read(self.host, self.path, incoming)

    def verdict(self, **changes: object) -> tuple[int, str]:
        """Status and sentence of the persona's verdict on the request."""
        judged = self.persona.judge(self.ask(**changes))
        return judged.status, judged.message

    def rendered(self, step: Step | None = None, **changes: object) -> Rendered:
        """What a scripted model answers, or the house model; the request must be an accepted one."""
        asked = self.ask(**changes)
        assert (200, "") == ((judged := self.persona.judge(asked)).status, judged.message)
        step = step or house_step(self.persona.view(asked))
        return self.persona.render(asked, step, sha256(f"{asked.body}{step}".encode()).hexdigest())

    def answer(self, step: Step | None = None, **changes: object) -> JsonObject:
        """The whole response."""
        return dict(as_object(json.loads(self.rendered(step, **changes).whole)))

    def reply(self, step: Step | None = None) -> JsonObject:
        """The next assistant message, appended as it came."""
        message: JsonObject = {"role": "assistant", "content": self.answer(step)["content"]}
        self.messages.append(message)
        return message

    def turn(self, text: str) -> str:
        """A user turn, run to its end with the house model; the final text."""
        self.messages.append(user(text))
        while calls := calls_of(message := self.reply()):
            self.messages.append(results(*calls))
        return text_of(message)

    def loop(self, step: Step, text: str = "What is the weather in Oslo?") -> JsonObject:
        """A turn up to the results of its first calls; the message that called."""
        self.messages.append(user(text))
        message = self.reply(step)
        self.messages.append(results(*calls_of(message)))
        return message


def text_of(message: Mapping[str, object]) -> str:
    """The joined texts of a message."""
    blocks = map(as_object, as_list(message["content"]))
    return "".join(str(block["text"]) for block in blocks if block["type"] == "text")


def _block(block: JsonObject | str) -> JsonObject:
    return {"type": "text", "text": block} if isinstance(block, str) else block
