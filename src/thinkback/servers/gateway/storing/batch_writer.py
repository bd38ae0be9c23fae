"""Steps on their way into the logs: those that wait while a tenant's log is written to go into it together.

Promises: a step is on the disk when its ``record`` returns; steps that share a transaction still fail one by one. Must
not: be used from more than one event loop. Handing each step to a thread of its own would cost more than storing it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, Protocol, runtime_checkable

from thinkback.errors import StoreError
from thinkback.log.protocol import AppendRequest, Store

_AT_ONCE = 256


@runtime_checkable
class Batching(Protocol):
    """A log that takes many steps at once."""

    def record_all(self, entries: Sequence[AppendRequest]) -> list[bool | Exception]:
        """Store steps in one transaction: whether each is new, or why it cannot be stored."""
        ...


class _Waiting(NamedTuple):
    entry: AppendRequest
    stored: asyncio.Future[bool]


class Writing:
    """Stores the steps of one process, on threads of ``executor``."""

    def __init__(self, log: Callable[[str], Store], executor: Executor) -> None:
        self._log = log
        self._executor = executor
        self._batching: dict[str, Batching | None] = {}
        self._waiting: dict[str, list[_Waiting]] = {}
        self._busy: set[str] = set()

    async def record(self, tenant: str, entry: AppendRequest) -> bool:
        """Store a step; ``False`` when it was stored before. Raises as ``Recognition.record``."""
        loop = asyncio.get_running_loop()
        if self._batching.get(tenant) is None:
            return await loop.run_in_executor(self._executor, self._alone, tenant, entry)
        waiting = _Waiting(entry, loop.create_future())
        self._waiting.setdefault(tenant, []).append(waiting)
        if tenant not in self._busy:
            self._next(loop, tenant)
        return await waiting.stored

    def _alone(self, tenant: str, entry: AppendRequest) -> bool:
        """On a thread: one step, by the log's own means. The log may have to be opened first."""
        recognition = self._log(tenant).recognition
        self._batching[tenant] = recognition if isinstance(recognition, Batching) else None
        return recognition.record(entry)

    def _next(self, loop: asyncio.AbstractEventLoop, tenant: str) -> None:
        """Begin with those that wait, if any do."""
        waiting, left = _some(self._waiting.pop(tenant, []))
        if left:
            self._waiting[tenant] = left
        if not waiting:
            self._busy.discard(tenant)
            return
        self._busy.add(tenant)
        try:
            self._executor.submit(self._store, loop, tenant, waiting)
        except RuntimeError:  # the gateway is closing
            self._busy.discard(tenant)
            _resolve(waiting, [StoreError("the log is closed")] * len(waiting))

    def _store(self, loop: asyncio.AbstractEventLoop, tenant: str, waiting: list[_Waiting]) -> None:
        """On a thread: store, and tell the loop once for all of them."""
        batching = self._batching[tenant]
        assert batching is not None
        outcomes: list[bool | Exception]
        try:
            outcomes = batching.record_all([one.entry for one in waiting])
        except Exception as error:  # whatever it is, somebody waits for it
            outcomes = [error] * len(waiting)
        loop.call_soon_threadsafe(self._stored, loop, tenant, waiting, outcomes)

    def _stored(
        self,
        loop: asyncio.AbstractEventLoop,
        tenant: str,
        waiting: list[_Waiting],
        outcomes: Sequence[bool | Exception],
    ) -> None:
        self._next(loop, tenant)
        _resolve(waiting, outcomes)


def _some(waiting: list[_Waiting]) -> tuple[list[_Waiting], list[_Waiting]]:
    return waiting[:_AT_ONCE], waiting[_AT_ONCE:]


def _resolve(waiting: list[_Waiting], outcomes: Sequence[bool | Exception]) -> None:
    for one, outcome in zip(waiting, outcomes, strict=True):
        if one.stored.done():
            continue
        if isinstance(outcome, bool):
            one.stored.set_result(outcome)
        else:
            one.stored.set_exception(outcome)
