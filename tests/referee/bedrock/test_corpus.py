"""The Bedrock persona against recorded exchanges: it takes what the real one took, and refuses it once altered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.referee.anthropic.talk import altered
from tests.referee.bedrock.talk import signed
from tests.referee.learning import converse_message, converse_message_of_events
from thinkback_referee.anthropic.ledger import Ledger
from thinkback_referee.bedrock import BEDROCK, NO_REASONING, Invocation
from thinkback_referee.bedrock.profiles import plain_for
from thinkback_referee.jsons import JsonObject, as_list, as_object, as_text
from thinkback_referee.persona import Asked, Persona
from thinkback_referee.transport import Incoming
from thinkback_referee.verdict import Verdict

pytestmark = pytest.mark.corpus

CORPUS = os.environ.get("THINKBACK_CORPUS", "")


@dataclass(frozen=True)
class Recorded:
    """A request, and a persona that learned from what came before it."""

    place: str
    persona: Persona[Invocation, Ledger]
    path: str
    body: JsonObject

    def asked(self, body: JsonObject | None = None) -> Asked:
        """The request, or another version of it, signed."""
        data = json.dumps(self.body if body is None else body).encode()
        incoming = signed(Incoming("POST", f"/bedrock{self.path}", {}, data))
        asked = self.persona.read("bedrock", self.path, incoming)
        assert isinstance(asked, Asked)
        return asked

    def verdict(self, body: JsonObject | None = None) -> Verdict:
        """The verdict on it."""
        return self.persona.judge(self.asked(body))


def recordings() -> Iterator[Recorded]:
    """Every recorded request, each with what the earlier responses of its case minted."""
    for path in sorted((Path(CORPUS) / "bedrock").glob("*.json")):
        yield from replayed(path, as_object(json.loads(path.read_text(encoding="utf-8"))))


def replayed(path: Path, case: Mapping[str, object]) -> Iterator[Recorded]:
    persona = Persona(BEDROCK)
    for number, exchange in enumerate(map(as_object, as_list(case["exchanges"]))):
        sent = as_object(exchange.get("request"))
        body = dict(as_object(sent.get("body")))
        if exchange.get("dialect") != "bedrock" or not body:
            continue
        record = Recorded(f"{path.stem} #{number}", deepcopy(persona), as_text(sent["path"]), body)
        yield record
        response = as_object(exchange["response"])
        frames = [as_object(frame) for frame in as_list(response.get("frames"))]
        events = [(as_text(frame["type"]), as_object(frame["payload"])) for frame in frames]
        message = converse_message_of_events(events) if events else converse_message(as_object(response.get("body")))
        if message is not None:
            invocation = BEDROCK.request(record.asked(), persona.ledger)
            assert isinstance(invocation, Invocation)
            persona.ledger.learn(invocation.request, message)


@pytest.fixture(scope="module")
def recorded() -> list[Recorded]:
    """All recordings; without a corpus the tests that need them are skipped."""
    if not CORPUS:
        pytest.skip("THINKBACK_CORPUS is not set: 0 recordings checked")
    found = list(recordings())
    print(f"{len(found)} recorded requests")
    return found


def test_accepts_what_the_service_accepted(recorded: list[Recorded]) -> None:
    """Every recorded request was accepted, and is here."""
    verdicts = [(record.place, record.verdict()) for record in recorded]
    assert len(verdicts) >= 20
    assert [] == [(place, verdict.reason, verdict.message) for place, verdict in verdicts if not verdict.ok]


def reasoning_of(record: Recorded) -> list[tuple[int, int]]:
    """Message and block index of the reasoning that went back."""
    messages = [as_object(message) for message in as_list(record.body["messages"])]
    return [
        (index, place)
        for index, message in enumerate(messages)
        for place, block in enumerate(as_list(message["content"]))
        if "reasoningContent" in as_object(block)
    ]


def test_refuses_accepted_requests_with_one_character_altered(recorded: list[Recorded]) -> None:
    """A signature or redacted data that differs in one character from what was minted is refused, wrapped."""
    tried = 0
    for record in recorded:
        for index, place in reasoning_of(record):
            tried += 1
            body = deepcopy(record.body)
            block = as_object(as_list(as_object(as_list(body["messages"])[index])["content"])[place])
            reasoning = as_object(block["reasoningContent"])
            owner = reasoning.get("reasoningText", reasoning)
            assert isinstance(owner, dict)
            name = "signature" if "signature" in owner else "redactedContent"
            owner[name] = altered(str(owner[name]))
            verdict = record.verdict(body)
            start = f"The model returned the following errors: messages.{index}.content.{place}: "
            assert (400, True) == (verdict.status, verdict.message.startswith(start)), record.place
    assert tried >= 4


def test_refuses_an_open_turn_without_its_reasoning(recorded: list[Recorded]) -> None:
    """A recorded tool loop without its reasoning is refused."""
    tried = 0
    for record in recorded:
        last = as_object(as_list(record.body["messages"])[-1])
        if not any("toolResult" in as_object(block) for block in as_list(last["content"])):
            continue
        for index, place in reasoning_of(record):
            tried += 1
            body = deepcopy(record.body)
            content = as_object(as_list(body["messages"])[index])["content"]
            assert isinstance(content, list)
            del content[place]
            verdict = record.verdict(body)
            assert (400, True) == (verdict.status, "Expected `thinking`" in verdict.message), record.place
    assert tried


def test_other_models_take_no_reasoning_back(recorded: list[Recorded]) -> None:
    """A recorded request to a model that is not Claude is refused once it carries reasoning."""
    tried = 0
    for record in recorded:
        if plain_for(record.asked().model) is None or len(as_list(record.body["messages"])) < 2:
            continue
        tried += 1
        body = deepcopy(record.body)
        content = as_object(as_list(body["messages"])[1])["content"]
        assert isinstance(content, list)
        content.insert(0, {"reasoningContent": {"reasoningText": {"text": "hm"}}})
        assert (400, NO_REASONING) == ((verdict := record.verdict(body)).status, verdict.message)
    assert tried
