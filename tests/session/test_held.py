"""Reasoning that is not kept: not a byte of it in the file, whole for the turn under way, a stand-in afterwards."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import thinkback
from tests.conformance.moves import PLACES, TOOLS, Place, answered, options
from tests.session.chats import DEFINITION, get_weather, kinds, messages, open_session, refusals, roles
from thinkback.errors import NotFoundError
from thinkback.model.deltas import ReasoningDelta
from thinkback.session.store import SessionStore
from thinkback_referee import HttpError, Referee, Step

QUESTION = "Weather in Oslo?"


def bytes_of(place: Path) -> bytes:
    """Everything the store wrote."""
    return b"".join(file.read_bytes() for file in place.iterdir())


@pytest.mark.filterwarnings("ignore:readable reasoning is not kept")
@pytest.mark.parametrize("way", ["store", "call"])
@pytest.mark.parametrize("host", ["deepseek", "kimi", "groq", "mistral"])
def test_text_is_not_in_the_file(tmp_path: Path, referee: Referee, host: str, way: str) -> None:
    """The tool loop is accepted, the reply shows the thought, and the file has none of it; nor has the next turn."""
    options: dict[str, Any] = {"tools": [get_weather]} | ({"reasoning": False} if way == "call" else {})
    with thinkback.open(tmp_path / "chats.db", commit_reasoning=way == "call") as store:
        session = open_session(store, referee, host)
        reply = session.chat(QUESTION, **options)
        thoughts = [step.reasoning for step in reply.steps if step.reasoning]
        assert thoughts or host == "mistral"
        assert b"Note to self" not in bytes(session.explain(next=True))
        assert [] == refusals(referee)
        assert [] == store.fsck()
    stored = bytes_of(tmp_path)
    for thought in ("I need get_weather before", "The tools returned", "Note to self", "Time to answer"):
        assert thought.encode() not in stored


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.filterwarnings("ignore:readable reasoning is not kept")
@pytest.mark.parametrize("way", ["store", "call"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.dialect)
def test_conversation_goes_on(tmp_path: Path, referee: Referee, place: Place, way: str) -> None:
    """Every later question is answered at once: by a placeholder, as text, or without what is missing."""
    with thinkback.open(tmp_path / "chats.db", commit_reasoning=way == "call") as store:
        session = store.session("chat", **options(referee, place))
        session.set("reasoning.effort", "high")
        more: dict[str, Any] = {"reasoning": False} if way == "call" else {}
        for question in (QUESTION, "Thank you.", "What are both the weather and the time in Rome?", "Thank you."):
            reply = session.chat(question, tools=TOOLS, **more)
            assert None is reply.reasoning_commit
            answered(session)
    assert [] == refusals(referee)


@pytest.mark.filterwarnings("ignore:readable reasoning is not kept")
@pytest.mark.parametrize(("host", "model"), [("deepseek", "deepseek-v4-pro"), ("kimi", "kimi-k2-thinking")])
def test_placeholder_is_taken(store: SessionStore, referee: Referee, host: str, model: str) -> None:
    """The next question goes with a blank in the place of what is gone, and is accepted."""
    session = open_session(store, referee, host, model=model)
    session.chat(QUESTION, tools=[get_weather], reasoning=False)
    assert "completed" == session.chat("Thank you.", tools=[get_weather], reasoning=False).state
    assert " " == next(m["reasoning_content"] for m in messages(referee) if m.get("tool_calls"))
    assert [] == refusals(referee)


@pytest.mark.filterwarnings("ignore:readable reasoning is not kept")
def test_a_placeholder_that_is_refused_leads_to_the_next_step_of_the_rule(
    store: SessionStore, referee: Referee
) -> None:
    """Thinking is off for the turn, and the exchange keeps its calls and results; what was refused goes once."""
    session = open_session(store, referee)
    session.chat(QUESTION, tools=[get_weather], reasoning=False)
    said = {"error": {"message": "The `reasoning_content` in the thinking mode must be passed back to the API."}}
    referee.push(Step(fault=HttpError(400, said)), Step(text="Bye."))
    sent = len(referee.requests)
    reply = session.chat("Thank you.", tools=[get_weather], reasoning=False)
    assert 2 == len({exchange.raw for exchange in referee.requests[sent:]}) == len(referee.requests) - sent
    body = referee.requests[-1].body
    assert ("completed", "Bye.") == (reply.state, reply.text)
    assert {"type": "disabled"} == body["thinking"]
    assert ["user", "assistant", "tool", "assistant", "user"] == roles(referee)
    assert not any("reasoning_content" in message for message in messages(referee))
    assert "completed" == session.chat("And now?", tools=[get_weather]).state


def test_text_is_not_in_the_payloads(store: SessionStore, referee: Referee) -> None:
    """Also where the file is compressed and a search in its bytes would miss it."""
    session = open_session(store, referee)
    with pytest.warns(UserWarning, match="not kept"):
        session.chat(QUESTION, tools=[get_weather], reasoning=False)
    payloads = b"".join(commit.payload for commit in session.log())
    assert b"Note to self" not in payloads
    assert b"get_weather" in payloads


def test_open_turn_replays_it_and_the_next_has_the_placeholder(store: SessionStore, referee: Referee) -> None:
    """Inside the turn word for word; afterwards what the rule puts in its place."""
    session = open_session(store, referee)
    with pytest.warns(UserWarning, match="not kept"):
        reply = session.chat(QUESTION, tools=[get_weather], reasoning=False)
    first = reply.steps[0].reasoning
    assert [first] == [m["reasoning_content"] for m in messages(referee) if m["role"] == "assistant"]
    assert [] == refusals(referee)
    later = [json.loads(message) for message in session.wire.plan("Thank you.", reasoning=False).messages]
    assert [" ", " "] == [message["reasoning_content"] for message in later if message["role"] == "assistant"]


def test_calls_of_the_caller_do_not_lose_it(store: SessionStore, referee: Referee) -> None:
    """While the program works out results the turn is not over; another process would get the placeholder."""
    session = open_session(store, referee)
    with pytest.warns(UserWarning, match="not kept"):
        reply = session.chat(QUESTION, tools=[DEFINITION], reasoning=False)
    held = reply.reasoning
    elsewhere = open_session(store, referee)
    plan = elsewhere.explain(next=True)
    assert b'"reasoning_content":" "' in bytes(plan)
    session.generate({reply.tool_calls[0].id: "sun"}, reasoning=False)
    assert [held] == [m["reasoning_content"] for m in messages(referee) if m["role"] == "assistant"]


def test_warning_says_so_once_and_points_at_the_caller(store: SessionStore, referee: Referee) -> None:
    """Once per session, whichever way it is asked, and never inside this package."""
    asks: list[Callable[[Any], object]] = [
        lambda session: session.chat("Hello?", reasoning=False),
        lambda session: list(session.stream("Hello?", reasoning=False)),
        lambda session: asyncio.run(session.aio.chat("Hello?", reasoning=False)),
    ]
    for at, ask in enumerate(asks):
        session = open_session(store, referee, name=f"chat {at}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask(session)
            ask(session)
        told = [found for found in caught if "not kept" in str(found.message)]
        assert 1 == len(told)
        assert Path(__file__) == Path(told[0].filename)
        assert "a placeholder will go instead" in str(told[0].message)


def test_endpoint_that_does_not_want_it_back_needs_no_warning(store: SessionStore, referee: Referee) -> None:
    """Warnings are errors in this suite."""
    open_session(store, referee, "groq").chat("Hello?", reasoning=False)
    open_session(store, referee, "deepseek", "v3", model="deepseek-v3.2").chat("Hello?", reasoning=False)


@pytest.mark.filterwarnings("ignore:readable reasoning is not kept")
def test_why_says_what_it_cannot_know(store: SessionStore, referee: Referee) -> None:
    """A request that carried what is gone cannot be built again; the reply had its decisions."""
    session = open_session(store, referee)
    reply = session.chat(QUESTION, tools=[get_weather], reasoning=False)
    assert ["field"] == [decision.action for decision in reply.decisions]
    with pytest.raises(NotFoundError, match="was not kept"):
        session.why()
    groq = open_session(store, referee, "groq", "groq")
    groq.chat(QUESTION, tools=[get_weather], reasoning=False)
    assert groq.chat("Thank you.", tools=[], reasoning=False).decisions == groq.why()


@pytest.mark.filterwarnings("ignore:readable reasoning is not kept")
def test_ingest_keeps_the_promise_too(store: SessionStore, referee: Referee) -> None:
    """The option of the plan holds for its response."""
    session = open_session(store, referee)
    session.wire.plan("Hello?", reasoning=False)
    body = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"Note to self"},"finish_reason":"stop"}]}\n\n'
    assert "Note to self" == session.wire.ingest(body).reasoning
    assert b"Note to self" not in b"".join(commit.payload for commit in session.log())
    assert ["user", "request", "response", "reasoning", "completed"] == kinds(session)


@pytest.mark.filterwarnings("ignore:readable reasoning is not kept")
def test_what_was_interrupted_is_not_kept_either(store: SessionStore, referee: Referee) -> None:
    """Half a thought is as private as a whole one."""
    referee.push(Step(reasoning="Note to self: a b c d", text="x"))
    session = open_session(store, referee)
    for delta in session.stream("Hello?", reasoning=False):
        if isinstance(delta, ReasoningDelta) and delta.text.startswith("Note"):
            break
    assert "interrupted" == kinds(session)[-1]
    assert b"Note" not in b"".join(commit.payload for commit in session.log())
