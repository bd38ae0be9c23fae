"""Spans of sessions and of transports: one for each request, from which one comes to ``thinkback why``."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

import thinkback
from tests.adapters.transport.provider import HEADERS, KEY, URL, Provider, question, says, streams
from tests.observe.keeping import Kept
from tests.observe.keeping import spans_here as spans_here
from tests.session.chats import KEY as OWN_KEY
from tests.session.chats import open_session
from thinkback.errors import ProviderError
from thinkback.session import observing
from thinkback_referee import HttpError, Referee, Step

SPANS = {"telemetry.spans": True}
CONTENT = {**SPANS, "telemetry.content": True}
SECRETS = ("a secret question", "a secret thought", "a secret answer")


def test_a_request_of_a_session_is_a_span(referee: Referee, spans_here: Kept) -> None:
    """With what was tried again, inside the program's own span; its record explains it; without what was said."""
    referee.push(Step(fault=HttpError(503)), Step(reasoning=SECRETS[1], text=SECRETS[2]), Step(text="So."))
    with thinkback.open(":memory:", settings=SPANS) as store:
        session = open_session(store, referee)
        with trace.get_tracer("own").start_as_current_span("work") as own:
            session.chat(SECRETS[0], settings={"reasoning.effort": "high"})
        session.chat("And?")
        first, _, second = spans_here.all
        said: Any = dict(first.attributes or {})
        assert ("chat deepseek-v4-pro", own.get_span_context().span_id) == (
            first.name,
            first.parent and first.parent.span_id,
        )
        assert (2, 200, session.id, session.id) == tuple(
            said[name]
            for name in ("thinkback.attempts", "http.response.status_code", "gen_ai.conversation.id", "session.id")
        )
        assert said["gen_ai.usage.reasoning.output_tokens"] == said["llm.token_count.completion_details.reasoning"] > 0
        why = session.why(str((second.attributes or {})["thinkback.commit"]))
        assert ("1 x drop reasoning: deepseek-v4",) == (second.attributes or {})["thinkback.decisions"]
        assert ["drop"] == [made.action for made in why.decisions]
    told = json.dumps([dict(span.attributes or {}) for span in spans_here.all])
    assert [] == [word for word in (*SECRETS, OWN_KEY) if word in told]


def test_a_request_that_fails_is_an_error(referee: Referee, spans_here: Kept) -> None:
    """By its kind, without what the provider said."""
    referee.push(Step(fault=HttpError(401, f"no {OWN_KEY}")))
    with (
        thinkback.open(":memory:", settings=CONTENT) as store,
        pytest.raises(ProviderError),
    ):
        open_session(store, referee).chat("Hello?")
    assert ("401", False) == ((spans_here.one.attributes or {})["error.type"], spans_here.one.status.is_ok)
    assert OWN_KEY not in spans_here.one.to_json()


def test_a_key_that_an_answer_repeats_is_on_no_span(referee: Referee, spans_here: Kept) -> None:
    """Also where a person wrote it."""
    referee.push(Step(text=f"Yours is {OWN_KEY}."))
    with thinkback.open(":memory:", settings=CONTENT) as store:
        open_session(store, referee).chat(f"My key is {OWN_KEY}.")
    assert "My key is ***." in str(spans_here.one.attributes)
    assert OWN_KEY not in spans_here.one.to_json()


def test_spans_that_cannot_be_made_stop_nothing(referee: Referee, monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning where OpenTelemetry is missing, which says what to install."""
    monkeypatch.setattr(observing, "_spans", {})
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry", None)
    with thinkback.open(":memory:", settings=SPANS) as store, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        session = open_session(store, referee)
        assert session.chat("Hello?").text
        assert session.chat("And?").text
    assert [True] == ["opentelemetry-api" in str(warning.message) for warning in said]


@pytest.mark.parametrize("content", [False, True])
def test_a_request_of_a_transport_is_a_span(tmp_path: Path, spans_here: Kept, content: bool) -> None:
    """From its first byte to its last; what the provider refuses is an error; no key, and what was said if wanted."""
    provider = Provider(streams(), says(429, b"{}"), says(200, b"{}"))
    settings = {**SPANS, "telemetry.content": content}
    with thinkback.http_client(tmp_path / "a.db", transport=provider, settings=settings) as client:
        client.post(URL, content=question("Why?"), headers=HEADERS).read()
        session = thinkback.why().session
        client.post(URL, content=question("Else?"), headers=HEADERS).read()
        client.post(URL, content=b'{"model": "m", "model": "n"}', headers=HEADERS).read()
    answered, refused, passed = (dict(span.attributes or {}) for span in spans_here.all)
    assert (True, None) == (passed["thinkback.bypassed"], passed.get("error.type"))
    assert (session, "moonshot_ai", "api.moonshot.ai", True, 200) == tuple(
        answered[name]
        for name in (
            *("gen_ai.conversation.id", "gen_ai.provider.name", "server.address", "gen_ai.request.stream"),
            "http.response.status_code",
        )
    )
    with thinkback.open(tmp_path / "a.db") as store:
        assert answered["thinkback.commit"] in {commit.hash for commit in store.commits(session)}
    assert 429 == refused["http.response.status_code"]
    assert "error.type" in refused
    told = json.dumps([answered, refused])
    assert (content, False) == ("Hm." in told and "Why?" in told, KEY in told)
