"""The Responses persona against recorded exchanges: it accepts what the providers took, and refuses it once altered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.referee.learning import learn_responses
from thinkback_referee.jsons import as_list, as_object, as_text
from thinkback_referee.persona import Persona
from thinkback_referee.responses import RESPONSES
from thinkback_referee.responses.judge import judge
from thinkback_referee.responses.ledger import Ledger
from thinkback_referee.responses.profiles import profile_for
from thinkback_referee.responses.request import Request
from thinkback_referee.verdict import Verdict

pytestmark = pytest.mark.corpus

CORPUS = os.environ.get("THINKBACK_CORPUS", "")
HOSTS = {
    "openai": "openai",
    "azure": "azure",
    "xai": "xai",
    "chatgpt-codex": "codex",
    "github-copilot": "copilot",
    "openrouter": "openrouter",
    "deepseek": "deepseek",
    "lmstudio": "lmstudio",
}


@dataclass(frozen=True)
class Recorded:
    """A request, the persona that learned what came before it, and what the provider said."""

    place: str
    host: str
    body: dict[str, object]
    persona: Persona[Request, Ledger]
    status: int
    answer: object

    def verdict(self, body: dict[str, object] | None = None) -> Verdict:
        """The verdict on the request, or on another body in its place."""
        profile = profile_for(self.host, as_text(self.body["model"]))
        assert profile is not None, f"no row for {self.host} {self.body['model']}"
        return judge(Request(profile, body or self.body, "account", self.persona.ledger))


def recordings() -> Iterator[Recorded]:
    """Every recorded request to a host that the persona plays."""
    for path in sorted((Path(CORPUS) / "openai-responses").glob("*.json")):
        case = as_object(json.loads(path.read_text()))
        if case["recorded"]:
            yield from replayed(path.stem, case)


def replayed(name: str, case: Mapping[str, object]) -> Iterator[Recorded]:
    persona = Persona(RESPONSES)
    for number, exchange in enumerate(map(as_object, as_list(case["exchanges"]))):
        host = HOSTS.get(as_text(exchange.get("provider")))
        response = as_object(exchange.get("response"))
        body = dict(as_object(as_object(exchange.get("request")).get("body")))
        if host is None or exchange.get("dialect") != "openai-responses" or not body:
            continue
        status = int(str(response["status"]))
        yield Recorded(f"{name} #{number}", host, body, deepcopy(persona), status, response.get("body"))
        if status < 400:
            raw = response.get("raw")
            said = raw if isinstance(raw, str) else as_object(response.get("body"))
            learn_responses(persona.ledger, host, "account", body, said)


def predates(record: Recorded) -> bool:
    """Whether Copilot took a reasoning item, which it did until 2026-05."""
    given = record.body["input"]
    items = [as_object(item) for item in given] if isinstance(given, list) else []
    return record.host == "copilot" and any(item.get("type") == "reasoning" for item in items)


@pytest.fixture(scope="module")
def recorded() -> list[Recorded]:
    """All recordings; without a corpus the tests that need them are skipped."""
    if not CORPUS:
        pytest.skip("THINKBACK_CORPUS is not set: 0 recordings checked")
    found = list(recordings())
    print(f"{len(found)} recorded requests")
    return found


def test_accepts_what_the_providers_accepted(recorded: list[Recorded]) -> None:
    """Every request that a provider took is taken here, with what it carries known to the ledger."""
    accepted = [record for record in recorded if record.status < 400]
    verdicts = [(record.place, record.verdict()) for record in accepted]
    assert len(accepted) >= 50
    older = [record.place for record in accepted if predates(record)]
    assert older == [place for place, verdict in verdicts if not verdict.ok]


def test_refuses_what_the_providers_refused(recorded: list[Recorded]) -> None:
    """Every recorded refusal is answered with the same status and body."""
    refused = [record for record in recorded if record.status >= 400]
    expected = [(record.place, record.status, record.answer) for record in refused]
    verdicts = [(record.place, record.verdict()) for record in refused]
    assert expected
    assert expected == [(place, verdict.status, verdict.body) for place, verdict in verdicts]


def edited(record: Recorded, index: int, **fields: object) -> Verdict:
    """The verdict on the request with fields of one item replaced, or removed where the value is None."""
    body = deepcopy(record.body)
    item = as_list(body["input"])[index]
    assert isinstance(item, dict)
    item.update(fields)
    for name in [name for name, value in fields.items() if value is None]:
        del item[name]
    return record.verdict(body)


def carriers(record: Recorded) -> list[tuple[int, Mapping[str, object]]]:
    """Index and item of the reasoning items that carry encrypted content."""
    given = record.body["input"]
    items = [as_object(item) for item in given] if isinstance(given, list) else []
    return [(index, item) for index, item in enumerate(items) if as_text(item.get("encrypted_content"))]


def test_refuses_accepted_requests_with_one_character_altered(recorded: list[Recorded]) -> None:
    """Altering a character of encrypted content makes the request a refused one."""
    tried = 0
    for record in [record for record in recorded if record.status < 400 and not predates(record)]:
        for index, item in carriers(record):
            tried += 1
            value = as_text(item["encrypted_content"])
            altered = value[:20] + ("A" if value[20:21] != "A" else "B") + value[21:]
            verdict = edited(record, index, encrypted_content=altered)
            assert (400, f"changed at input[{index}]") == (verdict.status, verdict.reason), record.place
    assert tried >= 20


def test_refuses_accepted_requests_without_what_is_required(recorded: list[Recorded]) -> None:
    """Where ids tie an item to its reasoning, leaving the reasoning out makes the request a refused one."""
    tried = 0
    for record in [record for record in recorded if record.status < 400 and record.host in ("openai", "codex")]:
        for index, item in carriers(record):
            items = as_list(record.body["input"])
            follower = as_object(items[index + 1]) if index + 1 < len(items) else {}
            if not item.get("id") or not follower.get("id"):
                continue
            tried += 1
            left = [*items[:index], *items[index + 1 :]]
            verdict = record.verdict({**record.body, "input": left})
            assert (400, f"no reasoning before input[{index}]") == (verdict.status, verdict.reason), record.place
    assert tried


def test_refuses_accepted_requests_under_another_account(recorded: list[Recorded]) -> None:
    """Encrypted content that another account sends is refused, or reported as removed where the model does that."""
    tried = 0
    for record in [record for record in recorded if record.status < 400 and carriers(record)]:
        tried += 1
        profile = profile_for(record.host, as_text(record.body["model"]))
        assert profile is not None
        verdict = judge(Request(profile, record.body, "another", record.persona.ledger))
        assert profile.drops_silently or not verdict.ok, record.place
    assert tried >= 20
