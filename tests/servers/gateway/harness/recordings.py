"""Recorded conversations asked again through an engine, whose upstream answers what was recorded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from tests.servers.gateway.harness.carried import Carried, Json, Minted, carried, forgotten, standard
from tests.servers.gateway.harness.engines import Kept, Plays, ask, engine
from thinkback.cli.wire.recorded import body_of, response_of, target_of
from thinkback.log.seal import seal
from thinkback.model.blocks import Origin, ToolCall, ToolResult
from thinkback.model.commits import Draft, Head, Message, Step
from thinkback.model.target import Settings, Target
from thinkback.rules import load_rulebook
from thinkback.servers.gateway.config.schema import Alias, Config, To, Upstream
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.session import config
from thinkback.turn.plan import History
from thinkback.turn.translation.translate import plan_without_refused, translate
from thinkback.wire.framing import Framing
from thinkback.wire.registry import dialect

BOOK = load_rulebook({})
NOBODY = Origin("", "", "")
_SAID = frozenset({"messages", "contents", "input", "tools", "system", "systemInstruction", "instructions"})
# Of each front a model that knows nothing of reasoning, and one that can be asked for it.
_PLAIN = {
    "anthropic": ("anthropic", "claude-3-haiku-20240307"),
    "gemini": ("gemini", "gemini-1.5-pro"),
    "openai-chat": ("openai-chat", "gpt-4o"),
    "openai-responses": ("openai", "gpt-4o"),
}
_THINKING = {
    "anthropic": ("anthropic", "claude-sonnet-4-5"),
    "gemini": ("gemini", "gemini-2.5-pro"),
    "openai-chat": ("openai-chat", "gpt-5"),
    "openai-responses": ("openai", "gpt-5"),
}
_LAID = {"sse": "text/event-stream", "ndjson": "application/x-ndjson", "frames": "application/vnd.amazon.eventstream"}


class Asked(NamedTuple):
    """One recorded exchange asked again: what the client said, what it got, and what went upstream."""

    exchange: Json
    said: Json
    kept: Kept
    sent: Json | None
    minted: list[Carried]
    """The reasoning in the recorded request that came from earlier recorded responses."""
    given: list[Carried]
    """The same of what went upstream."""


def engine_of(settings: Json | None = None) -> tuple[Engine, Plays]:
    """An engine, and its upstream that answers what ``play`` was told last."""
    transport = Plays(lambda body: (500, "application/json", [b"{}"]))
    config = Config(settings=settings or {})
    return engine(transport, {}, config=config), transport


def place(made: Engine, exchange: Json, name: str) -> None:
    """Let requests for the model ``name`` go where those of ``exchange`` went."""
    target = target_of(exchange, BOOK)
    upstream = Upstream(target.endpoint.id, target.base_url, key_env="THINKBACK_TEST_KEY", stored="pass")
    alias = Alias((To("recorded", target.model),))
    made.configure(msgspec.structs.replace(made.config, upstreams={"recorded": upstream}, models={name: alias}))


def play(transport: Plays, exchange: Json) -> None:
    """Answer what was recorded."""
    response = exchange["response"]
    kind = response.get("content_type") or next((kind for key, kind in _LAID.items() if key in response), "")
    answer = response.get("status", 200), kind or "application/json", [body_of(response)]
    transport._answer = lambda body: answer


def ask_again(made: Engine, transport: Plays, exchange: Json, earlier: Minted, told: Json | None = None) -> Asked:
    """The recorded request without its reasoning, or ``told`` in its place, in its own dialect."""
    front = exchange["dialect"]
    recorded = exchange["request"]["body"]
    said = told or forgotten(front, recorded)
    name = "recorded" if front == "gemini" else str(said.get("model"))
    place(made, exchange, name)
    play(transport, exchange)
    before = len(transport.sent)
    kept = ask(
        made,
        front,
        said,
        model=name if front == "gemini" else "",
        streams=exchange["streaming"] if front == "gemini" else None,
    )
    return _asked(exchange, said, kept, transport.sent[before:], earlier)


def _asked(exchange: Json, said: Json, kept: Kept, sent: list[bytes], earlier: Minted) -> Asked:
    name = exchange["dialect"]
    first = json.loads(sent[0]) if sent else None
    minted, given = (_known(earlier, name, body) for body in (exchange["request"]["body"], first or {}))
    return Asked(exchange, said, kept, first, minted, given)


def _known(earlier: Minted, name: str, body: Json) -> list[Carried]:
    """What ``body`` carries of earlier responses."""
    return [found for piece in carried(name, body) if (found := earlier.of(piece)) is not None]


def is_conversation(case: Json) -> bool:
    return len([one for one in case["exchanges"] if one["request"] is not None]) > 1


class Client:
    """A client of ``front`` that asks what was recorded, knows what is visible of it, and calls by the ids it got."""

    def __init__(self, front: str, made: Engine, transport: Plays) -> None:
        self._front = front
        self._engine = made
        self._transport = transport
        self._ids: dict[str, str] = {}

    def ask(self, exchange: Json, earlier: Minted) -> Asked:
        """The recorded request, as this client puts it."""
        said = self._body(exchange)
        place(self._engine, exchange, "recorded")
        play(self._transport, exchange)
        before = len(self._transport.sent)
        is_gemini = self._front == "gemini"
        kept = ask(
            self._engine,
            self._front,
            said,
            model="recorded" if is_gemini else "",
            streams=exchange["streaming"] if is_gemini else None,
        )
        if kept.status == 200:
            self._learn(exchange, kept)
        return _asked(exchange, said, kept, self._transport.sent[before:], earlier)

    def _body(self, exchange: Json) -> Json:
        """What is visible of the recorded request, and what it wants, written in the client's dialect."""
        name = exchange["dialect"]
        ids = (f"r{number}" for number in itertools.count())
        told = dialect(name).read_request(forgotten(name, exchange["request"]["body"]), lambda: next(ids), NOBODY)
        plain = _target(*_PLAIN[self._front])
        visible = _written(map(self._called, told.drafts), plain, Settings(), {})
        thinking = _target(*_THINKING[self._front])
        translated = translate(name, thinking, told.params, Settings())
        wishes = _written([Draft("user", Message("?"))], thinking, translated.settings, translated.params)
        body = {key: value for key, value in wishes.items() if key not in _SAID}
        body.update((key, value) for key, value in visible.items() if key in _SAID)
        if self._front != "gemini":
            body["model"] = "recorded"
            body["stream"] = exchange["streaming"]
        text = json.dumps(body)
        for number, id in enumerate(self._ids.values()):  # as they came, also those that no host of the dialect takes
            text = text.replace(json.dumps(f"call-of-{number:04}"), json.dumps(id))
        made: Json = json.loads(text)
        return made

    def _called(self, draft: Draft) -> Draft:
        """A call or a result under the id that this client knows it by."""
        value = draft.value
        if isinstance(value, ToolCall | ToolResult) and value.id in self._ids:
            number = list(self._ids).index(value.id)
            value = msgspec.structs.replace(value, id=f"call-of-{number:04}", wire="")
            return msgspec.structs.replace(draft, value=value)
        return draft

    def _learn(self, exchange: Json, kept: Kept) -> None:
        recorded = response_of(exchange, target_of(exchange, BOOK))
        framing: Framing = "sse" if "event-stream" in kept.headers["content-type"] else "json"
        reader = dialect(self._front).reader(Origin(self._front, "", ""), framing, None, "")
        reader.feed(kept.body)
        reader.close()
        got = [block.id for block in reader.result().blocks if isinstance(block, ToolCall)]
        made = [block.id for block in recorded.blocks if isinstance(block, ToolCall)] if recorded else []
        self._ids.update((id, mine) for id, mine in zip(made, got, strict=False) if id)


def _target(endpoint: str, model: str) -> Target:
    return BOOK.target(endpoint, model, on=config.today())


def _written(drafts: Iterable[Draft], target: Target, settings: Settings, params: dict[str, Any]) -> Json:
    """A request for ``drafts``."""
    history = History(seal(Step("asked", tuple(drafts), 0), Head()))
    plan, _ = plan_without_refused(history, target, settings, params)
    body: Json = json.loads(bytes(plan))
    return body


class Echo:
    """A client that sends back all that it was given, in its own dialect: with tokens where opaque values were."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}

    def ask(self, made: Engine, transport: Plays, exchange: Json, earlier: Minted) -> Asked:
        """The recorded request, whose opaque values of earlier responses are what this client got in their place."""
        asked = ask_again(made, transport, exchange, earlier, self._told(exchange["request"]["body"]))
        if asked.kept.status == 200:
            given = [json.loads(line) for line in _payloads(asked.kept.body.decode())]
            recorded = [json.loads(line) for line in _payloads(body_of(exchange["response"]).decode())]
            for mine, theirs in zip(given, recorded, strict=False):
                self._learn(mine, theirs)
        return asked

    def _learn(self, mine: Any, theirs: Any) -> None:
        if isinstance(mine, dict) and isinstance(theirs, dict):
            for key in mine.keys() & theirs.keys():
                self._learn(mine[key], theirs[key])
        elif isinstance(mine, list) and isinstance(theirs, list):
            for one, other in zip(mine, theirs, strict=False):
                self._learn(one, other)
        elif isinstance(mine, str) and isinstance(theirs, str) and mine != theirs:
            self._tokens[standard(theirs)] = mine

    def _told(self, node: Any) -> Any:
        if isinstance(node, dict):
            return {key: self._told(value) for key, value in node.items()}
        if isinstance(node, list):
            return [self._told(each) for each in node]
        return self._tokens.get(standard(node), node) if isinstance(node, str) else node


def _payloads(body: str) -> list[str]:
    """The documents of a response: the payloads of its events, or all of it."""
    lines = [line[5:].strip() for line in body.split("\n") if line.startswith("data:")]
    return [line for line in lines if line != "[DONE]"] or [body]
