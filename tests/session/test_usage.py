"""What a session used, and what its budget of reasoning does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import thinkback
from tests.session.chats import KEY, get_weather, open_session
from thinkback.errors import BudgetSpent
from thinkback.model.commits import Request
from thinkback.model.deltas import Status
from thinkback.model.plan import Control
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.turn.spending import spending
from thinkback_referee import Referee, Step, models_of


@pytest.fixture
def session(store: SessionStore) -> Iterator[Session]:
    """A session that has asked something, with a tool, of a model that counts its reasoning."""
    with Referee() as referee:
        opened = open_session(store, referee)
        opened.chat("What is the weather in Oslo?", tools=[get_weather])
        yield opened


def spent(session: Session) -> int:
    """Tokens of reasoning by the session's own account."""
    return session.usage.budget().spent


def controls(session: Session, key: str) -> list[Control]:
    """What the next request says of a key."""
    return [control for control in session.explain(next=True).controls if control.key == key]


def test_steps_and_turns_are_those_of_the_replies(session: Session) -> None:
    """The log alone says what the reply said."""
    reply = session.chat("And in Bergen?")
    first, second = session.usage.turns()
    assert reply.tokens == second.use
    assert (2, "completed", "completed") == (second.turn, first.state, second.state)
    steps = session.usage.steps()
    assert [*first.steps, *second.steps] == list(steps)
    headers = [commit.hash for commit in session.log() if commit.kind == "response"]
    assert headers == [step.commit for step in steps]
    assert spending(steps) == session.usage.total() == session.usage.family()
    assert {"deepseek-v4-pro"} == set(session.usage.total().models)


def test_the_cost_is_what_the_provider_reports(store: SessionStore, referee: Referee) -> None:
    """Of a stream and of a whole body; what is not known of the rest is said."""
    url, model = referee.base_url("openrouter"), models_of("openrouter")[0]
    session = store.session("routed", endpoint="openrouter", model=model, base_url=url, api_key=KEY)
    for streams, cost in ((True, 0.0125), (False, 0.25)):
        referee.push(Step(text="Yes.", usage={"cost": cost}))
        session.chat("Hello?", stream=streams)
    referee.push(Step(text="Yes."))
    session.chat("Hello?")
    assert (0.2625, 2, 1) == session.usage.cost()
    assert (0.0125, 1, 0) == session.usage.cost(session.usage.steps()[:1])


def test_the_context_is_what_the_next_request_will_carry(session: Session) -> None:
    """As the plan counts it, also where a spent budget would refuse the request."""
    session.set("reasoning.budget", 1)
    session.set("reasoning.budgetAction", "stop")
    session.set("reasoning.effort", "low")
    counts = session.usage.context(settings={"reasoning.budgetAction": "stop"})
    assert 0 < counts.effective <= counts.raw


def test_a_fork_has_not_used_what_it_shares(session: Session, store: SessionStore) -> None:
    """It sees its steps, and counts its own; a family counts each once, and so does the store."""
    before = session.usage.total()
    fork = session.branches.fork("fork")
    assert (0, 2) == (fork.usage.total().steps, len(fork.usage.steps()))
    assert 0 == spent(fork)
    fork.chat("And in Bergen?")
    own = fork.usage.total()
    assert (before, 2) == (session.usage.total(), own.steps)
    assert own.use.reasoning == spent(fork)
    family = session.usage.family()
    assert family == fork.usage.family()
    assert before.steps + own.steps == family.steps
    told = store.usage()
    assert ({"chat": before, "fork": own}, family) == (told.sessions, told.total)


def test_what_was_left_behind_was_used_all_the_same(session: Session, store: SessionStore) -> None:
    """Branches count together, also where none leads any more; a merge does not count a response again."""
    session.branches.branch("side")
    session.branches.switch("side")
    session.chat("And in Bergen?")
    side = session.usage.total()
    assert side.use.reasoning == spent(session)
    session.branches.switch("main")
    session.commit("by hand")
    session.branches.merge("side")
    assert side == session.usage.total()
    session.branches.reset("HEAD^1")
    assert side == session.usage.total() == store.usage().total
    assert side.use.reasoning == spent(session)
    again = store.session("chat", base_url="https://api.example.com/v1", model="m")
    assert side.use.reasoning == spent(again)


def test_the_budget_follows_the_turns(session: Session) -> None:
    """Commit by commit, and the same as counted from the beginning."""
    for _ in range(3):
        session.chat("And now?")
        assert session.usage.total().use.reasoning == spent(session)


def test_another_program_spends_from_the_same_budget(session: Session, store: SessionStore) -> None:
    """What it stored on this branch is seen with the next request."""
    before = spent(session)
    place = session.conversation.configure().place
    other = store.session("chat", base_url=place.base_url, endpoint="deepseek", model=place.model, api_key="sk-other")
    other.chat("And now?")
    assert before < spent(session) == spent(other)


def test_a_warning_comes_with_the_request(session: Session) -> None:
    """As a delta and as a control; nothing else changes."""
    session.set("reasoning.budget", spent(session))
    session.set("reasoning.effort", "high")
    with session.stream("And now?") as stream:
        told = [delta.detail for delta in stream if isinstance(delta, Status) and delta.state == "budget"]
    assert ["100 % of the budget is spent"] == [detail.partition(":")[0] for detail in told]
    assert ["emitted"] == [control.state for control in controls(session, "reasoning.effort")]


def test_effort_goes_down_with_what_is_spent(session: Session) -> None:
    """The record has the settings that the request was built by, so that it can be built again."""
    session.set("reasoning.budget", spent(session))
    session.set("reasoning.budgetAction", "step_down")
    session.set("reasoning.effort", "max")
    high = controls(session, "reasoning.effort")
    assert [("max", "suppressed"), ("high", "emitted")] == sorted(
        ((control.value, control.state) for control in high), reverse=True
    )
    reply = session.chat("And now?")
    assert reply.plan is not None
    records = [commit.value for commit in session.log() if isinstance(commit.value, Request)]
    assert ["high", "low"] == [record.settings["reasoning.effort"] for record in records[-2:]]
    assert session.explain().record().sent_digest == reply.plan.record().sent_digest


def test_a_spent_budget_is_refused_before_anything_is_stored(session: Session) -> None:
    """And goes on when it is raised, or for one call without reasoning."""
    session.set("reasoning.budget", spent(session))
    session.set("reasoning.budgetAction", "stop")
    stored = len(session.log())
    for ask in (lambda: session.chat("And now?"), lambda: session.wire.plan("And now?"), session.generate):
        with pytest.raises(BudgetSpent, match="100 %"):
            ask()
    assert stored == len(session.log())
    assert "completed" == session.chat("And now?", settings={"reasoning.budgetAction": "warn"}).state
    session.set("reasoning.budget", 10**6)
    assert "completed" == session.chat("And now?").state


def test_a_budget_that_is_spent_within_a_turn_ends_it(store: SessionStore) -> None:
    """After the tool's result is stored, so that nothing is lost."""
    with Referee() as referee:
        session = open_session(store, referee)
        session.set("reasoning.budget", 1)
        session.set("reasoning.budgetAction", "stop")
        with pytest.raises(BudgetSpent):
            session.chat("What is the weather in Oslo?", tools=[get_weather])
        assert ["tool_result", "turn_ended"] == [commit.kind for commit in session.log()][-2:]
        session.unset("reasoning.budget")
        assert "completed" == session.generate().state


def test_what_requests_are_built_by_is_stored_once(tmp_path: Path, referee: Referee) -> None:
    """However many sessions ask: the payload of a record ends with it."""
    with thinkback.open(tmp_path / "log.db") as store:
        for name in ("a", "b"):
            open_session(store, referee, name=name).chat("Hello?")
        records = [commit for name in ("a", "b") for commit in store.session(name).log() if commit.kind == "request"]
        assert all(isinstance(each.value, Request) and each.value.size and each.value.basis for each in records)
    with closing(sqlite3.connect(tmp_path / "log.db")) as db:
        assert [(2,)] == db.execute("SELECT uses FROM bases").fetchall()
