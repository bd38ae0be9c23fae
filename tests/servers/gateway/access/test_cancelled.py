"""Who leaves while a key is looked up, its minute counted or its budget read: it ends, whenever that comes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from thinkback.errors import StoreError
from thinkback.servers.gateway.access.keys import Access
from thinkback.servers.gateway.access.limits import SharedMinutes
from thinkback.servers.gateway.access.spending import Spending
from thinkback.servers.gateway.grant import Budget, Grant, Limits
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.state import GatewayState

GRANT = Grant("k", limits=Limits(per_minute=1), budget=Budget(tokens=5))
TICKS = range(12)
"""Steps of the loop behind the answer of the database, at each of which the request leaves."""


class Held(Executor):
    """Does its work when it is told to, on the thread of the loop."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((future, partial(fn, *args, **kwargs)))
        return future

    def work(self, *, fails: bool) -> None:
        """All that waits, unless it was cancelled."""
        while self._waiting:
            future, work = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                if fails:
                    future.set_exception(StoreError("the database is gone"))
                else:
                    future.set_result(work())


def enter(office: GatewayState, executor: Executor, blind: bool) -> Coroutine[Any, Any, object]:
    return SharedMinutes(office, executor, blind=blind).enter(GRANT)


def check(office: GatewayState, executor: Executor, blind: bool) -> Coroutine[Any, Any, object]:
    return Spending(office, executor, blind=blind).check(GRANT)


def admit(office: GatewayState, executor: Executor, blind: bool) -> Coroutine[Any, Any, object]:
    return Access(office, executor, stale_for=float(blind)).admit("tb-a-key-that-nobody-has")


async def leave_at(begins: Callable[[Executor], Coroutine[Any, Any, object]], ticks: int, *, fails: bool) -> str:
    """What became of a request that leaves so many ``ticks`` of the loop behind the database's answer."""
    executor = Held()
    task = asyncio.get_running_loop().create_task(begins(executor))
    for _ in TICKS:
        await asyncio.sleep(0)
    if ticks:
        executor.work(fails=fails)
        for _ in range(ticks - 1):
            await asyncio.sleep(0)
    if task.done():
        task.exception()
        return "over before"
    task.cancel()
    await asyncio.wait({task})
    executor.work(fails=fails)
    return "left" if task.cancelled() else "went on"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[GatewayState]:
    """The gateway's own state, on a disk."""
    state = open_gateway_state(str(tmp_path))
    yield state
    state.close()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize("begins", [enter, check, admit])
def test_who_leaves_goes_no_further(
    office: GatewayState,
    begins: Callable[[GatewayState, Executor, bool], Coroutine[Any, Any, object]],
    blind: bool,
    fails: bool,
) -> None:
    """Also in the step of the loop in which the database answers."""

    async def all_of_them() -> list[str]:
        def begin(executor: Executor) -> Coroutine[Any, Any, object]:
            return begins(office, executor, blind)

        return [await leave_at(begin, ticks, fails=fails) for ticks in TICKS]

    found = asyncio.run(all_of_them())
    assert ("left", "over before") == (found[0], found[-1])
    assert "went on" not in found
