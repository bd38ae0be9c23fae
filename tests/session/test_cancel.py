"""Turns of the asyncio face that are cancelled, closed, abandoned: in every phase, from every side."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from tests.session.chats import kinds, open_session, refusals, run, statuses
from tests.session.test_stream import CUT
from thinkback.drive.shielded import to_the_end
from thinkback.errors import ThinkbackError
from thinkback.model.deltas import ReasoningDelta, Status
from thinkback.session.aio import AsyncReplyStream
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Call, HttpError, Referee, Stall, Step

SILENT = Step(reasoning="one two three", fault=Stall(60.0))


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
        while (driver := session.conversation.last_turn.driver) is not None and driver.is_running:
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


class Phases:
    """Tools that never end by themselves, and what tells that a turn has come so far."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.go_on = threading.Event()
        self.loop: asyncio.AbstractEventLoop | None = None

    async def look(self, city: str) -> str:
        """Look."""
        self.entered.set()
        await asyncio.Event().wait()
        return city

    def look_long(self, city: str) -> str:
        """Look."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.entered.set)
        self.go_on.wait(10)
        return city

    async def read(self, stream: AsyncReplyStream) -> None:
        """Iterate; the pause before a retry is a phase, too."""
        async for delta in stream:
            if isinstance(delta, Status) and delta.state == "retrying":
                asyncio.get_running_loop().call_soon(self.entered.set)

    async def cancel(self, session: Session, referee: Referee) -> None:
        """Cancel the turn once it is where it should be, or its request has arrived and is not answered."""
        self.loop = asyncio.get_running_loop()
        stream = session.aio.stream("Look.", tools=[self.look, self.look_long])
        reader = asyncio.create_task(self.read(stream))
        while not self.entered.is_set():
            if referee.requests and referee.requests[-1].step == STEPS["sending"]:
                break
            await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert "interrupted" == stream.reply.state


STEPS = {
    "sending": Step(fault=Stall(60.0, after=0)),
    "tool": Step(tool_calls=[Call("look", {"city": "Oslo"})]),
    "plain tool": Step(tool_calls=[Call("look_long", {"city": "Oslo"})]),
    "backoff": Step(fault=HttpError(429, "", {"retry-after": "60"})),
}


@pytest.mark.parametrize("where", STEPS)
def test_cancelled_in_every_phase(store: SessionStore, referee: Referee, where: str) -> None:
    """The turn has its end in the log, and the next one is accepted."""
    referee.push(STEPS[where])
    session, phases = open_session(store, referee), Phases()
    run(phases.cancel(session, referee))
    phases.go_on.set()
    assert "interrupted" == kinds(session)[-1]
    assert "completed" == run(session.aio.chat("Again?", tools=[])).state
    assert [] == refusals(referee)


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
    gate: Any = Gate(store.log)
    session.conversation.line._log = gate

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


def test_work_is_done_to_its_end_when_it_fails() -> None:
    """A cancellation is told, from the failure of the shielded work."""

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
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        assert isinstance(raised.value.__cause__, ValueError)

    run(cancelled())
    with pytest.raises(ValueError, match="at once"):
        run(to_the_end(_at_once()))


async def _at_once() -> None:
    raise ValueError("at once")
