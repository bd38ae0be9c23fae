"""A control that cannot be sent is reported once, at the first request that it concerns."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from tests.session.chats import open_session
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee

TOLD = "reasoning.maxTokens = 500 is not sent: kimi has no way to say it for kimi-k2.6"


def told(act: Callable[[], object]) -> list[str]:
    """The warnings that ``act`` gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(one.message) for one in caught]


def kimi(store: SessionStore, referee: Referee) -> Session:
    """A session with a budget that its endpoint has no word for."""
    session = open_session(store, referee, "kimi")
    session.set("reasoning.maxTokens", 500)
    return session


def test_it_is_a_warning_once(store: SessionStore, referee: Referee) -> None:
    """Not again in the next turn, nor in the next run of the program; another value is another report."""
    session = kimi(store, referee)
    assert [TOLD] == told(lambda: session.chat("One?"))
    assert [] == told(lambda: session.chat("Two?"))
    assert [] == told(lambda: kimi(store, referee).chat("Three?"))
    session.set("reasoning.maxTokens", 600)
    assert [TOLD.replace("500", "600")] == told(lambda: session.chat("Four?"))


def test_looking_at_the_next_request_reports_nothing(store: SessionStore, referee: Referee) -> None:
    """``explain`` sends nothing, so the first request still has its report."""
    session = kimi(store, referee)
    assert [] == told(lambda: session.explain(next=True))
    assert [TOLD] == told(lambda: session.wire.plan("One?"))


def test_a_hook_gets_it_in_place_of_a_warning(store: SessionStore, referee: Referee) -> None:
    """A program with a surface of its own shows it there."""
    session, heard = kimi(store, referee), list[str]()
    session.on("notice", heard.append)
    assert [] == told(lambda: session.chat("One?"))
    assert [TOLD] == heard


def test_what_beats_the_default_to_reason_is_reported(store: SessionStore, referee: Referee) -> None:
    """The person learns that the model does not reason, and why."""
    session = open_session(store, referee, "anthropic", model="claude-opus-4-6")
    (said,) = told(lambda: session.chat("One?", params={"temperature": 0.5}))
    assert said.startswith("reasoning.enabled = true is not sent: the request has temperature = 0.5")


def test_what_is_sent_is_not_reported(store: SessionStore, referee: Referee) -> None:
    """An effort in the endpoint's own words, or the nearest of them, is no news."""
    session = open_session(store, referee)
    session.set("reasoning.effort", "xhigh")
    assert [] == told(lambda: session.chat("One?"))


def test_another_place_is_another_request(store: SessionStore, referee: Referee) -> None:
    """Where the endpoint changes, what it cannot say is reported there."""
    session = kimi(store, referee)
    told(lambda: session.chat("One?"))
    session.use(endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek"), api_key="sk-test")
    assert ["reasoning.maxTokens = 500 is not sent: deepseek has no way to say it for deepseek-v4-pro"] == told(
        lambda: session.chat("Two?")
    )
