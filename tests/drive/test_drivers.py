"""The two drivers where a session cannot bring them: lost commands, foreign threads."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest

from thinkback.drive.agenda import Agenda, answer
from thinkback.drive.asynchronous import AsyncDriver
from thinkback.drive.http import AsyncHttpx2Transport, Httpx2Transport, Timeouts
from thinkback.drive.line import Line
from thinkback.drive.sync import SyncDriver
from thinkback.drive.threads import in_thread
from thinkback.drive.tools import python_tool
from thinkback.errors import SettingError
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Compaction
from thinkback.model.deltas import TextDelta
from thinkback.stores import open_store
from thinkback.turn import events
from thinkback.turn.permissions import Verdict
from thinkback.turn.plan import History, Plan


class House:
    """A host that cannot plan."""

    def prepare(self) -> None:
        pass

    def build(self) -> Plan:
        raise SettingError("no plan")

    def review(self, subject: Plan | Compaction) -> str:
        return "not now"

    def permit(self, call: ToolCall) -> Verdict:
        return Verdict("deny")

    def next_place(self, reason: str) -> str:
        return f"away from {reason}"


HOST = House()


class Script:
    """A turn that asks for the given commands at its beginning, and ends when it is interrupted."""

    def __init__(self, *commands: events.Command) -> None:
        self._commands = list(commands)
        self.told: list[events.Event] = []

    def on(self, event: events.Event) -> list[events.Command]:
        self.told.append(event)
        if isinstance(event, events.Began):
            return self._commands
        return [events.Done(events.Outcome("interrupted", (), None))] if isinstance(event, events.Interrupt) else []


def sync_driver(turn: Any, *tools: Any) -> SyncDriver:
    known = {tool.tool.name: tool for tool in map(python_tool, tools)}
    return SyncDriver(
        turn, HOST, History(), Line(open_store(":memory:"), "s", "main"), Httpx2Transport(), known, Timeouts()
    )


def test_lost_command_is_an_error_and_no_deadlock() -> None:
    """A turn that waits for nothing is told so at once, by either driver."""
    with pytest.raises(RuntimeError, match="waits for nothing"):
        list(sync_driver(Script()).run())

    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:
            turn: Any = Script()
            driver = AsyncDriver(
                turn,
                HOST,
                History(),
                Line(open_store(":memory:"), "s", "main"),
                AsyncHttpx2Transport(),
                {},
                Timeouts(),
                executor,
            )
            with pytest.raises(RuntimeError, match="waits for nothing"):
                async for _ in driver.run():
                    pass
            assert ("interrupted", False) == (driver.outcome and driver.outcome.state, driver.is_running)

    asyncio.run(run())


def test_a_host_answers_or_fails() -> None:
    """Whatever it raises is an event; the turn decides what comes of it."""
    call = ToolCall("c", "look", "{}")
    assert events.Permitted("1", Verdict("deny"), 7) == answer(HOST, events.Permit("1", call), 7)
    assert events.Reviewed("2", "not now", 7) == answer(HOST, events.Review("2", Compaction("deterministic")), 7)
    assert events.PlaceChosen("3", "away from here", 7) == answer(HOST, events.NextPlace("3", "here"), 7)
    failed = answer(HOST, events.BuildRequest("4"), 7)
    assert isinstance(failed, events.Failed)
    assert ("4", "no plan") == (failed.id, str(failed.error))


def test_either_driver_answers_the_questions_of_a_turn() -> None:
    """In order, each with an event of its own."""
    asked = (events.BuildRequest("1"), events.NextPlace("2", "here"), events.Review("3", Compaction("deterministic")))
    done = events.Done(events.Outcome("completed", (), None))
    turns: list[Any] = [Script(*asked, done), Script(*asked, done)]
    list(sync_driver(turns[0]).run())

    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:
            line = Line(open_store(":memory:"), "s", "main")
            async for _ in AsyncDriver(
                turns[1], HOST, History(), line, AsyncHttpx2Transport(), {}, Timeouts(), executor
            ).run():
                pass

    asyncio.run(run())
    for turn in turns:
        assert [events.Began, events.Failed, events.PlaceChosen, events.Reviewed] == [type(told) for told in turn.told]


def test_cancel_is_performed_by_leaving() -> None:
    """The request that it names is not read any more; there is nothing else to do."""
    turn = Script(events.Cancel("r"), events.Done(events.Outcome("completed", (), None)))
    driver = sync_driver(turn)
    assert [] == list(driver.run())
    assert driver.outcome is not None
    assert "completed" == driver.outcome.state


def test_ctrl_c_that_a_tool_raises_reaches_the_caller() -> None:
    """A tool may ask for it; it is not told to the model."""

    def stop() -> None:
        raise KeyboardInterrupt

    turn = Script(events.RunTool("1", ToolCall("c", "stop", "{}")))
    driver = sync_driver(turn, stop)
    with pytest.raises(KeyboardInterrupt):
        list(driver.run())
    assert isinstance(turn.told[-1], events.Interrupt)


def test_interrupt_voids_what_was_not_begun() -> None:
    """Of the commands in the queue only appends and the end remain."""
    step: Any = None
    turn: Any = Script(
        events.Emit(TextDelta("a", 0)),
        events.RunTool("1", ToolCall("c", "stop", "{}")),
        events.Timer("2", 1.0),
        events.Append("3", step),
    )
    agenda = Agenda(turn)
    assert agenda.first() is None
    agenda.tell(events.Began(0))
    agenda.interrupt(0)
    found = []
    while (command := agenda.first()) is not None:
        found.append(type(command))
        agenda.done()
    assert [events.Append, events.Done] == found
    assert agenda.outcome is not None


def test_work_in_a_thread_gives_what_it_gives() -> None:
    """A result, or whatever it raised."""
    slots = threading.Semaphore(1)
    assert 42 == in_thread(lambda: 42, slots).result(10)

    def leave() -> None:
        raise SystemExit(3)

    assert isinstance(in_thread(leave, slots).exception(10), SystemExit)


def test_work_that_was_cancelled_in_time_never_begins() -> None:
    """While every slot is taken a call can be taken back."""
    slots = threading.Semaphore(0)
    begun: list[int] = []
    future = in_thread(lambda: begun.append(1), slots)
    assert future.cancel()
    slots.release()
    with pytest.raises(CancelledError):
        future.result(10)
    assert slots.acquire(timeout=10)
    assert [] == begun
