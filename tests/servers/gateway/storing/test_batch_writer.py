"""Steps that are stored together, on a log that takes many at once and on one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from tests.stores.samples import user_step
from thinkback.errors import HeadMovedError, StoreError
from thinkback.log.protocol import AppendRequest, Sighting, Store
from thinkback.log.seal import seal
from thinkback.model.commits import Head
from thinkback.servers.gateway.storing.batch_writer import Batching, Writing
from thinkback.stores import open_store


@pytest.fixture(params=["sqlite", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A log of either kind."""
    store: Store = open_store(tmp_path / "log.db") if request.param == "sqlite" else open_store(":memory:")
    yield store
    store.close()


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    """Four threads."""
    with ThreadPoolExecutor(4) as threads:
        yield threads


def entry(number: int) -> AppendRequest:
    """The first step of a session."""
    step = user_step(f"step-{number}", f"Question {number}")
    return AppendRequest(f"session-{number}", f"name {number}", 7, step.id, seal(step, Head()), Head())


def lengths(log: Store, numbers: range) -> list[int]:
    return [len(log.read(f"session-{number}")) for number in numbers]


def test_every_step_is_stored_when_its_record_returns(log: Store, executor: ThreadPoolExecutor) -> None:
    """Whoever waits with it."""

    async def run() -> list[bool]:
        writing = Writing(lambda tenant: log, executor)
        first = await writing.record("a", entry(0))
        return [first, *await asyncio.gather(*(writing.record("a", entry(number)) for number in range(1, 600)))]

    assert [True] * 600 == asyncio.run(run())
    assert [len(entry(0).commits)] * 600 == lengths(log, range(600))


def test_steps_that_wait_share_a_transaction(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    """One is written at once, the others together after it."""
    log = open_store(tmp_path / "log.db")
    assert isinstance(log.recognition, Batching)
    batches: list[int] = []

    class Counting:
        """A log that is told how many come at once."""

        def __init__(self) -> None:
            self.recognition = self
            self.record = log.recognition.record

        def record_all(self, entries: list[AppendRequest]) -> list[bool | Exception]:
            batches.append(len(entries))
            assert isinstance(log.recognition, Batching)
            return log.recognition.record_all(entries)

    async def run() -> None:
        writing = Writing(lambda tenant: Counting(), executor)  # type: ignore[arg-type, return-value]
        await writing.record("a", entry(0))
        await asyncio.gather(*(writing.record("a", entry(number)) for number in range(1, 20)))

    asyncio.run(run())
    assert [1, 18] == batches
    log.close()


def test_step_that_fails_takes_nothing_of_the_others(log: Store, executor: ThreadPoolExecutor) -> None:
    """A head that has moved, a sighting of nothing, a step that is there already."""
    late = user_step("step-late", "And another one?")
    moved = AppendRequest("session-1", "name 1", 7, late.id, seal(late, Head()), Head())
    blind = msgspec.structs.replace(entry(3), sightings=[Sighting(b"s" * 16, b"d" * 16, "no response of it")])

    async def run() -> list[object]:
        writing = Writing(lambda tenant: log, executor)
        await writing.record("a", entry(0))
        await writing.record("a", entry(1))
        given = [entry(4), moved, entry(5), blind, entry(0), entry(6)]
        return await asyncio.gather(*(writing.record("a", one) for one in given), return_exceptions=True)

    told = asyncio.run(run())
    assert [True, True, False, True] == [told[at] for at in (0, 2, 4, 5)]
    assert [HeadMovedError, StoreError] == [type(told[1]), type(told[3])]
    assert [len(entry(0).commits)] * 5 == [*lengths(log, range(2)), *lengths(log, range(4, 7))]


def test_caller_that_leaves_disturbs_nobody(log: Store, executor: ThreadPoolExecutor) -> None:
    """What it brought is stored all the same, once."""

    async def run() -> list[bool]:
        writing = Writing(lambda tenant: log, executor)
        await writing.record("a", entry(0))
        tasks = [asyncio.ensure_future(writing.record("a", entry(number))) for number in range(1, 9)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.wait(tasks)
        return [task.cancelled() for task in tasks] + [await writing.record("a", entry(4))]

    assert [False] * 3 + [True] + [False] * 4 + [False] == asyncio.run(run())


def test_log_that_cannot_be_written_fails_for_all(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    """Each is told; so is one that comes when the threads are gone."""
    log = open_store(tmp_path / "log.db")

    async def run() -> list[object]:
        writing = Writing(lambda tenant: log, executor)
        await writing.record("a", entry(0))
        log.close()
        both = await asyncio.gather(*(writing.record("a", entry(n)) for n in (1, 2)), return_exceptions=True)
        executor.shutdown()
        return [*both, *await asyncio.gather(writing.record("a", entry(3)), return_exceptions=True)]

    assert [StoreError] * 3 == [type(told) for told in asyncio.run(run())]
