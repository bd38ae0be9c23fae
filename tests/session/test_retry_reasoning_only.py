"""Answers that are nothing but thought are asked for again, in every dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.hosts import every_dialect, talk
from tests.conformance.moves import Place
from tests.session.chats import get_weather, kinds, open_session, refusals, run
from thinkback.errors import ProviderError
from thinkback.model.commits import Annotation, Message
from thinkback.model.deltas import Delta, Status
from thinkback.session import retry_reasoning_only
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, HttpError, Referee, Stall, Step

SILENT = Step(reasoning="I keep it to myself.")
ANSWER = Step(reasoning="Well then.", text="Forty-two.")
both = pytest.mark.parametrize("asynchronous", [False, True])


def asked(session: Session, asynchronous: bool = False, **options: Any) -> tuple[Any, list[Delta]]:
    """(stream, deltas) of a question."""
    if not asynchronous:
        stream = retry_reasoning_only.stream(session, "Why?", **options)
        return stream, list(stream)

    async def all_of() -> tuple[Any, list[Delta]]:
        stream = retry_reasoning_only.stream_async(session, "Why?", **options)
        return stream, [delta async for delta in stream]

    return run(all_of())


def prompts(session: Session) -> list[str]:
    """What the log holds of users."""
    return [c.value.text for c in session.log() if c.kind == "user" and isinstance(c.value, Message)]


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@every_dialect
@both
def test_thought_alone_is_continued(store: SessionStore, referee: Referee, place: Place, asynchronous: bool) -> None:
    """Up to an answer; every endpoint takes the history with thoughts that led to nothing."""
    session = talk(store, referee, place)
    for step in (SILENT, SILENT, ANSWER):
        referee.push(step)
    stream, deltas = asked(session, asynchronous)
    assert ("Forty-two.", "Why?", "completed") == (stream.reply.text, stream.reply.prompt, stream.reply.state)
    assert [True, True] == [reply.is_reasoning_only for reply in stream.unanswered]
    assert 2 == sum(isinstance(delta, Status) and delta.state == "continuing" for delta in deltas)
    assert ["Why?", retry_reasoning_only.PROMPT, retry_reasoning_only.PROMPT] == prompts(session)
    referee.push(ANSWER)
    assert "completed" == session.chat("And then?").state
    assert [] == refusals(referee)
    assert [] == store.fsck()


def test_our_message_is_marked(store: SessionStore, referee: Referee) -> None:
    """Whoever reads the log sees that no person said it."""
    session = open_session(store, referee)
    referee.push(SILENT)
    referee.push(ANSWER)
    retry_reasoning_only.chat(session, "Why?")
    marks = [commit.value for commit in session.log() if isinstance(commit.value, Annotation)]
    assert [retry_reasoning_only.MARK] == [json.loads(mark.metadata) for mark in marks]
    at = kinds(session).index("annotation")
    assert "user" == kinds(session)[at - 1]
    assert retry_reasoning_only.PROMPT == session.log()[at - 1].value.text  # type: ignore[union-attr]


@both
def test_it_ends_after_three_times(store: SessionStore, referee: Referee, asynchronous: bool) -> None:
    """The reply then says that there was no answer, and why."""
    session = open_session(store, referee)
    for _ in range(5):
        referee.push(SILENT)
    stream, _ = asked(session, asynchronous)
    assert (True, "completed", 3) == (stream.reply.is_reasoning_only, stream.reply.state, len(stream.unanswered))
    assert "the model reasoned and gave no answer" == stream.reply.reason
    assert 4 == len(referee.requests)


def test_how_often_is_the_callers_choice(store: SessionStore, referee: Referee) -> None:
    """None at all too."""
    session = open_session(store, referee)
    for _ in range(3):
        referee.push(SILENT)
    assert retry_reasoning_only.chat(session, "Why?", times=0).is_reasoning_only
    assert retry_reasoning_only.chat(session, "Why?", times=1).is_reasoning_only
    assert 3 == len(referee.requests)


def test_a_budget_that_ran_out_while_thinking_says_so(store: SessionStore, referee: Referee) -> None:
    """The reply, the log and what is told before the next attempt."""
    session = open_session(store, referee)
    referee.push(Step(reasoning="On and on", finish="length"))
    referee.push(ANSWER)
    stream, deltas = asked(session)
    (unanswered,) = stream.unanswered
    assert "max_tokens_in_reasoning" == unanswered.outcome
    assert unanswered.reason.startswith("the output limit was reached while the model was still reasoning")
    told = [delta.detail for delta in deltas if isinstance(delta, Status) and delta.state == "continuing"]
    assert [f"{unanswered.reason} (1 of 3)"] == told
    ends = [commit.value.reason for commit in session.log() if commit.kind == "turn_ended"]  # type: ignore[union-attr]
    assert [unanswered.reason, ""] == ends


@pytest.mark.parametrize(
    "step",
    [ANSWER, Step(reasoning="Hm.", tool_calls=[Call("get_weather", {"city": "Oslo"})]), Step(text="Plain.")],
    ids=["answer", "call", "text"],
)
def test_what_says_something_is_not_continued(store: SessionStore, referee: Referee, step: Step) -> None:
    """Text, and calls that wait for the caller."""
    session = open_session(store, referee)
    referee.push(step)
    retry_reasoning_only.chat(session, "Why?", tools=[] if not step.tool_calls else [_definition()])
    assert 1 == len(referee.requests)


def _definition() -> dict[str, Any]:
    return {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


@pytest.mark.filterwarnings("ignore:reasoning.enabled = true is not sent:UserWarning")
def test_options_hold_for_every_attempt(store: SessionStore, referee: Referee) -> None:
    """Tools are run, parameters are sent."""
    session = open_session(store, referee)
    for step in (SILENT, Step(reasoning="Hm.", tool_calls=[Call("get_weather", {"city": "Oslo"})]), ANSWER):
        referee.push(step)
    reply = retry_reasoning_only.chat(session, "Why?", tools=[get_weather], params={"max_tokens": 99})
    assert ("Forty-two.", 2) == (reply.text, len(reply.steps))
    assert [99, 99, 99] == [exchange.body["max_tokens"] for exchange in referee.requests]


@both
def test_an_error_ends_it(store: SessionStore, referee: Referee, asynchronous: bool) -> None:
    """Of a later attempt as of the first."""
    session = open_session(store, referee)
    referee.push(SILENT)
    referee.push(Step(fault=HttpError(401, "no")))
    with pytest.raises(ProviderError):
        asked(session, asynchronous)
    assert "failed" == kinds(session)[-1]


@both
def test_a_stream_that_is_left_early_is_interrupted(store: SessionStore, referee: Referee, asynchronous: bool) -> None:
    """Also in the second attempt; the next turn is taken."""
    session = open_session(store, referee)
    referee.push(SILENT)
    referee.push(Step(reasoning="one two three", fault=Stall(60.0)))
    seen: list[str] = []

    def is_second(delta: Delta) -> bool:
        seen.append(getattr(delta, "state", "thought"))
        return "continuing" in seen and seen[-1] == "thought"

    if asynchronous:

        async def leave() -> str | None:
            async with retry_reasoning_only.stream_async(session, "Why?") as stream:
                async for delta in stream:
                    if is_second(delta):
                        break
            return stream.reply.state

        state = run(leave())
    else:
        with retry_reasoning_only.stream(session, "Why?") as stream:
            for delta in stream:
                if is_second(delta):
                    break
        state = stream.reply.state
    assert ("interrupted", "interrupted") == (state, kinds(session)[-1])
    assert "completed" == session.chat("And now?").state
    assert [] == refusals(referee)


def test_asyncio_has_the_same_in_one_call(store: SessionStore, referee: Referee) -> None:
    """``chat_async``."""
    referee.push(SILENT)
    referee.push(ANSWER)
    assert "Forty-two." == run(retry_reasoning_only.chat_async(open_session(store, referee), "Why?")).text
