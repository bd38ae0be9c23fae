"""The router against recorded exchanges: it accepts what OpenRouter accepted, and refuses it once altered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.referee.learning import chat_message
from thinkback_referee.jsons import as_list, as_object, as_text
from thinkback_referee.openrouter.judge import judge
from thinkback_referee.openrouter.profiles import ROWS
from thinkback_referee.openrouter.request import Ledger, Mint, Request, carrier_of, text_of

pytestmark = pytest.mark.corpus

CORPUS = os.environ.get("THINKBACK_CORPUS", "")


@dataclass(frozen=True)
class Recorded:
    """A request, and what was minted before it."""

    place: str
    body: dict[str, object]
    ledger: Ledger

    def refused(self, body: dict[str, object] | None = None) -> str:
        """Why the request, or another body in its place, is refused; empty when it is not."""
        row = ROWS[as_text(self.body["model"])]
        return judge(Request(row, body or self.body, "account", self.ledger)).reason


def entries_of(response: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The details of a recorded response, of a stream all fragments."""
    raw = response.get("raw")
    if not isinstance(raw, str):
        choice = as_object(as_list(as_object(response["body"])["choices"])[0])
        return [as_object(entry) for entry in as_list(as_object(choice["message"]).get("reasoning_details"))]
    found: list[Mapping[str, object]] = []
    for line in raw.split("\n"):
        data = line.removeprefix("data: ").strip()
        if line.startswith("data: ") and data != "[DONE]":
            for streamed in as_list(as_object(json.loads(data)).get("choices")):
                found += map(as_object, as_list(as_object(as_object(streamed)["delta"]).get("reasoning_details")))
    return found


def mint_of(model: str, response: Mapping[str, object]) -> Mint:
    """What a recorded response minted."""
    raw = response.get("raw")
    message = chat_message(raw if isinstance(raw, str) else as_object(response["body"])) or as_object(None)
    entries = entries_of(response)
    calls = tuple(as_text(as_object(call).get("id")) for call in as_list(message.get("tool_calls")))
    carriers = tuple(carrier for entry in entries if (carrier := carrier_of(entry)))
    return Mint(model, "account", carriers, "".join(map(text_of, entries)), calls)


def recordings() -> Iterator[Recorded]:
    """Every recorded request to a model that the persona plays."""
    for path in sorted((Path(CORPUS) / "openai-chat").glob("openrouter*.json")):
        ledger = Ledger()
        for number, exchange in enumerate(map(as_object, as_list(json.loads(path.read_text())["exchanges"]))):
            response = as_object(exchange["response"])
            body = dict(as_object(as_object(exchange["request"])["body"]))
            if body.get("model") in ROWS and response["status"] == 200:
                yield Recorded(f"{path.stem} #{number}", body, deepcopy(ledger))
                ledger.add(mint_of(as_text(body["model"]), response))


@pytest.fixture(scope="module")
def recorded() -> list[Recorded]:
    """All recordings; without a corpus the tests that need them are skipped."""
    if not CORPUS:
        pytest.skip("THINKBACK_CORPUS is not set: 0 recordings checked")
    return list(recordings())


def test_accepts_what_the_router_accepted(recorded: list[Recorded]) -> None:
    """Every recorded request is taken, with its details known to the ledger."""
    assert len(recorded) >= 10
    assert [] == [(record.place, record.refused()) for record in recorded if record.refused()]


def test_refuses_accepted_requests_with_one_character_altered(recorded: list[Recorded]) -> None:
    """Altering an opaque value, or leaving one out where it is required, makes the request a refused one."""
    tried = 0
    for record in recorded:
        for index, message in enumerate(map(as_object, as_list(record.body["messages"]))):
            for place, entry in enumerate(map(as_object, as_list(message.get("reasoning_details")))):
                name = "data" if entry.get("data") else "signature"
                if not carrier_of(entry):
                    continue
                tried += 1
                body = deepcopy(record.body)
                altered = as_list(as_object(as_list(body["messages"])[index])["reasoning_details"])[place]
                assert isinstance(altered, dict)
                altered[name] = f"{carrier_of(entry)[:-1]}!"
                assert record.refused(body) == f"changed at messages[{index}]", record.place
    assert tried >= 5
