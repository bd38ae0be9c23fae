"""The life of a stream: begun late, ended early, from inside a tool, from another thread, by Ctrl-C."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.session.chats import get_weather, kinds, messages, open_session, refusals, roles, statuses
from thinkback.errors import StoreError, ThinkbackError
from thinkback.log.protocol import MAIN, Store
from thinkback.model.commits import Commit, Head
from thinkback.model.deltas import ReasoningDelta, Status, TextDelta, ToolCallDelta
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, HttpError, Referee, Stall, Step

CUT = ["user", "request", "response", "reasoning", "interrupted"]


def test_deltas_tell_everything(store: SessionStore, referee: Referee) -> None:
    """Reasoning, calls, text and what the turn is doing; joined they are the reply."""
    stream = open_session(store, referee).stream("Weather in Oslo?", tools=[get_weather])
    deltas = list(stream)
    assert {ReasoningDelta, TextDelta, ToolCallDelta, Status} == {type(delta) for delta in deltas}
    texts = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    thoughts = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert texts == stream.reply.text
    assert thoughts == "".join(step.reasoning or "" for step in stream.reply.steps)
    assert ["sending", "tool_started", "tool_finished", "sending"] == (
        [delta.state for delta in deltas if isinstance(delta, Status)]
    )


def test_stream_that_is_never_iterated_does_nothing(store: SessionStore, referee: Referee) -> None:
    """Nothing is stored, nothing sent, closing it is no interrupt."""
    session = open_session(store, referee)
    stream = session.stream("Hello?")
    stream.close()
    with session.stream("Hello?") as other, pytest.raises(ThinkbackError, match="not over"):
        _ = other.reply
    assert ([], []) == (session.log(), referee.requests)


def test_reply_is_there_when_the_turn_is_over(store: SessionStore, referee: Referee) -> None:
    """Not before; iterating a second time yields nothing more."""
    stream = open_session(store, referee).stream("Hello?")
    deltas = iter(stream)
    next(deltas)
    with pytest.raises(ThinkbackError, match="not over"):
        _ = stream.reply
    assert list(deltas)
    assert ("completed", []) == (stream.reply.state, list(stream))


@pytest.mark.parametrize("way", ["close", "with", "break"])
def test_stream_that_is_left_early_is_interrupted(store: SessionStore, referee: Referee, way: str) -> None:
    """What arrived is stored, marked incomplete; the next turn is valid and accepted."""
    referee.push(Step(reasoning="one two three", text="four", fault=Stall(60.0)))
    session = open_session(store, referee)
    stream = session.stream("Hello?")
    if way == "with":
        with stream:
            read_to_reasoning(stream)
    else:
        read_to_reasoning(stream)
    if way == "close":
        stream.close()
    assert ("interrupted", CUT) == (stream.reply.state, kinds(session))
    assert "completed" == session.chat("Again?").state
    assert (["user", "user"], [200, 200]) == (roles(referee), statuses(referee))


def read_to_reasoning(stream: Any) -> None:
    for delta in stream:
        if isinstance(delta, ReasoningDelta):
            break


def test_stream_that_is_closed_before_the_request_sends_none(store: SessionStore, referee: Referee) -> None:
    """The first delta says that it is about to send; leaving there keeps it from doing so."""
    session = open_session(store, referee)
    for delta in session.stream("Hello?"):
        assert isinstance(delta, Status)
        break
    assert (["user", "request", "interrupted"], []) == (kinds(session), referee.requests)


def test_stream_that_is_closed_between_the_steps_is_valid(store: SessionStore, referee: Referee) -> None:
    """Before a tool runs: the call is recorded as interrupted."""
    session = open_session(store, referee)
    for delta in session.stream("Weather in Oslo?", tools=[get_weather]):
        if isinstance(delta, Status) and delta.state == "tool_started":
            break
    assert ["tool_result", "interrupted"] == kinds(session)[-2:]
    assert "completed" == session.chat("Again?").state
    assert "This call was interrupted; it has no result." == messages(referee)[2]["content"]
    assert [] == refusals(referee)


def test_abandoned_stream_is_ended_by_the_next_turn(store: SessionStore, referee: Referee) -> None:
    """An iterator that somebody still holds does not stand in the way."""
    referee.push(Step(reasoning="one two three", fault=Stall(60.0)))
    session = open_session(store, referee)
    stream = session.stream("Hello?")
    deltas = iter(stream)
    next(deltas)
    next(deltas)
    assert "completed" == session.chat("Again?").state
    assert "interrupted" == stream.reply.state
    assert CUT == kinds(session)[:5]
    assert [] == list(deltas)


def test_dropped_iterator_ends_the_turn(store: SessionStore, referee: Referee) -> None:
    """Nobody holds it: it is interrupted at once."""
    referee.push(Step(reasoning="one two three", fault=Stall(60.0)))
    session = open_session(store, referee)
    deltas = iter(session.stream("Hello?"))
    assert [next(deltas), next(deltas)]
    del deltas
    gc.collect()
    assert CUT == kinds(session)


def test_exception_of_the_reader_ends_the_turn(store: SessionStore, referee: Referee) -> None:
    """With ``with`` the turn is over when the exception leaves it."""
    session = open_session(store, referee)

    def read() -> None:
        with session.stream("Hello?") as stream:
            for delta in stream:
                if isinstance(delta, ReasoningDelta):
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert "interrupted" == kinds(session)[-1]


def test_turn_inside_a_tool_of_the_same_session_is_refused(store: SessionStore, referee: Referee) -> None:
    """The tool is told so; the same session opened a second time may be asked."""
    session = open_session(store, referee)
    other = open_session(store, referee, name="other")

    def look(city: str) -> str:
        """The weather of a city, from this very session."""
        return session.chat(city).text

    reply = session.chat("Weather in Oslo?", tools=[look])
    assert "ThinkbackError: a turn of this session is under way" in reply.text

    def look_elsewhere(city: str) -> str:
        """The weather of a city, from another session."""
        return other.chat(city).text

    assert 'You said: "Rome"' in session.chat("Weather in Rome?", tools=[look_elsewhere]).text


def test_turn_from_another_thread_is_refused(store: SessionStore, referee: Referee) -> None:
    """While one runs; closing it from there is refused, too."""
    inside, go_on = threading.Event(), threading.Event()

    def look(city: str) -> str:
        """The weather of a city, later."""
        inside.set()
        go_on.wait(10)
        return city

    session = open_session(store, referee)
    stream = session.stream("Weather in Oslo?", tools=[look])
    runner = threading.Thread(target=lambda: list(stream))
    runner.start()
    assert inside.wait(10)
    for refused in (lambda: session.chat("Hello?"), stream.close, lambda: session.wire.plan("Hello?")):
        with pytest.raises(ThinkbackError, match="under way"):
            refused()
    go_on.set()
    runner.join()
    assert "completed" == stream.reply.state


def ctrl_c() -> None:
    """What the terminal does."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextmanager
def interrupting(after: float) -> Iterator[None]:
    """Ctrl-C from outside, ``after`` seconds from now."""
    timer = threading.Timer(after, ctrl_c)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_ctrl_c_while_the_server_is_silent(store: SessionStore, referee: Referee) -> None:
    """The interrupt is stored before it goes on to the caller."""
    referee.push(Step(reasoning="one two three", fault=Stall(60.0)))
    session = open_session(store, referee)
    stream = session.stream("Hello?")
    with pytest.raises(KeyboardInterrupt), interrupting(0.2):
        list(stream)
    assert (CUT, "interrupted") == (kinds(session), stream.reply.state)
    assert "completed" == session.chat("Again?").state


def test_ctrl_c_while_a_tool_runs(store: SessionStore, referee: Referee) -> None:
    """The call is recorded as interrupted; nobody waits for the tool, and its late result counts for nothing."""
    inside, go_on = threading.Event(), threading.Event()

    def look(city: str) -> str:
        """The weather of a city, later."""
        inside.set()
        ctrl_c()
        go_on.wait(10)
        return city

    session = open_session(store, referee)
    with pytest.raises(KeyboardInterrupt):
        session.chat("Weather in Oslo?", tools=[look])
    assert inside.is_set()
    go_on.set()
    assert ["tool_call", "provider_usage", "tool_result", "interrupted"] == kinds(session)[-4:]
    assert "completed" == session.chat("Again?", tools=[get_weather]).state
    assert [] == refusals(referee)


def test_ctrl_c_while_it_waits_to_send_again(store: SessionStore, referee: Referee) -> None:
    """The pause ends at once."""
    referee.push(Step(fault=HttpError(429, "", {"retry-after": "60"})))
    session = open_session(store, referee)
    with pytest.raises(KeyboardInterrupt), interrupting(0.2):
        session.chat("Hello?")
    assert ["user", "request", "interrupted"] == kinds(session)


class Flaky:
    """A store whose ``append`` is cut short: by Ctrl-C before or behind the write, or by a failure."""

    def __init__(self, inner: Store, at: int, raising: BaseException, *, written: bool) -> None:
        self._inner = inner
        self._at = at
        self._raising = raising
        self._written = written
        self.appends = 0

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str = MAIN) -> bool:
        self.appends += 1
        if self.appends != self._at:
            return self._inner.append(session, step, commits, expected, branch)
        if self._written:
            self._inner.append(session, step, commits, expected, branch)
        raise self._raising

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def flaky(store: SessionStore, referee: Referee, at: int, raising: BaseException, *, written: bool = False) -> Session:
    """A session over a store that fails at its ``at``-th append."""
    session = open_session(store, referee)
    session.conversation.line._log = Flaky(store.log, at, raising, written=written)
    return session


@pytest.mark.parametrize("written", [False, True], ids=["before the write", "behind it"])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_ctrl_c_while_the_log_is_written(store: SessionStore, referee: Referee, at: int, written: bool) -> None:
    """The step is in the log once, whatever was interrupted; the turn has its end."""
    session = flaky(store, referee, at, KeyboardInterrupt(), written=written)
    with pytest.raises(KeyboardInterrupt):
        session.chat("Weather in Oslo?", tools=[get_weather])
    found = kinds(session)
    assert ("interrupted" if at < 4 else "completed") == found[-1]
    assert (1, 1) == (found.count("user"), found.count("tools"))
    assert found.count("tool_call") == found.count("tool_result")
    assert [] == store.fsck()
    assert "completed" == session.chat("Again?").state
    assert [] == refusals(referee)


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_log_that_cannot_be_written_ends_the_turn_as_it_is(store: SessionStore, referee: Referee, at: int) -> None:
    """The error reaches the caller; the next turn mends what was left open."""
    session = flaky(store, referee, at, StoreError("disk full"))
    with pytest.raises(StoreError, match="disk full"):
        session.chat("Weather in Oslo?", tools=[get_weather])
    assert "completed" == session.chat("Again?", tools=[get_weather]).state
    assert ([], []) == (refusals(referee), store.fsck())


class Crashing:
    """A transport with a fault of its own."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @contextmanager
    def post(self, *request: Any) -> Iterator[Any]:
        with self._inner.post(*request) as response:
            response.body = self._broken(response.body)
            yield response

    def _broken(self, body: Iterator[bytes]) -> Iterator[bytes]:
        yield next(body)
        raise RuntimeError("a fault of the transport")

    def close(self) -> None:
        self._inner.close()


def test_foreign_exception_of_a_transport_keeps_what_arrived(store: SessionStore, referee: Referee) -> None:
    """Whatever breaks, the bytes that came are in the log before the exception goes on."""
    session = open_session(store, referee)
    session.use(transport=Crashing(store.transport(None, True)))
    with pytest.raises(RuntimeError, match="a fault of the transport"):
        session.chat("Hello?")
    assert ["user", "request", "response"] == kinds(session)[:3]
    assert "interrupted" == kinds(session)[-1]


def test_many_calls_run_a_few_at_a_time(store: SessionStore, referee: Referee) -> None:
    """More calls than threads are all run; no more than eight at once."""
    lock, running, most = threading.Lock(), 0, 0
    pair = threading.Barrier(2, timeout=10)

    def count(number: int) -> int:
        """Count."""
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        pair.wait()
        with lock:
            running -= 1
        return number

    referee.push(Step(tool_calls=[Call("count", {"number": number}) for number in range(20)]))
    session = open_session(store, referee)
    assert "completed" == session.chat("Count.", tools=[count]).state
    assert 20 == kinds(session).count("tool_result")
    assert 2 <= most <= 8


def test_tool_sees_the_callers_context(store: SessionStore, referee: Referee) -> None:
    """Context variables hold inside a tool, as they do in asyncio."""
    from contextvars import ContextVar

    who: ContextVar[str] = ContextVar("who", default="nobody")

    def look(city: str) -> str:
        """The weather of a city."""
        return who.get()

    who.set("the caller")
    assert "look: the caller" in open_session(store, referee).chat("Weather in Oslo?", tools=[look]).text
