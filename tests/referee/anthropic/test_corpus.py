"""The Anthropic persona against recorded exchanges: it takes what the real one took, and refuses it once altered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.referee.anthropic.talk import ADAPTIVE, WEATHER, Talk, altered, read_events, user
from tests.referee.learning import messages_message
from thinkback_referee import Call, Step
from thinkback_referee.anthropic import ANTHROPIC, REDACTED
from thinkback_referee.anthropic.judge import judge
from thinkback_referee.anthropic.ledger import Ledger
from thinkback_referee.anthropic.profiles import BINDING_BETA, CLAUDE, MANUAL, Profile, profile_for
from thinkback_referee.anthropic.request import Block, Caller, Request
from thinkback_referee.anthropic.trace import trace
from thinkback_referee.jsons import JsonObject, as_list, as_object, as_text
from thinkback_referee.persona import Persona
from thinkback_referee.verdict import Verdict

pytestmark = pytest.mark.corpus

CORPUS = os.environ.get("THINKBACK_CORPUS", "")


@dataclass(frozen=True)
class Recorded:
    """A request, what was learned before it, and what the provider said."""

    place: str
    profile: Profile
    body: JsonObject
    caller: Caller
    ledger: Ledger
    status: int
    answer: object

    @property
    def request(self) -> Request:
        """The request, read."""
        return Request(self.profile, self.body, self.caller)

    def verdict(self, body: JsonObject | None = None) -> Verdict:
        """The verdict on the request, or on another version of it."""
        return judge(Request(self.profile, self.body if body is None else body, self.caller), self.ledger)


def recordings() -> Iterator[Recorded]:
    """Every recorded request, each with a ledger of the earlier responses of its case."""
    for path in sorted((Path(CORPUS) / "anthropic").glob("*.json")):
        yield from replayed(path, as_object(json.loads(path.read_text(encoding="utf-8"))))


def replayed(path: Path, case: Mapping[str, object]) -> Iterator[Recorded]:
    ledger = Ledger()
    for number, exchange in enumerate(map(as_object, as_list(case["exchanges"]))):
        body = dict(as_object(as_object(exchange.get("request")).get("body")))
        if exchange.get("dialect") != "anthropic" or not body:
            continue
        profile = profile_for(CLAUDE, as_text(body.get("model")))
        assert profile is not None, f"no row for {body.get('model')}"
        # Headers were not recorded; requests with the setting had its beta.
        binding = "block_binding" in as_object(body.get("thinking"))
        caller = Caller(CLAUDE, betas=frozenset({BINDING_BETA} if binding else ()))
        response = as_object(exchange["response"])
        status = int(str(response["status"]))
        place = f"{path.stem} #{number}"
        yield Recorded(place, profile, body, caller, deepcopy(ledger), status, response.get("body"))
        raw = response.get("raw")
        message = messages_message(raw if isinstance(raw, str) else as_object(response.get("body")))
        if message is not None:
            request = Request(profile, body, caller)
            ledger.learn(request, message, trace(request, ledger).kept)


@pytest.fixture(scope="module")
def recorded() -> list[Recorded]:
    """All recordings; without a corpus the tests that need them are skipped."""
    if not CORPUS:
        pytest.skip("THINKBACK_CORPUS is not set: 0 recordings checked")
    found = list(recordings())
    print(f"{len(found)} recorded requests")
    return found


def test_accepts_what_the_provider_accepted(recorded: list[Recorded]) -> None:
    """Every request that the provider took is taken here, with its thoughts known to the ledger."""
    accepted = [record for record in recorded if record.status < 400]
    verdicts = [(record.place, record.verdict()) for record in accepted]
    assert len(accepted) >= 50
    assert [] == [(place, verdict.reason, verdict.message) for place, verdict in verdicts if not verdict.ok]


def test_refuses_what_the_provider_refused(recorded: list[Recorded]) -> None:
    """Every recorded refusal that the request caused comes in the same words."""
    refused = [record for record in recorded if record.status >= 400]
    expected = [(record.place, record.status, as_object(record.answer)["error"]) for record in refused]
    verdicts = [(record.place, record.verdict()) for record in refused]
    assert expected
    assert expected == [(place, verdict.status, as_object(verdict.body)["error"]) for place, verdict in verdicts]


def test_reports_what_the_provider_reported(recorded: list[Recorded]) -> None:
    """Where a response tells which blocks were dropped, the walk over the request finds the same ones."""
    reported = [record for record in recorded if "input_transformations" in as_object(record.answer)]
    expected = [(record.place, as_object(record.answer)["input_transformations"]) for record in reported]
    assert any(found for _, found in expected)
    traced = [(record.place, trace(record.request, record.ledger).transformations()) for record in reported]
    assert expected == traced


def minted_here(record: Recorded, block: Block) -> bool:
    return record.status < 400 and record.ledger.seal(block.opaque) is not None


def edited(record: Recorded, block: Block, **fields: object) -> JsonObject:
    """The body with fields of one block replaced; without any, the block is taken out."""
    body = deepcopy(record.body)
    message = as_list(body["messages"])[block.message]
    assert isinstance(message, dict)
    content = message["content"]
    if fields:
        content[block.index].update(fields)
    else:
        del content[block.index]
    return body


def test_refuses_accepted_requests_with_one_character_altered(recorded: list[Recorded]) -> None:
    """A signature, redacted data or thought that differs in one character from what was minted is refused."""
    tried = 0
    for record in recorded:
        for message in record.request.assistants:
            for block in [block for block in message.thinking if minted_here(record, block)]:
                name = "data" if block.kind == "redacted_thinking" else "signature"
                changes = [{name: altered(block.opaque)}, *([{"thinking": altered(block.text)}] if block.text else [])]
                for change in changes:
                    tried += 1
                    verdict = record.verdict(edited(record, block, **change))
                    assert (400, True) == (verdict.status, block.path in verdict.message), record.place
    assert tried >= 40


def test_refuses_open_turns_without_a_thought_that_was_minted(recorded: list[Recorded]) -> None:
    """Taking a thought out of the turn under way makes an accepted request a refused one, unless thinking is off."""
    tried = 0
    for record in recorded:
        thoughts = [block for message in record.request.open_turn for block in message.thinking]
        for block in [block for block in thoughts if minted_here(record, block) and record.request.thinking_on]:
            if block.opaque not in trace(record.request, record.ledger).kept:
                continue
            tried += 1
            verdict = record.verdict(edited(record, block))
            said = "Expected `thinking`" if record.request.mode == MANUAL else "cannot be modified"
            assert (400, True) == (verdict.status, said in verdict.message), (record.place, verdict)
    assert tried >= 8


def test_takes_earlier_turns_without_their_thoughts(recorded: list[Recorded]) -> None:
    """Thoughts of finished turns may be left out altogether."""
    tried = 0
    for record in recorded:
        earlier = [message for message in record.request.assistants if message not in record.request.open_turn]
        blocks = [block for message in earlier for block in message.thinking]
        if record.status < 400 and blocks:
            tried += 1
            body = deepcopy(record.body)
            for block in reversed(blocks):
                message = as_list(body["messages"])[block.message]
                assert isinstance(message, dict)
                del message["content"][block.index]
            assert (200, "") == ((verdict := record.verdict(body)).status, verdict.message), record.place
    assert tried >= 8


def keys_of(value: object, path: str = "") -> set[str]:
    """The paths of all keys in a value, but those inside a tool's input."""
    if isinstance(value, list):
        return set().union(*(keys_of(inner, f"{path}[{as_object(inner).get('type')}]") for inner in value))
    found = as_object(value)
    inner = [keys_of(one, f"{path}.{name}") for name, one in found.items() if name != "input"]
    return {f"{path}.{name}" for name in found}.union(*inner)


def kind_of(event: Mapping[str, object]) -> str:
    inner = as_object(event.get("content_block")) or as_object(event.get("delta"))
    return f"{event['type']} {inner.get('type')}"


def recorded_keys() -> Iterator[tuple[str, set[str]]]:
    """Kind and keys of each recorded event, and of each whole message."""
    for path in sorted((Path(CORPUS) / "anthropic").glob("*.json")):
        for exchange in map(as_object, as_list(as_object(json.loads(path.read_text(encoding="utf-8")))["exchanges"])):
            response = as_object(exchange["response"])
            raw, body = response.get("raw"), as_object(response.get("body"))
            if exchange.get("dialect") == "anthropic" and isinstance(raw, str):
                yield from ((kind_of(event), keys_of(event)) for event in read_events(raw.encode()))
            elif body.get("type") == "message":
                yield "whole", keys_of(body)


def test_writes_what_the_provider_writes(recorded: list[Recorded]) -> None:
    """Events and whole bodies have keys that recordings have, and all those that every recording has."""
    found = list(recorded_keys())
    base: JsonObject = {"model": "claude-opus-5-5", "max_tokens": 4096, "tools": [WEATHER], **ADAPTIVE}
    calls = [Call("get_weather", {"city": "Oslo"})]
    step = Step(earlier=[Step(reasoning="one"), Step(reasoning=REDACTED, text="Hi.")], tool_calls=calls)
    rendered = Talk(Persona(ANTHROPIC), base, messages=[user("hi")]).rendered(step)
    written = [(kind_of(event), keys_of(event)) for event in read_events(rendered.events)]
    for kind, keys in [*written, ("whole", keys_of(json.loads(rendered.whole)))]:
        known = [other for name, other in found if name == kind]
        assert (set(), set()) == (keys - set().union(*known), set.intersection(*known) - keys), kind
