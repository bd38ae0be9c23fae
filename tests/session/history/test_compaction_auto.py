"""Checkpoints that a session makes by itself: where the context fills up, and where the provider says it is full."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

import thinkback
from tests.acceptance.hosts import OF, talk
from tests.session.chats import kinds, messages, open_session, refusals, roles, run
from tests.session.history.test_compaction import LONG, chatted, checkpoint, written
from thinkback.errors import ProviderError, Veto
from thinkback.model.commits import Compaction
from thinkback.model.deltas import Status
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import ErrorInStream, HttpError, Referee, Step

CONTEXT = 5_000
RULES = {
    "small.toml": f'[[model]]\nmodel = "deepseek-v4-pro"\nendpoint = "deepseek"\ncontext = {CONTEXT}\nsource = "us"\n'
}
FULL = (
    "This model's maximum context length is 5000 tokens. However, you requested 6000 tokens. Please reduce the length."
)
TOO_LONG = Step(fault=HttpError(400, {"error": {"message": FULL, "type": "invalid_request_error"}}))


@pytest.fixture
def small() -> Iterator[SessionStore]:
    """A log in memory, and a model whose context is small."""
    with thinkback.open(":memory:", rules=RULES) as opened:
        yield opened


def reasons(session: Session) -> list[str]:
    """Who asked for each checkpoint: the first word of its reason."""
    return [checkpoint(commit).reason.partition(":")[0] for commit in session.compaction.list()]


def full(session: Session, percent: int = 95) -> Session:
    """The session, talked to until that much of its context is full and nothing was done about it."""
    session.set("compaction.auto", False)
    for number in count():
        session.chat(f"{number}: {LONG}")
        if session.explain(next=True).counts.effective * 100 >= percent * CONTEXT:
            break
    session.unset("compaction.auto")
    return session


def states(deltas: list[Any]) -> list[str]:
    """What was said about the turn."""
    return [delta.state for delta in deltas if isinstance(delta, Status)]


def test_a_long_conversation_never_fills_its_context(small: SessionStore, referee: Referee) -> None:
    """Whatever is said, it goes on, below the limit; every checkpoint is in the log, and every word."""
    session = open_session(small, referee)
    sizes = []
    for number in range(30):
        session.chat(f"{number}: {LONG}")
        sizes.append(session.explain().counts.effective)
    assert max(sizes) < 0.9 * CONTEXT
    assert {"automatic"} == set(reasons(session))
    assert 30 == kinds(session).count("user")
    assert [] == refusals(referee)
    assert "0: Please keep this in mind" in messages(referee)[0]["content"]


def test_it_is_said_while_it_happens(small: SessionStore, referee: Referee) -> None:
    """Before the request goes out."""
    session = full(open_session(small, referee))
    assert ["filling", "compacting", "sending"] == states(list(session.stream("And now?")))


BOUND = {
    "bound.toml": RULES["small.toml"].replace("deepseek-v4-pro", OF["anthropic"].model).replace("deepseek", "anthropic")
}


def bound_and_full(opened: SessionStore, referee: Referee) -> Session:
    """A conversation of thoughts that are bound to what stood before them, in a context that is full."""
    return full(talk(opened, referee, OF["anthropic"]))


@pytest.mark.parametrize("strategy", ["deterministic", "model"])
def test_the_thoughts_that_it_costs_are_said_before(referee: Referee, strategy: str) -> None:
    """Once a checkpoint, by name, where reasoning is bound to its prefix; also where a model writes the summary."""
    with thinkback.open(":memory:", rules=BOUND) as opened:
        session = bound_and_full(opened, referee)
        session.set("compaction.strategy", strategy)
        if strategy == "model":
            referee.push(Step(text=written()))
        deltas = [delta for delta in session.stream("And now?") if isinstance(delta, Status)]
    said = [delta.state for delta in deltas]
    assert 1 == said.count("dropping_thoughts")
    assert said.index("dropping_thoughts") < len(said) - 1 - said[::-1].index("compacting") < said.index("sending")
    (lost,) = (delta.detail for delta in deltas if delta.state == "dropping_thoughts")
    assert "so they no longer go back" in lost
    assert [] == refusals(referee)


def test_a_program_that_sends_itself_is_warned_of_the_thoughts_that_it_costs(referee: Referee) -> None:
    """Where it plans its request."""
    with thinkback.open(":memory:", rules=BOUND) as opened:
        session = bound_and_full(opened, referee)
        with pytest.warns(UserWarning, match="compaction costs . thoughts"):
            session.wire.plan("And now?")
        assert 1 == len(session.compaction.list())


def test_switched_off_nothing_is_done(small: SessionStore, referee: Referee) -> None:
    """Neither by itself nor after a refusal, which is the provider's word then."""
    session = full(open_session(small, referee))
    session.set("compaction.auto", False)
    referee.push(TOO_LONG)
    with pytest.raises(ProviderError, match="maximum context length"):
        session.chat("And now?")
    assert [] == session.compaction.list()


def test_long_results_are_trimmed_in_a_loop(small: SessionStore, referee: Referee) -> None:
    """A turn of many calls stays below the limit, and the endpoint gets back all reasoning that it demands."""
    session = open_session(small, referee)

    def look(city: str) -> str:
        """The weather of a city, in great detail."""
        return f"{city}: rain. " * 260

    for _ in range(6):
        session.chat("How is the weather in Oslo?", tools=[look])
    assert {"automatic"} == set(reasons(session))
    assert "tool_results" in {checkpoint(commit).strategy for commit in session.compaction.list()}
    assert [] == refusals(referee)


def look(city: str) -> str:
    """The weather of a city, in great detail."""
    return f"{city}: rain. " * 900


def clock(city: str) -> str:
    """The local time of a city, in great detail."""
    return f"{city}: noon. " * 900


def test_reasoning_that_is_not_kept_is_held_over_a_checkpoint(referee: Referee) -> None:
    """An endpoint that demands it back in the turn under way gets it, also behind a checkpoint made in that turn."""
    with thinkback.open(":memory:", rules=RULES, commit_reasoning=False) as store:
        session = open_session(store, referee)
        with pytest.warns(match="not kept"):
            session.chat("How is the weather in Oslo, then the time in Rome?", tools=[look, clock])
        at = kinds(session).index("compaction")
        assert ["provider_usage", "tool_result"] == kinds(session)[at - 2 : at]
    assert ["user", "user", "assistant", "tool"] == roles(referee)
    assert "step 2." in messages(referee)[2]["reasoning_content"]
    assert [] == refusals(referee)


def test_a_refusal_as_too_long_is_answered_by_sending_less(store: SessionStore, referee: Referee) -> None:
    """Visibly, with fewer turns each time, until it fits; the size of the context need not be known."""
    session = chatted(store, referee, 12)
    referee.push(TOO_LONG, TOO_LONG)
    stream = session.stream("And now?")
    assert ["sending", "compacting", "sending", "compacting", "sending"] == states(list(stream))
    assert "completed" == stream.reply.state
    assert ["overflow", "overflow"] == reasons(session)
    sizes = [len(exchange.raw) for exchange in referee.requests[-3:]]
    assert sizes == sorted(set(sizes), reverse=True)


def test_at_most_three_times_in_a_turn(store: SessionStore, referee: Referee) -> None:
    """Then it is the provider's word, and the next turn may go on from there."""
    session = chatted(store, referee, 12)
    referee.push(*[TOO_LONG] * 4)
    with pytest.raises(ProviderError, match="maximum context length"):
        session.chat("And now?")
    assert ["overflow"] * 3 == reasons(session)
    session.chat("And now?")
    assert [] == refusals(referee)


def test_a_refusal_inside_the_stream_is_answered_too(store: SessionStore, referee: Referee) -> None:
    """Responses say it there."""
    session = talk(store, referee, OF["openai-responses"])
    for number in range(8):
        session.chat(f"{number}: {LONG}")
    fault = ErrorInStream("Your input exceeds the context window of this model.", "context_length_exceeded", after=0)
    referee.push(Step(fault=fault))
    assert "completed" == session.chat("And now?").state
    assert ["overflow"] == reasons(session)
    assert [] == refusals(referee)


def test_a_program_may_refuse_what_nobody_asked_for(small: SessionStore, referee: Referee) -> None:
    """The turn goes on without it."""
    session = open_session(small, referee)
    seen: list[Compaction] = []

    def veto(found: Compaction) -> None:
        seen.append(found)
        raise Veto("never")

    session.on("pre_compact", veto)
    full(session).chat("And now?")
    assert [] == session.compaction.list()
    assert ["automatic"] == [found.reason.partition(":")[0] for found in seen]


def test_after_an_attempt_in_vain_it_rests_over_restarts(tmp_path: Any, referee: Referee) -> None:
    """The log says that there was one, to whoever opens it."""
    counts: list[int] = []
    notes: list[str] = []
    for words in (LONG * 16, "Hi", "Ho", "Hey"):
        with thinkback.open(tmp_path / "log.db", rules=RULES) as store:
            session = open_session(store, referee, name="talk")
            session.chat(words)
            made = session.compaction.list()
            counts.append(len(made))
            notes.append(checkpoint(made[0]).note)
    assert [1, 1, 1, 2] == counts
    assert {"nothing was done: there is nothing left to take"} == set(notes)


def test_programs_with_their_own_http_get_the_same(small: SessionStore, referee: Referee) -> None:
    """A plan behind a checkpoint, and after a refusal as too long a shorter one."""
    session = full(open_session(small, referee), 75)
    plan = session.wire.plan("And now?")
    body = json.dumps({"error": {"message": FULL, "type": "invalid_request_error"}})
    with pytest.raises(ProviderError) as caught:
        session.wire.ingest(body, 400)
    assert (True, False) == (caught.value.details["repaired"], caught.value.details["retryable"])
    assert len(bytes(session.wire.plan())) < len(bytes(plan))
    assert "overflow" == reasons(session)[-1]


def test_a_plan_is_made_behind_a_checkpoint(small: SessionStore, referee: Referee) -> None:
    """One that a program asks for by itself."""
    session = full(open_session(small, referee))
    plan = session.wire.plan("And now?")
    assert ["automatic"] == reasons(session)
    assert plan.counts.effective < 0.7 * CONTEXT


def asking(store: SessionStore, referee: Referee) -> Session:
    """A session whose next turn begins with a summary by a model."""
    session = full(open_session(store, referee))
    session.set("compaction.strategy", "model")
    return session


def test_a_model_may_write_what_nobody_asked_for(small: SessionStore, referee: Referee) -> None:
    """Before the turn begins, and it is said."""
    session = asking(small, referee)
    referee.push(Step(text=written()))
    deltas = list(session.stream("And now?"))
    assert ["compacting", "compacting", "sending"] == states(deltas)
    assert ("model", ["automatic"]) == (checkpoint(session.compaction.list()[0]).strategy, reasons(session))
    assert "They spoke of a fox." in messages(referee)[0]["content"]
    assert "user" == roles(referee)[-1]


def test_a_model_may_do_so_with_asyncio(small: SessionStore, referee: Referee) -> None:
    """The same, told before the first word."""
    session = asking(small, referee)
    referee.push(Step(text=written()))

    async def listen() -> list[Any]:
        return [delta async for delta in session.aio.stream("And now?")]

    assert ["compacting", "compacting", "sending"] == states(run(listen()))
    assert "model" == checkpoint(session.compaction.list()[0]).strategy
    run(session.aio.chat("Thanks."))
    assert [] == refusals(referee)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_without_a_model_to_ask_the_log_alone_has_to_do(
    small: SessionStore, referee: Referee, monkeypatch: pytest.MonkeyPatch, *, asynchronous: bool
) -> None:
    """No key, no such endpoint: the turn goes on, and a note says why."""
    monkeypatch.delenv("MOONSHOT_API_KEY", raising=False)
    session = asking(small, referee)
    session.set("compaction.model", "kimi/kimi-k2.6")
    if asynchronous:
        run(session.aio.chat("And now?"))
    else:
        session.chat("And now?")
    made = checkpoint(session.compaction.list()[0])
    assert ("deterministic", "kimi/kimi-k2.6") == (made.strategy, made.model)
    assert "could not be asked for a summary" in made.note


def test_a_program_may_refuse_the_model_too(small: SessionStore, referee: Referee) -> None:
    """It is said, and the turn goes on."""
    session = asking(small, referee)

    def veto(found: Compaction) -> None:
        raise Veto("never")

    session.on("pre_compact", veto)
    referee.push(Step(text=written()))
    deltas = list(session.stream("And now?"))
    said = [delta.detail for delta in deltas if isinstance(delta, Status) and delta.state == "compacting"]
    assert "no checkpoint was made: never" == said[-1]
    assert [] == session.compaction.list()


def test_a_model_is_not_asked_while_there_is_room(small: SessionStore, referee: Referee) -> None:
    """Nor where nothing would come of it: then the turn itself says so."""
    session = open_session(small, referee)
    session.set("compaction.strategy", "model")
    session.chat("Hi")
    session.chat(LONG * 14)
    session.chat("And now?")
    assert 3 == len(referee.requests)
    assert ["deterministic"] == [checkpoint(commit).strategy for commit in session.compaction.list()]
