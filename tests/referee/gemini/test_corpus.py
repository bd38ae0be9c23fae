"""The Gemini judge against recorded requests: it takes what Google took, and refuses it once a signature is touched."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from tests.exchanges import corpus, exchanges
from tests.referee.learning import learn_gemini
from thinkback_referee import Verdict
from thinkback_referee.gemini.judge import is_dummy, judge
from thinkback_referee.gemini.ledger import Ledger, octets
from thinkback_referee.gemini.profiles import HOSTS, PROFILES, Host, Profile
from thinkback_referee.gemini.request import Request
from thinkback_referee.gemini.schema import read_body

pytestmark = pytest.mark.corpus

DOORS = {"google-ai-studio": "gemini", "google-vertex": "vertex"}
_MODEL = re.compile(r"models/([^:]+):")


@dataclass(frozen=True)
class Recorded:
    """An accepted request, and what was learned before it."""

    place: str
    host: Host
    profile: Profile
    body: Mapping[str, Any]
    ledger: Ledger

    def verdict(self, body: Mapping[str, Any] | None = None) -> Verdict:
        return judge(self.host, self.profile, self.body if body is None else body, self.ledger)

    @property
    def request(self) -> Request:
        read = read_body(self.body)
        assert not isinstance(read, Verdict)
        return Request(self.host, self.profile, read)


def recordings() -> Iterator[Recorded]:
    """Every recorded request, each with a ledger of the earlier responses of its case."""
    ledgers: dict[str, Ledger] = {}
    for exchange in exchanges():
        found = exchange.data.get("request")
        if exchange.data["dialect"] != "gemini" or exchange.data["provider"] not in DOORS or not found:
            continue
        match = _MODEL.search(found["path"])
        assert match is not None
        host, profile = HOSTS[DOORS[exchange.data["provider"]]], PROFILES[match[1]]
        ledger = ledgers.setdefault(exchange.file, Ledger())
        yield Recorded(exchange.id, host, profile, found["body"], deepcopy(ledger))
        response = exchange.data["response"]
        learn_gemini(ledger, host.name, profile.reported, response.get("raw") or response["body"])


@pytest.fixture(scope="module")
def recorded() -> list[Recorded]:
    """All recordings; without a corpus the tests that need them are skipped."""
    if corpus() is None:
        pytest.skip("THINKBACK_CORPUS is not set: 0 recordings checked")
    return list(recordings())


def test_takes_what_google_took(recorded: list[Recorded]) -> None:
    """All recorded requests were accepted, and are accepted here."""
    verdicts = [(record.place, record.verdict()) for record in recorded]
    assert len(verdicts) >= 80
    assert [] == [(place, verdict.message) for place, verdict in verdicts if not verdict.ok]


def signed_calls(record: Recorded) -> Iterator[tuple[int, int, str]]:
    """Content, part and signature of the calls that must be signed."""
    if record.profile.validates:
        for content in record.request.open_turn:
            for part, _ in content.calls[:1]:
                yield content.index, part.index, part.signature


def edited(record: Recorded, content: int, part: int, signature: str) -> Verdict:
    body = deepcopy(dict(record.body))
    raw = body["contents"][content]["parts"][part]
    name = "thoughtSignature" if "thoughtSignature" in raw else "thought_signature"
    if signature:
        raw[name] = signature
    else:
        del raw[name]
    return record.verdict(body)


def test_refuses_a_recorded_open_turn_without_its_signature(recorded: list[Recorded]) -> None:
    """Taking the signature off the first call of an open step makes the request a refused one."""
    tried = 0
    for record in recorded:
        for content, part, _ in signed_calls(record):
            tried += 1
            verdict = edited(record, content, part, "")
            assert (400, f"missing at contents[{content}]") == (verdict.status, verdict.reason), record.place
    assert tried >= 10


def test_refuses_a_recorded_signature_with_one_byte_changed(recorded: list[Recorded]) -> None:
    """Changing a byte of any genuine signature makes the request a refused one."""
    tried = 0
    for record in [record for record in recorded if record.profile.validates]:
        for content in record.request.contents:
            for part in content.parts:
                if not part.signature or is_dummy(record.host, part.signature):
                    continue
                tried += 1
                value = bytearray(octets(part.signature))
                value[-1] ^= 1
                altered = base64.b64encode(bytes(value)).decode()
                verdict = edited(record, content.index, part.index, altered)
                place = f"contents[{content.index}].parts[{part.index}]"
                assert (400, f"changed at {place}") == (verdict.status, verdict.reason), record.place
    assert tried >= 10
