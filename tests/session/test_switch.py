"""Another model, endpoint or key in the middle: accepted by the strict stand-ins, with a decision for every block."""

from __future__ import annotations

import json
from typing import Any

import pytest

import thinkback
from tests.session.chats import (
    DEFINITION,
    KEY,
    PERSONAS,
    get_time,
    get_weather,
    messages,
    open_session,
    refusals,
    statuses,
)
from thinkback.errors import CredentialError, NotFoundError, SettingError
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step, code_word

FIRST, SECOND, THIRD = "Weather in Oslo?", "And in Rome?", "And in Bergen?"


def switch(session: Session, referee: Referee, host: str, model: str = "") -> None:
    """Go on with another persona."""
    session.use(endpoint=host, model=model or PERSONAS[host], base_url=referee.base_url(host), api_key=KEY)


def test_there_and_back(store: SessionStore, referee: Referee) -> None:
    """DeepSeek, Kimi, DeepSeek: each gets its own reasoning, a placeholder where it must have some, and no other's."""
    session = open_session(store, referee, "deepseek")
    session.chat(FIRST, tools=[get_weather])
    switch(session, referee, "kimi")
    reply = session.chat(SECOND, tools=[get_weather])
    assert {"drop", "placeholder", "field"} == {decision.action for decision in reply.decisions}
    assert all(decision.reason and decision.rule for decision in reply.decisions)
    theirs = [message.get("reasoning_content") for message in messages(referee) if message["role"] == "assistant"]
    assert " " == theirs[0]
    assert code_word(FIRST) not in str(theirs)
    switch(session, referee, "deepseek")
    reply = session.chat(THIRD, tools=[get_weather])
    assert code_word(FIRST) in reply.text
    assert code_word(SECOND) not in reply.text
    assert ([], {200}) == (refusals(referee), set(statuses(referee)))
    assert [] == store.fsck()


@pytest.mark.parametrize("start", PERSONAS)
@pytest.mark.parametrize("then", PERSONAS)
def test_every_pair_of_personas(store: SessionStore, referee: Referee, start: str, then: str) -> None:
    """No request is refused, in a turn of tools and in one without."""
    session = open_session(store, referee, start)
    session.chat(FIRST, tools=[get_weather, get_time])
    session.chat("Thank you.", tools=[])
    switch(session, referee, then)
    assert "completed" == session.chat(SECOND, tools=[get_weather, get_time]).state
    switch(session, referee, start)
    assert "completed" == session.chat(THIRD, tools=[get_weather, get_time]).state
    assert [] == refusals(referee)


def test_within_an_open_tool_loop(store: SessionStore, referee: Referee) -> None:
    """Another endpoint answers the calls of the first: it gets the calls and a placeholder for the thought."""
    session = open_session(store, referee, "deepseek")
    reply = session.chat(FIRST, tools=[DEFINITION])
    switch(session, referee, "kimi")
    assert "completed" == session.generate({reply.tool_calls[0].id: "sun"}).state
    assert [" "] == [message["reasoning_content"] for message in messages(referee) if message["role"] == "assistant"]
    assert [] == refusals(referee)


@pytest.mark.parametrize(("endpoint", "model"), [("groq", "qwen/qwen3-32b"), ("deepseek", "deepseek-v4-pro")])
def test_foreign_text_is_told_where_no_reasoning_is_wanted(store: SessionStore, endpoint: str, model: str) -> None:
    """``reasoning.foreign=text`` alone does it, in turns without tools too."""
    session = store.session("s", endpoint="kimi", model="kimi-k2.6", api_key="a key")
    session.commit("Hello?")
    session.wire.plan()
    message = {"role": "assistant", "content": "Yes.", "reasoning_content": "They greet."}
    session.wire.ingest(json.dumps({"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    session.use(endpoint=endpoint, model=model)
    assert "They greet." not in str(session.explain(next=True).messages)
    session.set("reasoning.foreign", "text")
    assert "They greet." in str(session.explain(next=True).messages)


def test_models_that_read_each_other(store: SessionStore, referee: Referee) -> None:
    """Within a family the reasoning goes along."""
    session = open_session(store, referee)
    session.chat(FIRST, tools=[get_weather])
    session.use(model="deepseek-v4-flash")
    assert code_word(FIRST) in session.chat(SECOND).text
    assert ("deepseek-v4-flash", "deepseek") == (session.target.model, session.target.endpoint.id)


def test_claude_goes_on_at_another_host(referee: Referee) -> None:
    """In the middle of a tool loop, and back: the strict stand-in gets the blocks that the other host minted."""
    # The stand-ins are no hosts that a shipped row could name.
    guard = f'{{ reads = ["*claude-*"], hosts = ["{referee.base_url("anthropic").rpartition(":")[0]}:*"] }}'
    rows = "".join(
        f'[[rule]]\nid = "{host}"\nendpoint = "{host}"\nlike = "{like}"\nmodel = ["claude-sonnet-4-5*"]\n'
        f'since = "2026-01-01"\nsource = "here"\nguard = {guard}\n'
        for host, like in (("anthropic", "claude-manual"), ("vertex-claude", "vertex-claude-manual"))
    )
    with thinkback.open(":memory:", rules={"here.toml": rows}) as store:
        session = open_session(store, referee, "anthropic", model="claude-sonnet-4-5")
        session.set("reasoning.effort", "high")
        referee.push(Step("first", tool_calls=[Call("get_weather", {"city": "Oslo"})]))
        reply = session.chat(FIRST, tools=[DEFINITION])
        switch(session, referee, "vertex-claude", "claude-sonnet-4-5@20250929")
        session.generate({call.id: "sun" for call in reply.tool_calls})
        referee.push(Step("second", "Rain."))
        session.chat(SECOND)
        switch(session, referee, "anthropic", "claude-sonnet-4-5")
        session.chat(THIRD)
        sent = [part for message in messages(referee) for part in message["content"] if "signature" in part]
        assert (["first", "second"], []) == ([part["thinking"] for part in sent], refusals(referee))


def test_unknown_target_changes_nothing(store: SessionStore, referee: Referee) -> None:
    """The old one still holds."""
    session = open_session(store, referee)
    with pytest.raises(NotFoundError):
        session.use(endpoint="nowhere")
    with pytest.raises(TypeError):
        session.use(modell="x")
    assert "completed" == session.chat("Hello?").state


def test_key_does_not_follow_to_another_host(store: SessionStore, referee: Referee) -> None:
    """Key, headers and account belong to the host they were given for."""
    given: dict[str, Any] = {"headers": {"X-Secret": "for deepseek only"}, "account": "mine"}
    session = open_session(store, referee, **given)
    assert "for deepseek only" == session.explain(next=True).headers["X-Secret"]
    session.use(endpoint="kimi", model="kimi-k2.6")
    assert ("X-Secret" in session.explain(next=True).headers, session.target.account) == (False, "")
    with pytest.raises(CredentialError):
        session.wire.plan("Hello?")
    assert "https://api.moonshot.ai/v1" == session.target.base_url
    session = open_session(store, referee, **given)
    session.use(base_url="https://elsewhere.example/v1")
    assert "X-Secret" not in session.explain(next=True).headers
    with pytest.raises(CredentialError):
        session.wire.plan("Hello?")


def test_key_stays_with_its_host(store: SessionStore, referee: Referee) -> None:
    """Another model, another path, and what is said anew."""
    session = open_session(store, referee, headers={"X-Team": "a"})
    session.use(model="deepseek-v4-flash")
    session.use(base_url=referee.base_url("deepseek") + "/v1")
    headers = session.wire.plan("Hello?").headers
    assert (f"Bearer {KEY}", "a") == (headers["Authorization"], headers["X-Team"])
    session.use(headers={"X-Team": "b"}, api_key="another-key")
    headers = session.wire.plan("Hello?").headers
    assert ("Bearer another-key", "b") == (headers["Authorization"], headers["X-Team"])
    named = store.session("named", endpoint="deepseek", model="m", api_key=KEY)
    named.use(base_url="https://api.deepseek.com/beta")
    assert f"Bearer {KEY}" == named.wire.plan("Hello?").headers["Authorization"]


def test_setting_of_another_endpoint_does_not_leak(store: SessionStore, referee: Referee) -> None:
    """An effort that the new endpoint cannot say is reported instead of sent."""
    session = open_session(store, referee)
    session.set("reasoning.effort", "max")
    assert {"reasoning_effort": "max"}.items() <= session.explain(next=True).params.items()
    switch(session, referee, "kimi", "kimi-k2-thinking")
    plan = session.explain(next=True)
    assert "reasoning_effort" not in plan.params
    assert ["reasoning.effort"] == [dropped.key for dropped in plan.dropped]


def test_base_url_with_a_password_is_refused(store: SessionStore, referee: Referee) -> None:
    """Base URLs are written to the log."""
    session = open_session(store, referee)
    session.use(base_url="https://user:hunter2@house.example/v1", api_key=KEY)
    with pytest.raises(SettingError) as caught:
        session.chat("Hello?")
    assert "hunter2" not in str(caught.value)
    assert [] == session.log()


def opaque(session: Session) -> set[bytes]:
    """The encrypted reasoning and the signatures of the log."""
    carriers = (carrier for commit in session.log() for carrier in getattr(commit.value, "carriers", ()))
    return {carrier.value.encode() for carrier in carriers if carrier.kind in ("encrypted", "thought_signature")}


def went(referee: Referee, values: set[bytes]) -> bool:
    """Whether one of ``values`` stands in the last request."""
    return any(value in referee.requests[-1].raw for value in values)


@pytest.mark.parametrize(
    ("host", "model", "mine", "theirs"),
    [
        ("openai", "gpt-5.4", {"account": "mine"}, {"account": "theirs"}),
        ("gemini", "gemini-3-pro", {"account": "mine"}, {"account": "theirs"}),
        ("openai", "gpt-5.4", {"headers": {"OpenAI-Organization": "a"}}, {"headers": {"OpenAI-Organization": "b"}}),
        ("gemini", "gemini-3-pro", {"headers": {"X-Organization-Id": "a"}}, {"headers": {"X-Organization-Id": "b"}}),
    ],
)
def test_what_one_account_minted_stays_away_from_another(
    store: SessionStore, referee: Referee, host: str, model: str, mine: dict[str, Any], theirs: dict[str, Any]
) -> None:
    """Who pays is known by name at both ends: what the one was given goes back to it, and never to the other."""
    session = open_session(store, referee, host, model=model, **mine)
    session.set("reasoning.effort", "high")
    session.chat(FIRST, tools=[get_weather])
    first = opaque(session)
    session.use(**theirs)
    session.chat(SECOND, tools=[get_weather])
    second = opaque(session) - first
    assert (False, True) == (went(referee, first), went(referee, second))
    session.use(**mine)
    session.chat(THIRD, tools=[get_weather])
    assert (True, False) == (went(referee, first), went(referee, second))
    assert [] == refusals(referee)
