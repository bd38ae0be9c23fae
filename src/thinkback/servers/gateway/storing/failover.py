"""Where steps go: into their tenant's log, or, while the database is in trouble and that is allowed, into the spool.

Promises: the steps of a session keep their order across both; what was spooled is stored once the database answers; a
database in trouble is not waited for by every request. Must not: know a database.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from thinkback.drive.clock import now
from thinkback.errors import ErasedSinceError, HeadMovedError, IdTakenError, StoreError
from thinkback.log.erasing import Order, copied, late
from thinkback.log.protocol import AppendRequest
from thinkback.servers.gateway.storing.spool import Drained, Recorder, Spool
from thinkback.stores.gateway_state.state import Erasures

T = TypeVar("T")

EVERY = 2.0
"""Seconds between drains, of a spool that holds something."""
LONGEST = 30.0
"""Seconds between drains while they fail."""
MENDING = 60.0
"""Seconds between looks at what was put aside, of which something may have been erased."""
REST = 1.0
"""Seconds for which a database that failed is left alone."""
# What a database says that is not in trouble.
_DEFINITE = (ErasedSinceError, HeadMovedError, IdTakenError)


class Storing:
    """Stores steps by ``record``; with a ``spool`` there, whatever happens to the database. For any number of threads.

    ``clock`` gives seconds that only grow; ``erasures`` are those that reach what waits there, ``epoch`` that of a
    tenant's log.
    """

    def __init__(
        self,
        record: Recorder,
        spool: Spool | None = None,
        clock: Callable[[], float] = time.monotonic,
        erasures: Erasures | None = None,
        epoch: Callable[[str], int] | None = None,
    ) -> None:
        self._record, self._spool, self._erasures, self._clock = record, spool, erasures, clock
        self._epoch = epoch
        self._rests_until = float("-inf")
        self._drainer = ThreadPoolExecutor(1, thread_name_prefix="thinkback-spool")
        self._pause = EVERY
        self._mended = float("-inf")

    @property
    def has_spool(self) -> bool:
        """Whether steps may wait in a spool."""
        return self._spool is not None

    def __call__(self, tenant: str, entry: AppendRequest) -> bool:
        """Store a step: ``True`` when it is in the log, ``False`` when it waits in the spool.

        Raises as ``Recognition.record``; of a database in trouble only without a spool, or with a full one.
        """
        spool = self._spool
        if spool is None:
            self._record(tenant, entry)
            return True
        if not self.rests and not spool.holds(tenant, entry.session):
            try:
                self._record(tenant, entry)
                return True
            except StoreError as error:
                if not self._may_fail(error):
                    raise
        spool.put(tenant, entry)
        return False

    def unstored(self, tenant: str, scope: bytes) -> frozenset[bytes]:
        """The digests in ``scope`` by which responses that wait in the spool will be found."""
        return frozenset() if self._spool is None else self._spool.digests(tenant, scope)

    async def try_lookup(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        """What ``ask`` finds in a log; ``None`` while the database is in trouble and the gateway may do without."""
        if self.rests:
            return None
        try:
            return await ask()
        except StoreError as error:
            if not self._may_fail(error):
                raise
            return None

    def _may_fail(self, error: StoreError) -> bool:
        """Whether the gateway does without the database, which has just said ``error``, for a moment."""
        if self._spool is None or isinstance(error, _DEFINITE):
            return False
        self._rests_until = self._clock() + REST
        return True

    @property
    def rests(self) -> bool:
        """Whether the database has just failed, and is left alone for a moment."""
        return self._clock() < self._rests_until

    def drain(self) -> Drained:
        """Store what waits in the spool, as far as the database goes along."""
        return Drained(0, 0, 0) if self._spool is None else self._spool.drain(self._record_late)

    def mend_aside(self) -> int:
        """Take what was erased since out of the steps that were put aside; how many that changed."""
        return 0 if self._spool is None else self._spool.mend_aside(self.without_erased)

    def _record_late(self, tenant: str, entry: AppendRequest) -> None:
        """Store a step that has waited, without what was erased meanwhile."""
        while (left := self.without_erased(tenant, entry)) is not None:
            try:
                self._record(tenant, left)
            except ErasedSinceError:
                continue
            return

    def without_erased(self, tenant: str, entry: AppendRequest, began: int | None = None) -> AppendRequest | None:
        """A step without what was erased since it was made, or since its request ``began`` (microseconds UTC), to be
        stored as long as nothing more is; ``None`` where its session was deleted since.
        """
        if self._erasures is None:
            return entry
        if self._epoch is not None:
            entry = msgspec.structs.replace(entry, epoch=self._epoch(tenant))
        orders, copies = self._erasures.list(tenant, now()), copied(entry.commits)
        erased = self._erasures.erased(tenant, copies) if copies else frozenset[str]()
        return late(entry, [msgspec.json.decode(order, type=Order) for order in orders], erased, began)

    async def keep(self, tell: Callable[[Drained], object]) -> float:
        """Drain once, on a thread of its own; ``tell`` hears what was done, where anything was.

        Returns the seconds until the next time. Raises ``ThinkbackError``. The first drain takes up what an earlier
        process left behind.
        """
        if self._spool is not None and self._clock() - self._mended >= MENDING:
            await asyncio.get_running_loop().run_in_executor(self._drainer, self.mend_aside)
            self._mended = self._clock()
        if self._spool is None or not self._spool.bytes():
            self._pause = EVERY
            return EVERY
        done = await asyncio.get_running_loop().run_in_executor(self._drainer, self.drain)
        if done.stored or done.aside:
            tell(done)
        self._pause = EVERY if done.stored or not done.left else min(2 * self._pause, LONGEST)
        return self._pause

    def close(self) -> None:
        """Leave what waits to whoever opens the spool next."""
        self._drainer.shutdown()
        if self._spool is not None:
            self._spool.close()
