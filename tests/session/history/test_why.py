"""Why did it send that: decisions recomputed from the log and proved by the digest, also after reopening the file."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import thinkback
from tests.session.chats import PERSONAS, get_weather, kinds, open_session
from thinkback.errors import CorruptLogError, NotFoundError, ProviderError
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Draft, Request, Step
from thinkback.session.ids import new_id
from thinkback.session.store import SessionStore
from thinkback_referee import Call, HttpError, Referee
from thinkback_referee import Step as Scripted


@pytest.mark.filterwarnings("ignore:reasoning.enabled = true is not sent:UserWarning")
@pytest.mark.parametrize("host", PERSONAS)
def test_decisions_are_those_of_the_reply(tmp_path: Path, referee: Referee, host: str) -> None:
    """Now, and from a file that was closed and opened again without rules, settings or keys of that time."""
    path = tmp_path / "chats.db"
    with thinkback.open(path) as store:
        session = open_session(store, referee, host)
        session.chat("Weather in Oslo?", tools=[get_weather], settings={"reasoning.keepLast": 1})
        session.set("reasoning.includeInContext", True)
        reply = session.chat("And in Rome?", tools=[get_weather], params={"seed": 7, "max_tokens": 99})
        assert reply.decisions == session.why()
        sent = reply.plan
        assert sent is not None
        assert bytes(sent) == bytes(session.explain())
        assert bytes(sent) == referee.requests[-1].raw
        session.unset("reasoning.includeInContext")
    with thinkback.open(path) as store:
        again = store.session("chat")
        assert reply.decisions == again.why()
        assert bytes(sent) == bytes(again.explain())
        assert sent.settings == again.explain().settings


def test_next_request_is_told_without_storing_anything(store: SessionStore, referee: Referee) -> None:
    """Also without a key; options as for a call."""
    session = open_session(store, referee)
    session.chat("Weather in Oslo?", tools=[get_weather])
    before = kinds(session)
    session.use(api_key="")
    assert {"field"} == {decision.action for decision in session.why(next=True)}
    assert 9 == session.explain(next=True, params={"max_tokens": 9}).params["max_tokens"]
    assert "Authorization" not in session.explain(next=True).headers
    assert (before, 2) == (kinds(session), len(referee.requests))


def test_failed_request_is_explained_too(store: SessionStore, referee: Referee) -> None:
    """The one that was refused, not the one before it."""
    session = open_session(store, referee)
    session.chat("Hello?")
    referee.push(Scripted(fault=HttpError(404)))
    with pytest.raises(ProviderError):
        session.chat("And?")
    assert bytes(session.explain()) == referee.requests[-1].raw


def test_nothing_sent_is_told(store: SessionStore, referee: Referee) -> None:
    """An empty session has no last request."""
    with pytest.raises(NotFoundError, match="no request of this session"):
        open_session(store, referee).why()


def test_record_that_does_not_fit_is_told(store: SessionStore, referee: Referee) -> None:
    """The digest proves the decisions; where it does not, that is an error and not a guess."""
    session = open_session(store, referee)
    session.chat("Hello?", params={"seed": 7})
    log = session.log()
    record = next(commit.value for commit in log if isinstance(commit.value, Request))
    forged = msgspec.structs.replace(record, params='{"stream":true,"seed":8}')
    step = Step(new_id(), (Draft("request", forged),), 1)
    store.log.append(session.id, step.id, seal(step, head_of(log)), head_of(log))
    with pytest.raises(CorruptLogError, match="differs from the one that was sent"):
        session.why()


def test_record_without_its_data_is_told(store: SessionStore, referee: Referee) -> None:
    """Endpoint and rule of the time are part of the log; without them nothing can be built again."""
    session = open_session(store, referee)
    session.chat("Hello?")
    log = session.log()
    record = next(commit.value for commit in log if isinstance(commit.value, Request))
    lost = msgspec.structs.replace(record, basis="", basis_digest="0" * 64)
    step = Step(new_id(), (Draft("request", lost),), 1)
    store.log.append(session.id, step.id, seal(step, head_of(log)), head_of(log))
    with pytest.raises(CorruptLogError, match="is not in the log"):
        session.why()


def test_decisions_name_blocks_of_the_log(store: SessionStore, referee: Referee) -> None:
    """Each decision's block can be found, and its message is where it says."""
    session = open_session(store, referee)
    session.chat("Weather in Oslo?", tools=[get_weather])
    session.chat("And in Rome?")
    hashes = {commit.hash for commit in session.log()}
    plan = session.explain()
    for decision in session.why():
        assert decision.block in hashes
        assert decision.message < 0 or b"reasoning_content" in plan.messages[decision.message]


def test_every_earlier_request_is_rebuilt(store: SessionStore, referee: Referee) -> None:
    """Byte for byte, named by its record or by what its response brought, whatever was said about commits later."""
    session = open_session(store, referee)
    session.chat("Weather in Oslo?", tools=[get_weather])
    session.chat("And in Rome?")
    sent = [exchange.raw for exchange in referee.requests]
    for commit in session.log():
        if commit.kind == "user":
            session.annotate(commit.hash, "skip")
    records = [commit for commit in session.log() if commit.kind == "request"]
    assert sent == [bytes(session.why(record.hash[:12]).plan or b"") for record in records]
    brought = [commit for commit in session.log() if commit.kind in ("response", "tool_call", "assistant")]
    for commit in brought:
        plan = session.why(commit.hash).plan
        assert sent[[record.response for record in records].index(commit.response)] == bytes(plan or b"")


def test_reasoning_that_led_to_a_call_or_an_answer(store: SessionStore, referee: Referee) -> None:
    """Of its own response, and of the turn before it; a result has that of its call."""
    session = open_session(store, referee)
    referee.push(
        Scripted(reasoning="Look it up.", tool_calls=(Call("get_weather", {"city": "Oslo"}),)),
        Scripted(reasoning="It rains.", text="Rain."),
    )
    session.chat("Weather in Oslo?", tools=[get_weather])
    by_kind = {commit.kind: commit.hash for commit in session.log()}
    led = {kind: session.why(by_kind[kind]).reasoning for kind in ("tool_call", "tool_result", "assistant")}
    assert {
        "tool_call": ["Look it up."],
        "tool_result": ["Look it up."],
        "assistant": ["Look it up.", "It rains."],
    } == {kind: [commit.value.thought for commit in found] for kind, found in led.items()}  # type: ignore[union-attr]
    assert {"field"} == {decision.action for decision in session.why(by_kind["assistant"]).decisions}


def test_what_nobody_asked_for_says_so(store: SessionStore, referee: Referee) -> None:
    """Said by hand: the reasoning is known, the request is not."""
    session = open_session(store, referee)
    made = session.commit("42", kind="assistant")
    found = session.why(made.hash)
    assert (None, [], ()) == (found.plan, found.decisions, found.reasoning)
    assert "no request of this session produced it" in found.unknown
    with pytest.raises(NotFoundError, match="not part of a response"):
        session.why(session.commit("Why?").hash)


def test_commits_of_other_branches_are_explained(store: SessionStore, referee: Referee) -> None:
    """From their own line."""
    session = open_session(store, referee)
    session.chat("Hello?")
    answer = next(commit for commit in session.log() if commit.kind == "assistant")
    log = session.log()
    store.log.refs.create(session.id, "empty", head_of(log[:1]))
    session.conversation.line.branch = "empty"
    session.conversation.reload()
    assert 1 == len(session.log())
    assert referee.requests[0].raw == bytes(session.why(answer.hash).plan or b"")
