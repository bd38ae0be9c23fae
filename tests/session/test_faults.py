"""What goes wrong on the way: stored as far as it came, told in the provider's words, and the next turn is valid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.session.chats import get_weather, kinds, open_session, refusals, roles, statuses
from thinkback.drive.http import Timeouts
from thinkback.errors import CredentialError, NetworkError, NotFoundError, PhaseTimeout, ProviderError, ThinkbackError
from thinkback.model.commits import Response
from thinkback.session.reply import Reply
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import (
    BAD_KEY,
    Call,
    CutAfterBytes,
    ErrorInStream,
    Fault,
    HttpError,
    MalformedJson,
    NoDone,
    Referee,
    Stall,
    Step,
)

Ask = Callable[..., Reply]


def sync_chat(session: Session, prompt: str, **options: Any) -> Reply:
    return session.chat(prompt, **options)


def async_chat(session: Session, prompt: str, **options: Any) -> Reply:
    import asyncio

    return asyncio.run(session.aio.chat(prompt, **options))


@pytest.fixture(params=[sync_chat, async_chat], ids=["sync", "asyncio"])
def chat(request: pytest.FixtureRequest) -> Ask:
    """Both faces of a session: they must not differ."""
    found: Ask = request.param
    return found


def step(fault: Fault | None, text: str = "three four") -> Step:
    return Step(reasoning="one two", text=text, fault=fault)


@pytest.mark.parametrize(
    ("fault", "state", "error"),
    [
        (CutAfterBytes(800), "partial_failed", NetworkError),
        (ErrorInStream("the model fell over"), "partial_failed", ProviderError),
        (ErrorInStream("the model fell over", event="error"), "partial_failed", ProviderError),
        (MalformedJson(), "partial_failed", ProviderError),
        (Stall(60.0), "timed_out", PhaseTimeout),
    ],
    ids=["cut", "error event", "named error event", "malformed", "stall"],
)
def test_response_that_breaks_off_is_kept_as_far_as_it_came(
    store: SessionStore, referee: Referee, chat: Ask, fault: Fault, state: str, error: type[ThinkbackError]
) -> None:
    """The first thought is in the log, marked incomplete; the next request leaves it out and is accepted."""
    referee.push(step(fault))
    session = open_session(store, referee)
    with pytest.raises(error) as caught:
        chat(session, "Hello?", timeouts=Timeouts(idle=0.2))
    assert True is caught.value.details["partial"]
    assert ["user", "request", "response", "reasoning"] == kinds(session)[:4]
    assert state == kinds(session)[-1]
    header = session.log()[2].value
    assert isinstance(header, Response)
    assert not header.complete
    assert "completed" == chat(session, "Again?").state
    assert (["user", "user"], [200, 200]) == (roles(referee), statuses(referee))
    assert [] == store.fsck()


def test_missing_last_marker_is_no_fault(store: SessionStore, referee: Referee, chat: Ask) -> None:
    """A stream that ends in good order behind its finish reason is whole."""
    referee.push(step(NoDone()))
    assert ("completed", "three four") == (
        (reply := chat(open_session(store, referee), "Hello?")).state,
        reply.text,
    )


def test_server_error_is_retried(store: SessionStore, referee: Referee, chat: Ask) -> None:
    """Once more, and it is answered; one response is stored."""
    referee.push(Step(fault=HttpError(500, "oops", {"retry-after": "0"})))
    session = open_session(store, referee)
    assert "completed" == chat(session, "Hello?").state
    assert ([500, 200], 1) == (statuses(referee), kinds(session).count("response"))


def test_rate_limit_is_waited_for(store: SessionStore, referee: Referee, chat: Ask) -> None:
    """As long as the provider says, as often as is allowed."""
    busy = Step(fault=HttpError(429, {"error": {"message": "slow down"}}, {"retry-after": "0"}))
    referee.push(busy, busy)
    session = open_session(store, referee)
    assert "completed" == chat(session, "Hello?").state
    referee.push(busy, busy)
    with pytest.raises(ProviderError, match="slow down"):
        chat(session, "Hello?", max_retries=1)
    assert [429, 429, 200, 429, 429] == statuses(referee)


def test_wrong_key_is_told_and_not_retried(store: SessionStore, referee: Referee, chat: Ask) -> None:
    """The provider's words, and where the key came from."""
    session = open_session(store, referee, api_key=BAD_KEY)
    with pytest.raises(ProviderError, match="Authentication Fails") as caught:
        chat(session, "Hello?")
    assert (401, ["user", "request", "failed"]) == (caught.value.details["status"], kinds(session))
    assert "the key was given by the program, as api_key=" in str(caught.value)
    assert [401] == statuses(referee)


def test_unknown_model_is_told(store: SessionStore, referee: Referee, chat: Ask) -> None:
    """With its name."""
    with pytest.raises(ProviderError, match="gpt-99"):
        chat(open_session(store, referee, model="gpt-99"), "Hello?")


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ({"endpoint": "deepseek", "model": "deepseek-v4-pro"}, CredentialError),
        ({"endpoint": "deepseek", "model": "", "api_key": "k"}, NotFoundError),
        ({"model": "m", "api_key": "k"}, NotFoundError),
        ({"endpoint": "azure", "model": "m", "api_key": "k"}, NotFoundError),
        ({"base_url": "ftp://host", "model": "m"}, ThinkbackError),
        ({"endpoint": "deepseek", "model": "m", "api_key": "k", "headers": {"X": "a\nb"}}, ThinkbackError),
    ],
    ids=["no key", "no model", "no endpoint", "no address", "no http", "bad header"],
)
def test_what_cannot_be_sent_is_refused_before_anything_is_stored(
    store: SessionStore, chat: Ask, place: dict[str, Any], error: type[ThinkbackError]
) -> None:
    """A question that never had a place to go is not in the log."""
    session = store.session("chat", **place)
    with pytest.raises(error):
        chat(session, "Hello?")
    with pytest.raises(error):
        session.wire.plan("Hello?")
    assert [] == session.log()


def test_unreachable_server_fails_the_turn(store: SessionStore, referee: Referee, chat: Ask) -> None:
    """A port where nobody listens."""
    session = open_session(store, referee)
    referee.close()
    with pytest.raises(NetworkError):
        chat(session, "Hello?", max_retries=0)
    assert ["user", "request", "failed"] == kinds(session)


def test_failure_behind_a_tool_keeps_what_was_done(store: SessionStore, referee: Referee, chat: Ask) -> None:
    """Call and result of the first step stay replayable; nothing is refused afterwards."""
    referee.push(
        Step(reasoning="Look.", tool_calls=[Call("get_weather", {"city": "Oslo"})]),
        step(CutAfterBytes(800)),
    )
    session = open_session(store, referee)
    with pytest.raises(NetworkError):
        chat(session, "Weather?", tools=[get_weather])
    assert "partial_failed" == kinds(session)[-1]
    assert "completed" == chat(session, "Go on.").state
    assert (["user", "assistant", "tool", "user"], []) == (roles(referee)[:4], refusals(referee))


def test_timeouts_of_the_session_hold_for_every_call(store: SessionStore, referee: Referee, chat: Ask) -> None:
    """Given where the session is opened; a call may have its own."""
    referee.push(step(Stall(60.0)))
    session = open_session(store, referee, timeouts=Timeouts(total=0.2))
    with pytest.raises(PhaseTimeout) as caught:
        chat(session, "Hello?")
    assert "total" == caught.value.details["phase"]
    assert "completed" == chat(session, "Hello?", timeouts=Timeouts()).state


def test_reply_of_a_failed_stream_has_what_arrived(store: SessionStore, referee: Referee) -> None:
    """The stream raises at its end; the reply is there all the same."""
    referee.push(step(ErrorInStream(after=3)))
    stream = open_session(store, referee).stream("Hello?")
    with pytest.raises(ProviderError):
        list(stream)
    assert ("partial_failed", True) == (stream.reply.state, bool(stream.reply.reasoning))


def test_refused_reasoning_is_repaired(store: SessionStore, referee: Referee, chat: Ask) -> None:
    """The provider's own text about missing reasoning: it goes back, and the turn is completed."""
    session = open_session(store, referee, model="deepseek-v3.2")
    chat(session, "Hello?")
    text = "The `reasoning_content` in the thinking mode must be passed back to the API."
    referee.push(Step(fault=HttpError(400, {"error": {"message": text, "type": "invalid_request_error"}})))
    assert "completed" == chat(session, "And?").state
    assert ["request", "repair", "request"] == [kind for kind in kinds(session) if kind in ("request", "repair")][-3:]
    assert [200, 400, 200] == statuses(referee)
