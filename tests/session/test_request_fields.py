"""Request fields that settings name (``params.*``): from an app, a profile, the session, a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.session.chats import KEY
from thinkback.errors import SettingError
from thinkback.session.session import Session
from thinkback.session.store import SessionStore


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration directory with an app that has a temperature and an output limit."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "calm.toml").write_text("temperature = 0.25\nmax_tokens = 2000\n")
    return tmp_path


def body(session: Session, **options: Any) -> dict[str, Any]:
    """The next request."""
    found: dict[str, Any] = json.loads(bytes(session.wire.plan("Hi", **options)))
    return found


@pytest.mark.parametrize(
    ("endpoint", "model", "expected"),
    [
        ("deepseek", "deepseek-v4-pro", {"temperature": 0.25, "max_tokens": 2000}),
        ("mistral", "mistral-medium-latest", {"temperature": 0.25, "max_tokens": 2000}),
        ("openai", "gpt-4.1", {"temperature": 0.25, "max_output_tokens": 2000}),
        ("openai-chat", "gpt-4.1", {"temperature": 0.25, "max_completion_tokens": 2000}),
        ("anthropic", "claude-3-5-haiku", {"temperature": 0.25, "max_tokens": 2000}),
    ],
)
def test_an_app_s_fields_are_said_in_the_words_of_any_endpoint(
    store: SessionStore, endpoint: str, model: str, expected: dict[str, Any]
) -> None:
    """An app names no dialect, so its temperature and its limit reach each by the name that it has there."""
    sent = body(store.session("a", app="calm", endpoint=endpoint, model=model, api_key=KEY))
    assert expected == {name: sent.get(name) for name in expected}


def test_fields_are_nested_where_the_dialect_nests_them(store: SessionStore) -> None:
    """Gemini's stand in a table; a field that is no common name goes as it is."""
    session = store.session("a", app="calm", endpoint="gemini", model="gemini-2.0-flash", api_key=KEY)
    session.set("params.safetySettings", [])
    sent = body(session)
    assert {"temperature": 0.25, "maxOutputTokens": 2000} == {
        name: sent["generationConfig"][name] for name in ("temperature", "maxOutputTokens")
    }
    assert [] == sent["safetySettings"]


def test_a_stronger_layer_wins_field_by_field(store: SessionStore, place: Path) -> None:
    """App, then profile, then session, then call; a session's profile keeps its fields."""
    (place / "profiles").mkdir()
    (place / "profiles" / "warm.toml").write_text("[params]\ntemperature = 0.5\nseed = 7\n")
    session = store.session("a", app="calm", profile="warm", endpoint="deepseek", model="deepseek-v4-pro", api_key=KEY)
    assert (0.5, 7, 2000) == tuple(body(session).get(name) for name in ("temperature", "seed", "max_tokens"))
    session.set("params.temperature", 0.75)
    assert 0.75 == body(session)["temperature"]
    assert 1 == body(session, settings={"params.temperature": 1})["temperature"]
    assert 2 == body(session, params={"temperature": 2})["temperature"]
    session.profiles.save("mine")
    assert "temperature = 0.75\n" in (place / "profiles" / "mine.toml").read_text()
    session.set("params.max_tokens", "default")
    assert "max_tokens" not in body(session)
    session.unset("params.temperature")
    assert 0.5 == body(session)["temperature"]


@pytest.mark.filterwarnings("ignore:params.top_k = set is not sent:UserWarning")
def test_a_field_that_a_dialect_does_not_have_is_reported(store: SessionStore) -> None:
    """What has no name there is not sent, and what is out of its range is sent as the nearest; both are in the plan."""
    session = store.session("a", endpoint="openai", model="gpt-4.1", api_key=KEY)
    session.set("params.top_k", 5)
    plan = session.wire.plan("Hi")
    assert [("params.top_k", "unrepresentable")] == [
        (c.key, c.state) for c in plan.dropped if c.key.startswith("params")
    ]
    session.use(endpoint="anthropic", model="claude-3-5-haiku", api_key=KEY)
    session.set("params.temperature", 2)
    plan = session.wire.plan("Hi")
    assert [("params.temperature", "2", "represented")] == [
        (c.key, c.value, c.state) for c in plan.dropped if c.key == "params.temperature"
    ]


def test_what_is_said_otherwise_is_no_field(store: SessionStore) -> None:
    """Model, tools and the conversation have names of their own; the request is refused before anything is stored."""
    session = store.session("a", endpoint="deepseek", model="deepseek-v4-pro", api_key=KEY)
    session.set("params.model", "other")
    with pytest.raises(SettingError, match="params cannot set model"):
        session.wire.plan("Hi")
    assert [] == session.log()


def test_a_text_stop_is_a_list_where_a_dialect_wants_one(store: SessionStore) -> None:
    """``stop`` may be one text or several."""
    session = store.session("a", endpoint="gemini", model="gemini-2.0-flash", api_key=KEY)
    session.set("params.stop", "END")
    assert ["END"] == body(session)["generationConfig"]["stopSequences"]
