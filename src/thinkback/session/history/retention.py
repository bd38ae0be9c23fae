"""A retention: what was said more than so many days ago is erased.

Promises: a clock that is wrong erases nothing at once; a session in which a turn is under way is left for the next
time. Must not: keep time itself.
"""

from __future__ import annotations

import msgspec

from thinkback.errors import ThinkbackError
from thinkback.log.protocol import Store
from thinkback.session.history.erasing import Erasure, StoreCare

DAY = 86_400_000_000
HOUR = DAY // 24


class RetentionProgress(msgspec.Struct, frozen=True):
    """How far a retention is, in microseconds UTC: the last time that was believed, before which everything is erased,
    and when all sessions were looked at last.
    """

    clock: int
    before: int = 0
    whole: int = 0


class ClockDoubt:
    """True if the time of the wall can be believed: a retention that runs by a wrong one erases everything.

    A day at most may have gone by since the last time. A time that is further off, or earlier, is believed once it went
    on for a day like the clock that only grows (``steady``, microseconds).
    """

    def __init__(self) -> None:
        self._since: tuple[int, int] | None = None

    def believes(self, now: int, steady: int, last: int) -> bool:
        """True if ``now`` can be the time, where ``last`` was it before."""
        if last - HOUR <= now <= last + DAY:
            self._since = None
            return True
        if self._since is None or abs((now - self._since[0]) - (steady - self._since[1])) > HOUR:
            self._since = (now, steady)
        return steady - self._since[1] >= DAY


def apply(log: Store, care: StoreCare, days: int, now: int, *, dry_run: bool = False) -> Erasure:
    """Erase what is older than ``days``, all at once. Raises ``ThinkbackError`` where nothing at all is younger: the
    clock may be wrong.
    """
    before = now - days * DAY
    newest = next((info.updated for info in log.list_sessions(1)), now)
    families = care.expiring(before)
    if newest < before and care.expire(before, families, dry_run=True).commits:
        raise ThinkbackError(
            f"everything in this log is older than the {days} days of log.retention: nothing was erased, since the "
            "clock of this machine may be wrong",
            next_actions=("if it is right, erase it: `thinkback purge --before TIME`",),
        )
    if not dry_run:
        care.order_expiry(before)
    try:
        return care.expire(before, families, dry_run=dry_run)
    finally:
        if not dry_run:
            log.care.sweep()
