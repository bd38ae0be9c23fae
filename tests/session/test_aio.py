"""The asyncio face: the same turns as the sync one, cancelled, closed and abandoned in every way."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, TypeVar

import pytest

from tests.session.chats import (
    DEFINITION,
    PERSONAS,
    get_time,
    get_weather,
    open_session,
    refusals,
    run,
    statuses,
)
from tests.session.test_stream import flaky
from thinkback.drive.http import AsyncHttpx2Transport
from thinkback.errors import ProviderError, StoreError, ThinkbackError
from thinkback.model.commits import Commit, Request
from thinkback.model.deltas import TextDelta
from thinkback.session.aio import AsyncReplyStream
from thinkback.session.store import SessionStore
from thinkback_referee import Call, HttpError, Referee, Stall, Step

T = TypeVar("T")
SILENT = Step(reasoning="one two three", fault=Stall(60.0))


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
