"""What the tests say to Bedrock: Converse blocks as data, a signer, and a reader of event streams."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import quote

from thinkback_referee import Step
from thinkback_referee.anthropic.ledger import Ledger
from thinkback_referee.bedrock import BEDROCK, KEY, Credential, Invocation
from thinkback_referee.bedrock.sigv4 import signature
from thinkback_referee.house import house_step
from thinkback_referee.jsons import JsonObject, as_list, as_object
from thinkback_referee.persona import Asked, Persona, Rendered
from thinkback_referee.transport import Incoming
from thinkback_referee.verdict import Verdict

SONNET = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
OPUS = "us.anthropic.claude-opus-5-5-v1:0"
GPT = "openai.gpt-oss-120b-1:0"
CITY: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: JsonObject = {
    "toolSpec": {"name": "get_weather", "description": "The weather of a city", "inputSchema": {"json": CITY}}
}
TOOLS: JsonObject = {"toolConfig": {"tools": [WEATHER]}}
MANUAL: JsonObject = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
ADAPTIVE: JsonObject = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}
_DATE = "20260131T120000Z"


def user(*blocks: JsonObject | str) -> JsonObject:
    """A user message; strings are texts."""
    return {"role": "user", "content": [{"text": block} if isinstance(block, str) else block for block in blocks]}


def said(*blocks: JsonObject | str) -> JsonObject:
    """An assistant message."""
    return {**user(*blocks), "role": "assistant"}


def call(identifier: str = "tooluse_1") -> JsonObject:
    """A call of a tool."""
    return {"toolUse": {"toolUseId": identifier, "name": "get_weather", "input": {"city": "Oslo"}}}


def results(*identifiers: str) -> JsonObject:
    """A user message with the results of calls."""
    blocks: list[JsonObject] = [
        {"toolResult": {"toolUseId": name, "content": [{"text": "rain"}]}} for name in identifiers
    ]
    return user(*blocks)


def thought(text: str = "hm", **fields: object) -> JsonObject:
    """A reasoning block."""
    return {"reasoningContent": {"reasoningText": {"text": text, **fields}}}


def path_of(model: str, operation: str = "converse") -> str:
    """The path of a request to a model, below the host's name."""
    return f"/model/{quote(model, safe='')}/{operation}"


def signed(
    incoming: Incoming, credential: Credential = KEY, region: str = "us-east-1", service: str = "bedrock"
) -> Incoming:
    """The request with the headers of a signature."""
    token = {"x-amz-security-token": credential.session_token} if credential.session_token else {}
    headers = {"host": "localhost", **incoming.headers, "x-amz-date": _DATE, **token}
    scope = [_DATE[:8], region, service, "aws4_request"]
    bare = Incoming(incoming.method, incoming.path, headers, incoming.body)
    made = signature(bare, credential.secret_key, scope, sorted(headers))
    value = f"AWS4-HMAC-SHA256 Credential={credential.access_key}/{'/'.join(scope)}, "
    value += f"SignedHeaders={';'.join(sorted(headers))}, Signature={made}"
    return Incoming(incoming.method, incoming.path, {**headers, "authorization": value}, incoming.body)


def read_frames(data: bytes) -> list[tuple[str, JsonObject]]:
    """Name and payload of each message of an event stream, with its checksums checked."""
    found = []
    while data:
        total, length, check = struct.unpack("!III", data[:12])
        frame, data = data[:total], data[total:]
        assert (zlib.crc32(frame[:8]), zlib.crc32(frame[:-4])) == (check, struct.unpack("!I", frame[-4:])[0])
        headers = read_headers(frame[12 : 12 + length])
        payload = as_object(json.loads(frame[12 + length : -4]))
        name = headers.get(":event-type") or headers[":exception-type"]
        found.append((name, {key: value for key, value in payload.items() if key != "p"}))
    return found


def read_headers(data: bytes) -> dict[str, str]:
    """The headers of one message; all are strings."""
    found = {}
    while data:
        name, data = data[1 : 1 + data[0]].decode(), data[1 + data[0] :]
        kind, size = struct.unpack("!BH", data[:3])
        assert 7 == kind
        found[name], data = data[3 : 3 + size].decode(), data[3 + size :]
    return found


@dataclass
class Talk:
    """A conversation with Bedrock by Converse, without a socket."""

    model: str = SONNET
    parameters: JsonObject = field(default_factory=dict)
    persona: Persona[Invocation, Ledger] = field(default_factory=lambda: Persona(BEDROCK))
    credential: Credential = KEY
    operation: str = "converse"
    returns: bool = True
    """Whether the client gives reasoning back."""
    messages: list[JsonObject] = field(default_factory=list)

    def ask(self, **changes: object) -> Asked:
        """The request as it stands, signed."""
        found = self.read({**self.parameters, "messages": self.messages, **changes})
        assert isinstance(found, Asked), found
        return found

    def read(self, body: Mapping[str, object]) -> Asked | Verdict | None:
        """What the persona makes of a body."""
        path = path_of(self.model, self.operation)
        incoming = Incoming("POST", f"/bedrock{path}", {}, json.dumps(body).encode())
        return self.persona.read("bedrock", path, signed(incoming, self.credential))

    def verdict(self, **changes: object) -> tuple[int, str]:
        """Status and sentence of the verdict on the request."""
        judged = self.persona.judge(self.ask(**changes))
        return judged.status, judged.message

    def rendered(self, step: Step | None = None, **changes: object) -> Rendered:
        """What a scripted model answers, or the house model; the request must be an accepted one."""
        asked = self.ask(**changes)
        assert (200, "") == ((judged := self.persona.judge(asked)).status, judged.message)
        step = step or house_step(self.persona.view(asked))
        return self.persona.render(asked, step, sha256(f"{asked.body}{step}".encode()).hexdigest())

    def reply(self, step: Step | None = None) -> JsonObject:
        """The next assistant message, appended as it came."""
        body = as_object(json.loads(self.rendered(step).whole))
        message = dict(as_object(as_object(body["output"])["message"]))
        self.messages.append(message if self.returns else without_reasoning(message))
        return message

    def loop(self, step: Step) -> JsonObject:
        """A turn up to the results of its first calls; the message that called."""
        self.messages.append(user("What is the weather in Oslo?"))
        message = self.reply(step)
        self.messages.append(results(*calls_of(message)))
        return message

    def turn(self, text: str) -> str:
        """A user turn, run to its end with the house model; the final text."""
        self.messages.append(user(text))
        while calls := calls_of(message := self.reply()):
            self.messages.append(results(*calls))
        return "".join(str(block.get("text", "")) for block in blocks_of(message))


def blocks_of(message: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The blocks of a message."""
    return [as_object(block) for block in as_list(message["content"])]


def calls_of(message: Mapping[str, object]) -> list[str]:
    """The ids of the calls in a message."""
    return [str(as_object(block["toolUse"])["toolUseId"]) for block in blocks_of(message) if "toolUse" in block]


def without_reasoning(message: Mapping[str, object]) -> JsonObject:
    """A message without its reasoning."""
    return {**message, "content": [block for block in blocks_of(message) if "reasoningContent" not in block]}
