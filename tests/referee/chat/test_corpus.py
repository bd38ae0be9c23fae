"""The referee against recorded exchanges: it accepts what the real providers accepted, and refuses it once altered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.referee.learning import learn_chat
from thinkback_referee import Ledger, Profile, Verdict, judge, profile_for, required_indices
from thinkback_referee.chat.request import Request
from thinkback_referee.jsons import as_list, as_object, as_text

pytestmark = pytest.mark.corpus

CORPUS = os.environ.get("THINKBACK_CORPUS", "")
FOLDERS = ("openai-chat", "think-tags", "mistral", "gemini", "openai-responses")
DIALECTS = ("openai-chat", "mistral")
HOSTS = {"deepseek": "deepseek", "moonshotai": "kimi", "groq": "groq", "mistral": "mistral", "openai": "openai"}


@dataclass(frozen=True)
class Recorded:
    """A request, what was learned before it, and what the provider said."""

    place: str
    profile: Profile
    body: Mapping[str, object]
    ledger: Ledger
    status: int
    answer: object

    @property
    def accepted(self) -> bool:
        """Whether the provider took the request; a model that failed at its task had taken it."""
        return self.status < 400 or as_object(as_object(self.answer).get("error")).get("code") == "tool_use_failed"


def recordings() -> Iterator[Recorded]:
    """Every recorded request to a persona, each with a ledger of the earlier responses of its case."""
    for folder in FOLDERS:
        for path in sorted((Path(CORPUS) / folder).glob("*.json")):
            yield from replayed(path, as_object(json.loads(path.read_text())))


def replayed(path: Path, case: Mapping[str, object]) -> Iterator[Recorded]:
    ledger = Ledger()
    for number, exchange in enumerate(map(as_object, as_list(case["exchanges"]))):
        host = HOSTS.get(as_text(exchange.get("provider")))
        response = as_object(exchange.get("response"))
        body = as_object(as_object(exchange.get("request")).get("body"))
        if host is None or exchange.get("dialect") not in DIALECTS or not body:
            continue
        profile = profile_for(host, as_text(body.get("model")))
        assert profile is not None, f"no row for {host} {body.get('model')}"
        status = int(str(response["status"]))
        yield Recorded(f"{path.stem} #{number}", profile, body, deepcopy(ledger), status, response.get("body"))
        learn(ledger, profile, response)


def learn(ledger: Ledger, profile: Profile, response: Mapping[str, object]) -> None:
    raw = response.get("raw")
    learn_chat(ledger, profile, raw if isinstance(raw, str) else as_object(response.get("body")))


@pytest.fixture(scope="module")
def recorded() -> list[Recorded]:
    """All recordings; without a corpus the tests that need them are skipped."""
    if not CORPUS:
        pytest.skip("THINKBACK_CORPUS is not set: 0 recordings checked")
    found = list(recordings())
    print(f"{len(found)} recorded requests")
    return found


def edited(record: Recorded, index: int, **fields: object) -> Verdict:
    """The verdict on the request with fields of one message replaced, or removed where the value is None."""
    body = deepcopy(dict(record.body))
    message = as_list(body["messages"])[index]
    assert isinstance(message, dict)
    message.update(fields)
    for name in [name for name, value in fields.items() if value is None]:
        del message[name]
    return judge(record.profile, body, record.ledger)


def test_accepts_what_the_providers_accepted(recorded: list[Recorded]) -> None:
    """Every request that a provider took is taken here, with its reasoning known to the ledger."""
    accepted = [record for record in recorded if record.accepted]
    verdicts = [(record.place, judge(record.profile, record.body, record.ledger)) for record in accepted]
    assert len(accepted) >= 20
    assert [] == [(place, verdict) for place, verdict in verdicts if not verdict.ok]


def test_refuses_what_the_providers_refused(recorded: list[Recorded]) -> None:
    """Every recorded refusal is answered with the same status and body."""
    refused = [record for record in recorded if not record.accepted]
    expected = [(record.place, record.status, record.answer) for record in refused]
    verdicts = [(record.place, judge(record.profile, record.body, record.ledger)) for record in refused]
    assert expected
    assert expected == [(place, verdict.status, verdict.body) for place, verdict in verdicts]


def carried(record: Recorded) -> list[tuple[int, str]]:
    """Index and reasoning of the messages that carry one in the persona's field."""
    field = record.profile.field
    messages = Request(record.profile, record.body).assistants
    return [(message.index, value) for message in messages if (value := message.reasoning(field)) is not None]


def test_refuses_accepted_requests_without_their_required_reasoning(recorded: list[Recorded]) -> None:
    """Taking required reasoning out of a recorded request makes it a refused one."""
    tried = 0
    for record in recorded:
        required = required_indices(record.profile, record.body)
        for index in [index for index, _ in carried(record) if record.accepted and index in required]:
            tried += 1
            verdict = edited(record, index, **{record.profile.field: None})
            assert (400, f"missing at messages[{index}]") == (verdict.status, verdict.reason), record.place
    assert tried


def test_refuses_accepted_requests_with_one_character_altered(recorded: list[Recorded]) -> None:
    """Altering a character of reasoning that an earlier response of the case minted makes the request refused."""
    tried = 0
    for record in recorded:
        for index, value in carried(record):
            if record.profile.field == "thinking" or not record.ledger.issued(value) or not value:
                continue
            tried += 1
            altered = value[:-1] + ("!" if value[-1] != "!" else "?")
            verdict = edited(record, index, **{record.profile.field: altered})
            assert (400, f"changed at messages[{index}]") == (verdict.status, verdict.reason), record.place
    assert tried
