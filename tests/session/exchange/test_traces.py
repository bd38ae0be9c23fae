"""Traces with what was said: exported by a real SDK, imported, and gone on with as if nothing had happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomlkit

import thinkback
from tests.conformance.moves import KEY, PLACES, TOOLS, Place, answered
from tests.observe.keeping import Kept, console, otlp
from tests.observe.keeping import spans_here as spans_here
from thinkback.drive.http import HttpResponse, Httpx2Transport, Timeouts
from thinkback.rules import load_rulebook
from thinkback.session.exchange.histories import Wanted, run, vouched
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee


class Elsewhere(Httpx2Transport):
    """What goes to a provider's own address reaches the referee."""

    def __init__(self, referee: Referee, place: Place) -> None:
        super().__init__()
        self._there = referee.base_url(place.host)
        self.base_url = ""

    @contextmanager
    def post(self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts) -> Iterator[HttpResponse]:
        """To the referee instead."""
        assert url.startswith(self.base_url)
        with super().post(self._there + url.removeprefix(self.base_url), headers, body, timeouts) as response:
            yield response


# Bedrock has an address for each region.
REGIONAL = {"bedrock": "https://bedrock-runtime.eu-west-1.amazonaws.com"}


def at(store: SessionStore, place: Place, transport: Elsewhere, name: str = "chat") -> Session:
    """A session there."""
    address: Any = {"base_url": REGIONAL[place.endpoint]} if place.endpoint in REGIONAL else {}
    session = store.session(
        name, endpoint=place.endpoint, model=place.model, api_key=KEY, transport=transport, **address
    )
    transport.base_url = session.target.base_url
    return session


@pytest.mark.parametrize("place", PLACES, ids=lambda at: at.dialect)
def test_a_trace_with_content_is_replayed(place: Place, tmp_path: Path, referee: Referee, spans_here: Kept) -> None:
    """A conversation with calls: the next request of the imported session has the bytes of the original's."""
    settings: dict[str, object] = {"telemetry.spans": True, "telemetry.content": True, "reasoning.enabled": True}
    # where it is not said, a session that began here asks for less than an imported one
    settings |= {"reasoning.effort": "low"} if place.dialect in ("openai-responses", "bedrock") else {}
    with closing(Elsewhere(referee, place)) as transport:
        with thinkback.open(":memory:", rules={}, settings=settings) as store:
            session = at(store, place, transport)
            session.chat("What is the weather in Oslo?", tools=TOOLS)
            answered(session)
            session.chat("Thanks. And in Bergen?", tools=TOOLS)
            answered(session)
            expected = bytes(session.wire.plan("Go on.", tools=TOOLS)).decode()
            spans = tuple(spans_here.all)
            assert len(spans) == len(session.usage.steps())
            assert KEY not in json.dumps([dict(span.attributes or {}) for span in spans])
        for name, write in (("otlp", otlp), ("console", console)):
            file = tmp_path / name
            file.write_bytes(write(spans))
            with thinkback.open(":memory:", rules={}, settings=settings) as store:
                there = vouched(store, place.endpoint, REGIONAL.get(place.endpoint, ""))
                (took,), gaps = run(store.log, Wanted("otlp", str(file), vouched=there))
                again = at(store, place, transport, took.name)
                assert ([], expected) == (gaps, bytes(again.wire.plan("Go on.", tools=TOOLS)).decode())
                again.chat("Go on.", tools=TOOLS)
                assert 200 == referee.requests[-1].status


@pytest.mark.parametrize("left_out", ["llm.", "gen_ai."])
def test_a_trace_of_a_transport_is_replayed(left_out: str, tmp_path: Path, referee: Referee, spans_here: Kept) -> None:
    """By the conventions of OpenTelemetry alone, and by those of OpenInference: what was forgotten goes back."""
    settings = {"telemetry.spans": True, "telemetry.content": True}
    base, log = referee.base_url("anthropic"), tmp_path / "a.db"
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    messages: list[dict[str, object]] = []
    with thinkback.http_client(log, endpoint="anthropic", settings=settings) as client:
        for question in ("Why is it red?", "And blue?"):
            messages.append({"role": "user", "content": question})
            body = {"model": "claude-opus-5-5", "max_tokens": 4096, "messages": messages}
            said = client.post(f"{base}/messages", json=body, headers=headers).json()
            texts = [block for block in said["content"] if block["type"] == "text"]
            messages.append({"role": "assistant", "content": texts})
    lines = [json.loads(line) for line in console(spans_here.all).splitlines()]
    for line in lines:
        line["attributes"] = {name: it for name, it in line["attributes"].items() if not name.startswith(left_out)}
    (tmp_path / "spans").write_text("\n".join(map(json.dumps, lines)))
    own = {**msgspec.to_builtins(load_rulebook().endpoint("anthropic")), "base_url": base, "source": "a test"}
    rules = {"here.toml": tomlkit.dumps({"endpoint": [own]})}
    place: Any = {"endpoint": "anthropic", "model": "claude-opus-5-5", "api_key": KEY}
    with thinkback.open(log, rules=rules) as store:
        (info,) = store.sessions()
        expected = bytes(store.session(info.name, **place).wire.plan("Go on.")).decode()
    with thinkback.open(":memory:", rules=rules) as store:
        there = vouched(store, "anthropic")
        (took,), gaps = run(store.log, Wanted("otlp", str(tmp_path / "spans"), vouched=there))
        assert ([], expected) == (gaps, bytes(store.session(took.name, **place).wire.plan("Go on.")).decode())
    assert 2 == expected.count('"signature"')
