"""Erases what is older than ``log.retention`` says, in every tenant's log, a few sessions at a time.

Promises: one process of those that share a store does it; a session in which a turn is under way is left for the next
time; a clock that jumps erases nothing for a day. Must not: hold a log up for long.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

import msgspec

from thinkback.drive.clock import now
from thinkback.log.protocol import SessionInfo
from thinkback.model import canonical
from thinkback.servers.gateway.storing.tenants import TenantLogs
from thinkback.servers.gateway.telemetry.logs import Value
from thinkback.session.history.erasing import StoreCare
from thinkback.session.history.retention import DAY, ClockDoubt, RetentionProgress
from thinkback.stores import SERVER
from thinkback.stores.formats import all_tenants_at
from thinkback.stores.gateway_state import FILE
from thinkback.stores.gateway_state.records import Claimed, Slot
from thinkback.stores.gateway_state.state import GatewayState

AFTER, EVERY, SOON = 20.0, 3600.0, 0.5
"""Seconds from the start to the first run, until the next run, and until the next sessions of one."""
AT_ONCE = 20
"""Sessions, with their forks, that lose something before others have a turn."""
_SLOT = Slot("", b"tb-retention-now")
_CLAIM = 10 * 60 * 1_000_000
_LOOKS_AT_ALL = DAY


class _Run:
    """The retention of one tenant's log, under way."""

    def __init__(self, before: int, families: list[list[SessionInfo]]) -> None:
        self.before, self.families = before, families
        self.busy = 0
        self.erased = 0


class Retaining:
    """The retention of all logs at ``place``. ``tell`` hears what was done, by tenant."""

    def __init__(
        self,
        logs: TenantLogs,
        office: GatewayState,
        place: str,
        tell: Callable[[str, dict[str, Value]], object],
        clock: Callable[[], int] = now,
        steady: Callable[[], int] = lambda: time.monotonic_ns() // 1000,
    ) -> None:
        self.days: int | None = None
        self._logs, self._office, self._place, self._tell = logs, office, place, tell
        self._clock, self._steady = clock, steady
        self._owner = secrets.token_hex(8)
        self._doubts: dict[str, ClockDoubt] = {}
        self._waiting: list[str] = []
        self._run: _Run | None = None

    async def keep(self, executor: Executor | None) -> float:
        """Erase some; returns the seconds until the next time. Raises ``ThinkbackError``."""
        return await asyncio.get_running_loop().run_in_executor(executor, self.step)

    def step(self) -> float:
        """The same, on this thread."""
        if self.days is None:
            return EVERY
        time = self._clock()
        replays = self._office.replays
        is_ours = replays.renew(_SLOT, self._owner, time + _CLAIM) or isinstance(
            replays.claim(_SLOT, b"", self._owner, time, time + _CLAIM), Claimed
        )
        if not is_ours:
            self._waiting, self._run = [], None
            return EVERY
        if not self._waiting:
            self._waiting, self._run = self._tenants(), None
        if self._waiting:
            goes_on = False
            try:
                goes_on = not self._go_on(self._waiting[0], self.days)
            finally:  # a log that is damaged holds up no other
                if not goes_on:
                    self._waiting.pop(0)
                    self._run = None
        if self._waiting:
            return SOON
        replays.release(_SLOT, self._owner)
        return EVERY

    def _go_on(self, tenant: str, days: int) -> bool:
        """Erase what a few families of a tenant lose; whether that was the last of it."""
        log = self._logs.of(tenant)
        care = StoreCare(log, tenant, self._place_of(tenant))
        run = self._run
        if run is None:
            run = self._begun(tenant, care, days)
            if run is None:
                return True
            self._run = run
        some, run.families = run.families[:AT_ONCE], run.families[AT_ONCE:]
        done = care.expire(run.before, some)
        run.busy, run.erased = run.busy + len(done.busy), run.erased + len(done.commits)
        if run.families:
            return False
        if run.erased:
            log.care.sweep()
        self._end(tenant, run)
        return True

    def _begun(self, tenant: str, care: StoreCare, days: int) -> _Run | None:
        """A run, unless the clock cannot be believed."""
        time, kept = self._clock(), self._office.erasures.retention(tenant)
        if kept is None:
            newest = self._logs.of(tenant).list_sessions(1)
            known = RetentionProgress(newest[0].updated if newest else time)
        else:
            known = msgspec.json.decode(kept, type=RetentionProgress)
        doubt = self._doubts.setdefault(tenant, ClockDoubt())
        if not doubt.believes(time, self._steady(), known.clock):
            self._tell("retention_waits", {"tenant": tenant, "days_off": (time - known.clock) // DAY})
            return None
        looks_at_all = not 0 <= time - known.whole < _LOOKS_AT_ALL
        before = time - days * DAY
        families = care.expiring(before, 0 if looks_at_all else known.before)
        if families:
            care.order_expiry(before)
        whole = time if looks_at_all else known.whole
        self._note(tenant, RetentionProgress(time, known.before, whole))
        return _Run(before, families)

    def _end(self, tenant: str, run: _Run) -> None:
        kept = self._office.erasures.retention(tenant)
        if kept is not None and not run.busy:  # what was busy comes back with the next time
            self._note(tenant, msgspec.structs.replace(_progress(kept), before=run.before))
        if run.erased or run.busy:
            self._tell("retention_applied", {"tenant": tenant, "commits": run.erased, "busy": run.busy})

    def _note(self, tenant: str, progress: RetentionProgress) -> None:
        self._office.erasures.note_retention(tenant, canonical.encode(progress))

    def _tenants(self) -> list[str]:
        if self._place.startswith(SERVER):
            return all_tenants_at(self._place)
        files = sorted(Path(self._place).glob("*.db"))
        return [file.stem for file in files if file.name != FILE]

    def _place_of(self, tenant: str) -> str:
        return self._place if self._place.startswith(SERVER) else os.path.join(self._place, f"{tenant}.db")


def _progress(kept: bytes) -> RetentionProgress:
    return msgspec.json.decode(kept, type=RetentionProgress)
