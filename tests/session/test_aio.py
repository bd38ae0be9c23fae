"""The asyncio face: the same turns as the sync one, cancelled, closed and abandoned in every way."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from tests.session.chats import DEFINITION, PERSONAS, get_time, get_weather, kinds, open_session, refusals, statuses
from tests.session.test_stream import CUT, flaky
from thinkback.drive.asynchronous import to_the_end
from thinkback.drive.http import AsyncHttpx2Transport
from thinkback.errors import ProviderError, StoreError, ThinkbackError
from thinkback.model.commits import Commit, Request
from thinkback.model.deltas import ReasoningDelta, Status, TextDelta
from thinkback.referee import Call, HttpError, Referee, Stall, Step
from thinkback.session.aio import AsyncReplyStream
from thinkback.session.store import SessionStore

T = TypeVar("T")
SILENT = Step(reasoning="one two three", fault=Stall(60.0))


def run(work: Coroutine[Any, Any, T]) -> T:
    """``work`` in an event loop; anything left running is an error."""

    async def alone() -> T:
        result = await work
        closing = asyncio.all_tasks() - {asyncio.current_task()}
        _, left = await asyncio.wait(closing, timeout=5) if closing else (set(), set())
        assert set() == left
        return result

    return asyncio.run(alone())


@pytest.mark.parametrize("host", PERSONAS)
def test_same_script_leaves_the_same_log(store: SessionStore, host: str) -> None:
    """Sync and asyncio: equal replies, equal commits but for ids and times, equal bytes on the wire."""
    prompts = ("Weather in Oslo, then the time?", "And in both Bergen and Rome?", "Thank you.")
    with Referee() as one, Referee() as other:
        session = open_session(store, one, host, "sync")
        replies = [session.chat(prompt, tools=[get_weather, get_time]) for prompt in prompts]
        twin = open_session(store, other, host, "asyncio")

        async def talk() -> list[Any]:
            return [await twin.aio.chat(prompt, tools=[get_weather, get_time]) for prompt in prompts]

        again = run(talk())
        assert [exchange.raw for exchange in one.requests] == [exchange.raw for exchange in other.requests]
    assert [(reply.text, reply.reasoning, reply.state) for reply in replies] == (
        [(reply.text, reply.reasoning, reply.state) for reply in again]
    )
    assert _bare_log(session.log()) == _bare_log(twin.log())


def _bare_log(commits: list[Commit]) -> list[tuple[str, int, object]]:
    """Results of parallel calls come in any order: one after the other by their text."""
    ordered: list[tuple[str, int, object]] = []
    for kind, group in itertools.groupby(map(_bare, commits), key=lambda bare: bare[0]):
        same = list(group)
        ordered += sorted(same, key=str) if kind == "tool_result" else same
    return ordered


def _bare(commit: Commit) -> tuple[str, int, object]:
    """A commit without what no two logs have in common."""
    if isinstance(commit.value, Request):
        return (commit.kind, commit.index, commit.value.sent_digest)
    if commit.kind == "response":
        return (commit.kind, commit.index, "")
    return (commit.kind, commit.index, commit.value)


def test_stream_yields_deltas(store: SessionStore, referee: Referee) -> None:
    """They are the reply, and the reply is there at the end."""

    async def read() -> tuple[str, AsyncReplyStream]:
        stream = open_session(store, referee).aio.stream("Hello?")
        with pytest.raises(ThinkbackError, match="not over"):
            _ = stream.reply
        return "".join([delta.text async for delta in stream if isinstance(delta, TextDelta)]), stream

    text, stream = run(read())
    assert text == stream.reply.text


def test_coroutine_functions_are_tools(store: SessionStore, referee: Referee) -> None:
    """Two of them and a plain one run at the same time, in the caller's loop and in threads."""
    met: list[str] = []

    async def look(city: str) -> str:
        """Look."""
        met.append("begun")
        while len(met) < 2:
            await asyncio.sleep(0)
        return f"seen {city}"

    def think(city: str) -> str:
        """Think."""
        return f"thought of {city}"

    async def fail(city: str) -> str:
        """Fail."""
        raise ValueError(city)

    calls = [Call("look", {"city": "A"}), Call("look", {"city": "B"}), Call("think", {"city": "C"})]
    referee.push(Step(tool_calls=[*calls, Call("fail", {"city": "D"}), Call("look", {"town": "E"}), Call("peek")]))
    reply = run(open_session(store, referee).aio.chat("Look.", tools=[look, think, fail]))
    for told in ("look: seen A", "look: seen B", "think: thought of C", "ValueError: D", "do not fit", "no tool named"):
        assert told in reply.text


def test_tool_that_is_cancelled_from_within_is_a_result(store: SessionStore, referee: Referee) -> None:
    """A tool that cancels itself does not cancel the turn."""

    async def look(city: str) -> str:
        """Look."""
        raise asyncio.CancelledError

    reply = run(open_session(store, referee).aio.chat("Look at Oslo.", tools=[look]))
    assert "The tool was cancelled." in reply.text


def test_results_of_the_caller_continue_the_turn(store: SessionStore, referee: Referee) -> None:
    """As on the sync side, with the same refusals."""
    session = open_session(store, referee)

    async def talk() -> Any:
        reply = await session.aio.chat("Weather in Oslo?", tools=[DEFINITION])
        with pytest.raises(ThinkbackError, match="has no result yet"):
            await session.aio.generate()
        return await session.aio.generate({reply.tool_calls[0].id: "sun"})

    assert "sun" in run(talk()).text
    assert [200, 200] == statuses(referee)


def test_error_is_raised_at_the_end_of_the_stream(store: SessionStore, referee: Referee) -> None:
    """And the reply is there."""
    referee.push(Step(fault=HttpError(401, {"error": {"message": "who are you"}})))

    async def read() -> None:
        stream = open_session(store, referee).aio.stream("Hello?")
        with pytest.raises(ProviderError, match="who are you"):
            async for _ in stream:
                pass
        assert "failed" == stream.reply.state

    run(read())


def test_stream_that_is_never_iterated_does_nothing(store: SessionStore, referee: Referee) -> None:
    """Closing it, or leaving its context, is no interrupt; iterating it afterwards yields nothing."""
    session = open_session(store, referee)

    async def leave() -> None:
        stream = session.aio.stream("Hello?")
        await stream.aclose()
        assert [] == [delta async for delta in stream]
        async with session.aio.stream("Hello?"):
            pass

    run(leave())
    assert ([], []) == (session.log(), referee.requests)


@pytest.mark.parametrize("way", ["aclose", "async with", "another task", "cancel", "timeout"])
def test_stream_that_is_left_early_is_interrupted(store: SessionStore, referee: Referee, way: str) -> None:
    """What arrived is stored, marked incomplete; the next turn is valid and accepted."""
    referee.push(SILENT)
    session = open_session(store, referee)

    async def leave() -> AsyncReplyStream:
        stream = session.aio.stream("Hello?")
        silent = asyncio.Event()
        if way == "aclose":
            await _read(stream)
            await stream.aclose()
        elif way == "async with":
            async with stream:
                await _read(stream)
        elif way == "timeout":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await _drain(stream, silent)
        else:
            reader = asyncio.create_task(_drain(stream, silent))
            await silent.wait()
            if way == "cancel":
                reader.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reader
            else:
                await stream.aclose()
                assert stream.reply.state == "interrupted"
                await reader
                assert not reader.cancelled()
        return stream

    stream = run(leave())
    assert ("interrupted", CUT) == (stream.reply.state, kinds(session))
    assert "completed" == run(session.aio.chat("Again?")).state
    assert [200, 200] == statuses(referee)


async def _read(stream: AsyncReplyStream) -> None:
    async for delta in stream:
        if isinstance(delta, ReasoningDelta):
            return


async def _drain(stream: AsyncReplyStream, silent: asyncio.Event) -> None:
    async for delta in stream:
        if isinstance(delta, ReasoningDelta):
            silent.set()


def test_abandoned_stream_is_interrupted(store: SessionStore, referee: Referee) -> None:
    """Nobody holds it: the event loop closes it, and the next turn waits for that."""
    referee.push(SILENT, SILENT)
    session = open_session(store, referee)

    async def alone() -> list[str]:
        await _read(session.aio.stream("Hello?"))
        gc.collect()
        while session._under_way()[1].is_running:
            await asyncio.sleep(0)
        return kinds(session)

    assert CUT == run(alone())

    async def followed() -> None:
        await _read(session.aio.stream("Hello?"))
        assert "completed" == (await session.aio.chat("Again?")).state

    run(followed())
    assert [*CUT, *CUT, "user"] == kinds(session)[:11]


def test_held_stream_is_ended_by_the_next_turn(store: SessionStore, referee: Referee) -> None:
    """Of either face."""
    referee.push(SILENT, Step(text="one"), SILENT, Step(text="two"))
    session = open_session(store, referee)

    async def follow() -> None:
        stream = session.aio.stream("Hello?")
        await _read(stream)
        assert "completed" == (await session.aio.chat("Again?")).state
        assert "interrupted" == stream.reply.state
        sync = session.stream("Hello?")
        deltas = iter(sync)
        assert [next(deltas), next(deltas)]
        assert "completed" == (await session.aio.chat("Again?")).state
        assert "interrupted" == sync.reply.state

    run(follow())


def test_second_turn_at_the_same_time_is_refused(store: SessionStore, referee: Referee) -> None:
    """From another task, and from the sync side."""
    referee.push(SILENT)
    session = open_session(store, referee)

    async def twice() -> None:
        silent = asyncio.Event()
        stream = session.aio.stream("Hello?")
        reader = asyncio.create_task(_drain(stream, silent))
        await silent.wait()
        with pytest.raises(ThinkbackError, match="under way"):
            await session.aio.chat("Hello?")
        with pytest.raises(ThinkbackError, match="under way"):
            session.chat("Hello?")
        await stream.aclose()
        await reader

    run(twice())


@pytest.mark.parametrize("where", ["sending", "tool", "plain tool", "backoff"])
def test_cancelled_in_every_phase(store: SessionStore, referee: Referee, where: str) -> None:
    """The turn has its end in the log, and the next one is accepted."""
    entered, go_on = asyncio.Event(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def look(city: str) -> str:
        """Look."""
        entered.set()
        await asyncio.Event().wait()
        return city

    def look_long(city: str) -> str:
        """Look."""
        loops[0].call_soon_threadsafe(entered.set)
        go_on.wait(10)
        return city

    steps = {
        "sending": Step(fault=Stall(60.0, after=0)),
        "tool": Step(tool_calls=[Call("look", {"city": "Oslo"})]),
        "plain tool": Step(tool_calls=[Call("look_long", {"city": "Oslo"})]),
        "backoff": Step(fault=HttpError(429, "", {"retry-after": "60"})),
    }
    referee.push(steps[where])
    session = open_session(store, referee)

    async def cancel() -> None:
        loops.append(asyncio.get_running_loop())
        stream = session.aio.stream("Look.", tools=[look, look_long])

        async def read() -> None:
            async for delta in stream:
                if isinstance(delta, Status) and delta.state == "retrying":
                    asyncio.get_running_loop().call_soon(entered.set)

        reader = asyncio.create_task(read())
        while not (entered.is_set() or (where == "sending" and referee.requests)):
            await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert "interrupted" == stream.reply.state

    run(cancel())
    go_on.set()
    assert "interrupted" == kinds(session)[-1]
    assert "completed" == run(session.aio.chat("Again?", tools=[])).state
    assert [] == refusals(referee)


class Slow(AsyncHttpx2Transport):
    """Only so that a test may see that it was closed."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True
        await super().aclose()


def test_transport_of_the_caller_is_not_closed(store: SessionStore, referee: Referee) -> None:
    """What was given belongs to whoever gave it."""

    async def talk() -> bool:
        transport = Slow()
        session = open_session(store, referee, transport=transport)
        await session.aio.chat("Hello?")
        await session.aio.chat("Hello?")
        before = transport.closed
        await transport.aclose()
        return before

    assert not run(talk())


class Gate:
    """A store whose third append waits until it is let go: it is being written while the turn is cancelled."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.appends = 0

    def append(self, *step: Any) -> Any:
        self.appends += 1
        if self.appends == 2:
            self.entered.set()
            self.go_on.wait(10)
        return self._inner.append(*step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_append_is_shielded_from_cancellation(store: SessionStore, referee: Referee) -> None:
    """Cancelled, even twice, while the response is written: it is in the log, whole, before the caller hears of it."""
    session = open_session(store, referee)
    gate = Gate(store.log)
    store.log = gate

    async def cancel() -> None:
        chat = asyncio.create_task(session.aio.chat("Hello?"))
        await asyncio.to_thread(gate.entered.wait, 10)
        for _ in range(2):
            chat.cancel()
            await asyncio.sleep(0)
        assert not chat.done()
        gate.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await chat

    run(cancel())
    assert "completed" == kinds(session)[-1]
    assert (["user", "request", "response", "reasoning", "assistant"], []) == (kinds(session)[:5], store.fsck())


@pytest.mark.parametrize("at", [1, 2, 3])
def test_log_that_cannot_be_written_ends_the_turn_as_it_is(store: SessionStore, referee: Referee, at: int) -> None:
    """The error reaches the caller; the next turn mends what was left open."""
    session = flaky(store, referee, at, StoreError("disk full"))
    with pytest.raises(StoreError, match="disk full"):
        run(session.aio.chat("Weather in Oslo?", tools=[get_weather]))
    assert "completed" == run(session.aio.chat("Again?", tools=[get_weather])).state
    assert [] == refusals(referee)


def test_closed_store_says_so(store: SessionStore, referee: Referee) -> None:
    """A session outlives its store only as an error."""
    session = open_session(store, referee)
    run(session.aio.chat("Hello?"))
    store.close()
    with pytest.raises(StoreError):
        run(session.aio.chat("Hello?"))
    with pytest.raises(StoreError):
        session.chat("Hello?")


def test_many_sessions_of_one_store_run_at_once(store: SessionStore, referee: Referee) -> None:
    """Each its own turn; the log is sound."""

    async def all_at_once() -> list[Any]:
        sessions = [open_session(store, referee, name=f"chat {number}") for number in range(8)]
        return await asyncio.gather(
            *(session.aio.chat("Weather in Oslo?", tools=[get_weather]) for session in sessions)
        )

    assert {"completed"} == {reply.state for reply in run(all_at_once())}
    assert ([], {200}) == (store.fsck(), set(statuses(referee)))


def test_work_is_done_to_its_end_when_it_fails() -> None:
    """The failure of shielded work is told, not the cancellation."""

    async def fail(go_on: asyncio.Event) -> None:
        await go_on.wait()
        raise ValueError("the work's own")

    async def cancelled() -> None:
        go_on = asyncio.Event()
        task = asyncio.create_task(to_the_end(fail(go_on)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(ValueError, match="the work's own"):
            await task

    run(cancelled())
    with pytest.raises(ValueError, match="at once"):
        run(to_the_end(_at_once()))


async def _at_once() -> None:
    raise ValueError("at once")
