"""Sessions and the default to reason: new ones ask, those of before and adopted ones do not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.session.chats import KEY, get_weather, open_session
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee

MARK = "session.defaults"


def sonnet(store: SessionStore, name: str = "s") -> Session:
    """A session with a model that reasons only if it is asked to."""
    return store.session(name, endpoint="anthropic", model="claude-sonnet-4-5", api_key=KEY)


def body(session: Session, prompt: str | None = "Hi", **options: Any) -> dict[str, Any]:
    """The next request."""
    found: dict[str, Any] = json.loads(bytes(session.wire.plan(prompt, **options)))
    return found


def old(store: SessionStore, name: str = "old") -> Session:
    """A session as one of before is in the log."""
    session = sonnet(store, name)
    store.log.write_settings(session.id, {})
    return sonnet(store, name)


def test_a_new_session_asks_its_model_to_reason(store: SessionStore) -> None:
    """What is displayed is what happens, and setting it changes no byte."""
    session = sonnet(store)
    assert (True, "built-in") == session.layers.origin("reasoning.enabled")
    sent = body(session)
    assert {"type": "enabled", "budget_tokens": 1024} == sent["thinking"]
    other = sonnet(store, "other")
    other.set("reasoning.enabled", True)
    assert sent == body(other)


def test_a_session_of_before_stays_as_it_was(store: SessionStore) -> None:
    """Also its forks, and also where reasoning is asked for explicitly with a model that takes efforts."""
    session = old(store)
    assert "thinking" not in body(session)
    assert "thinking" not in body(session.branches.fork("child"))
    session.set(MARK, 1)
    assert 1024 == body(session)["thinking"]["budget_tokens"]
    session = old(store, "explicit")
    session.use(endpoint="openai", model="gpt-5.2", api_key=KEY)
    session.set("reasoning.enabled", True)
    assert "medium" == body(session)["reasoning"]["effort"]


def test_a_fork_of_a_new_session_is_a_new_one(store: SessionStore) -> None:
    """It asks, too, and a session that is opened again does."""
    body(sonnet(store))
    child = sonnet(store).branches.fork("child")
    assert "thinking" in body(child)


def test_an_adopted_history_is_another_program_s(store: SessionStore) -> None:
    """Nothing is added to its requests that it did not ask for."""
    session = sonnet(store)
    session.wire.adopt([{"role": "user", "content": "Hi"}])
    assert "thinking" not in body(session, None)
    assert MARK not in session.layers.texts("session")
    session.wire.adopt([{"role": "user", "content": "Hi"}])


def test_what_was_sent_by_default_is_proven(store: SessionStore, referee: Referee) -> None:
    """The record holds the default that the request was built under, so that ``why`` builds the same bytes."""
    session = open_session(store, referee, "anthropic", model="claude-opus-4-6")
    session.chat("Hi")
    assert {"type": "adaptive"} == referee.requests[-1].body["thinking"]
    assert bytes(session.explain()) == referee.requests[-1].raw
    (record,) = session.log(kinds=["request"])
    assert "1" == record.value.settings[MARK]  # type: ignore[union-attr]


def test_a_caller_s_temperature_beats_the_default(store: SessionStore) -> None:
    """The request goes out without reasoning, and the plan says why."""
    session = store.session("t", endpoint="anthropic", model="claude-opus-4-6", api_key=KEY)
    with pytest.warns(UserWarning, match=r"reasoning\.enabled = true is not sent"):
        plan = session.wire.plan("Hi", params={"temperature": 0.5})
    assert "thinking" not in json.loads(bytes(plan))
    assert ["reasoning.enabled"] == [control.key for control in plan.dropped]


def test_a_program_sees_what_each_setting_does(store: SessionStore) -> None:
    """``session.effects``: by key, with who decides; without a model, what was set."""
    session = sonnet(store)
    found = session.effects["reasoning.enabled"]
    assert (True, "built-in") == (found.value, found.by)
    assert "request: thinking.type = enabled, thinking.budget_tokens = 1024, rule claude-manual" in str(found)
    session.set("params.temperature", 0.5)
    found = session.effects["reasoning.enabled"]
    assert None is found.value or "not sent" in str(found)
    assert 0.5 == session.effects["params.temperature"].value
    bare = store.session("bare")
    bare.set("reasoning.effort", "low")
    assert ("low", "session", ()) == tuple(
        getattr(bare.effects["reasoning.effort"], f) for f in ("value", "by", "scopes")
    )


@pytest.mark.parametrize("model", ["gpt-5.1", "gpt-5.2", "gpt-5.4"])
def test_models_that_do_not_reason_by_default_are_told_to_at_chat(store: SessionStore, model: str) -> None:
    """The row's cheapest effort, built in and set; beside tools, which 5.4 refuses, none, and it is said."""
    for name in ("built in", "set"):
        session = store.session(f"{model} {name}", endpoint="openai-chat", model=model, api_key=KEY)
        if name == "set":
            session.set("reasoning.enabled", True)
        plan = session.wire.plan("Hello?")
        assert "low" == plan.params["reasoning_effort"]
        assert [("reasoning.enabled", "emitted")] == [(control.key, control.state) for control in plan.controls]
    session = store.session(f"{model} tools", endpoint="openai-chat", model=model, api_key=KEY)
    if model != "gpt-5.4":
        assert "low" == session.wire.plan("Hello?", tools=[get_weather]).params["reasoning_effort"]
        return
    with pytest.warns(match="openai-chat refuses tools together with reasoning for gpt-5.4"):
        assert "none" == session.wire.plan("Hello?", tools=[get_weather]).params["reasoning_effort"]
