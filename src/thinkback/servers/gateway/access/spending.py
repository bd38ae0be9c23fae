"""What keys use, and the budgets that end it.

What is used is added up in memory and stored once in ``EVERY`` seconds: a crash loses so much at most, and what is
used meanwhile by other processes is seen so late. A request reserves what it will probably use until it ends, in its
process: a second one begins only where both fit. One that is alone is served while anything is left, so that it may
overspend the budget by itself.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias, TypeVar

from thinkback.errors import StoreError
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.grant import Budget, Grant
from thinkback.stores.gateway_state.records import Spent, Use
from thinkback.stores.gateway_state.state import GatewayState

T = TypeVar("T")

EVERY = 1.0
PATIENCE = 2.0
"""Seconds for which a database that may do without is waited for."""
REMEMBERED = 20_000
DAYS_KEPT = 400
FIRST_OUTPUT = 1_000
"""Tokens that the first response of a key is taken to have."""
MOST_OUTPUT = 128_000
"""Tokens of one response beyond which a mean does not believe its provider."""
MEAN_OF = 50
AGAIN = 1.0
"""Seconds after which a request that runs may have ended."""
TRIES = 3
"""Keys in a row whose use cannot be stored; then it is not the keys that are at fault."""


_Counts: TypeAlias = dict[str, dict[str, Use]]
"""Key to day to what it used."""


class _Known(NamedTuple):
    """What the database said that a key used, and when by the clock."""

    uses: Mapping[str, Use]
    at: float


class Reservation(NamedTuple):
    """Estimate what a request of ``key`` will use of its budget."""

    key: str
    tokens: int
    reasoning: int


class _Usual:
    """The use of a key's requests: means over the last ones, and what those that run have reserved."""

    def __init__(self) -> None:
        self.output = self.reasoning = float(FIRST_OUTPUT)
        self.requests = 0
        self.open: list[Reservation] = []

    def learn(self, use: Use) -> None:
        """A request ended with ``use``; one without a response says nothing."""
        if not use.output:
            return
        self.requests = min(self.requests + 1, MEAN_OF)
        self.output += (min(use.output, MOST_OUTPUT) - self.output) / self.requests
        self.reasoning += (min(use.reasoning, MOST_OUTPUT) - self.reasoning) / self.requests


class Spending:
    """Counts what is used. ``keep`` is run again and again beside the server, and ``flush`` when that has ended.

    ``blind``: a budget that cannot be read stops nobody. ``clock`` gives seconds that only grow, ``now`` the time UTC.
    """

    def __init__(
        self,
        office: GatewayState,
        executor: Executor | None = None,
        *,
        blind: bool = False,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._office, self._executor, self._blind = office, executor, blind
        self._clock, self._now = clock, now
        self._waiting: _Counts = {}
        self._leaving: _Counts = {}
        self._known: dict[str, _Known] = {}
        self._turn = asyncio.Lock()
        self._usual: dict[str, _Usual] = {}
        # Keys whose use the database refused while it stored that of others.
        self._refused: set[str] = set()

    def add(self, grant: Grant, use: Use) -> None:
        """Count what a request of ``grant`` used; takes no time."""
        _add(self._waiting, grant.key, self._now().date().isoformat(), use)

    async def check(self, grant: Grant) -> None:
        """Raise ``Refused`` where the budget of ``grant`` is spent: 429, or 403 where it does not come again.

        503 where that cannot be found out.
        """
        budget = grant.budget
        if budget.tokens is None and budget.reasoning is None:
            return
        known = self._known.get(grant.key)
        if known is None or self._clock() - known.at >= EVERY:
            known = await self._read(grant.key, known)
        _compare(budget, self._used(grant, known.uses), self._now())

    def _used(self, grant: Grant, uses: Mapping[str, Use]) -> Use:
        """Sum the use of ``grant`` in the period of its budget, stored or not yet."""
        period = period_of(grant.budget, self._now())
        used = uses.get(period, Use())
        for unsaved in (self._waiting, self._leaving):
            for day, use in unsaved.get(grant.key, {}).items():
                used = used.plus(use) if period in periods(day) else used
        return used

    def reserve(self, grant: Grant, input: int) -> Reservation | None:
        """Reserve what a request with so many tokens of ``input`` will use; ``settle`` ends that.

        ``None`` for a key without a budget. Raises ``Refused`` (429) where it does not fit beside those that run.
        """
        budget = grant.budget
        if budget.tokens is None and budget.reasoning is None:
            return None
        usual = self._usual.get(grant.key)
        if usual is None:
            while len(self._usual) >= REMEMBERED:
                del self._usual[next(iter(self._usual))]
            usual = self._usual[grant.key] = _Usual()
        wanted = Reservation(grant.key, input + round(usual.output), round(usual.reasoning))
        known = self._known.get(grant.key)
        used = self._used(grant, known.uses if known is not None else {})
        _compare(budget, used, self._now())
        for what, limit, so_far, reserved, more in (
            ("tokens", budget.tokens, used.input + used.output, [each.tokens for each in usual.open], wanted.tokens),
            ("reasoning tokens", budget.reasoning, used.reasoning, [e.reasoning for e in usual.open], wanted.reasoning),
        ):
            if usual.open and limit is not None and so_far + sum(reserved) + more > limit:
                raise _reserved(what, limit, len(usual.open))
        usual.open.append(wanted)
        return wanted

    def settle(self, reservation: Reservation, use: Use) -> None:
        """The request ended, and its use was added."""
        usual = self._usual.get(reservation.key)
        if usual is not None and reservation in usual.open:
            usual.open.remove(reservation)
            usual.learn(use)

    async def flush(self) -> None:
        """Store what was counted. Raises what kept some of it from being stored: that is still counted here, for the
        next time.

        Where a connection breaks at the moment of storing, up to a second's worth may be counted twice.
        """
        self._flushing = asyncio.ensure_future(self._flush())
        await asyncio.shield(self._flushing)  # a thread that stores cannot be called back

    async def _flush(self) -> None:
        async with self._turn:
            if not self._waiting:
                return
            self._leaving, self._waiting = self._waiting, {}
            try:
                await self._store_leaving()
            finally:
                for key, days in self._leaving.items():
                    for day, use in days.items():
                        _add(self._waiting, key, day, use)
                self._leaving = {}

    async def _store_leaving(self) -> None:
        """Store all keys together; where that fails each by itself, so that one whose use is refused stops no other.

        Raises the last failure. Several keys in a row that fail end the round: it is the database then.
        """
        together = [key for key in self._leaving if key not in self._refused]
        alone = [key for key in self._leaving if key in self._refused]
        failure: Exception | None = None
        try:
            await self._store_keys(together)
        except Exception as error:
            failure, alone = error, [*together, *alone]
        in_a_row = 0
        for key in random.sample(alone, len(alone)):
            try:
                await self._store_keys([key])
            except Exception as error:
                failure, in_a_row = error, in_a_row + 1
                self._refused.add(key)
                if in_a_row == TRIES:
                    break
            else:
                in_a_row = 0
                self._refused.discard(key)
        if failure is not None:
            raise failure

    async def _store_keys(self, keys: Collection[str]) -> None:
        """Store what ``keys`` used, in one transaction."""
        spent = list(_by_period({key: self._leaving[key] for key in keys}))
        if not spent:
            return
        sums = await self._run(lambda: self._office.spending.add(spent))
        for key in keys:
            del self._leaving[key]
        for key, period, use in sums:
            known = self._known.get(key)
            if known is not None:
                self._known[key] = known._replace(uses={**known.uses, period: use})

    async def keep(self) -> float:
        """Flush; returns the seconds until the next time. Raises as ``flush``."""
        await self.flush()
        return EVERY

    async def forget(self) -> int:
        """Remove days that nobody asks for any more; returns how many rows."""
        before = (self._now() - timedelta(days=DAYS_KEPT)).date().isoformat()
        return await self._run(lambda: self._office.spending.forget(before))

    async def _read(self, key: str, known: _Known | None) -> _Known:
        at = self._clock()
        try:
            # not wait_for: up to Python 3.11 that loses a cancellation which comes together with the answer
            async with asyncio.timeout(PATIENCE if self._blind else None):
                found = _Known(await self._run(lambda: self._office.spending.read(key)), at)
        except (StoreError, TimeoutError) as error:
            if not self._blind:
                raise Refused(
                    503, "store_unavailable", "budgets cannot be checked at the moment; retry later", retry_after=5
                ) from error
            found = _Known({} if known is None else known.uses, at)
        while len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = found
        return found

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def periods(day: str) -> tuple[str, str, str]:
    """What a day (``2026-11-21``) counts for: itself, its month, and all time."""
    return day, day[:7], "total"


def period_of(budget: Budget, now: datetime) -> str:
    """The period of ``budget`` that ``now`` (UTC) is in."""
    day, month, total = periods(now.date().isoformat())
    return {"day": day, "month": month, "total": total}[budget.period]


def _add(counts: _Counts, key: str, day: str, use: Use) -> None:
    days = counts.setdefault(key, {})
    days[day] = days[day].plus(use) if day in days else use


def _by_period(counts: _Counts) -> Iterator[Spent]:
    """A row for each key and period."""
    for key, days in counts.items():
        sums: dict[str, Use] = {}
        for day, use in days.items():
            for period in periods(day):
                sums[period] = sums.get(period, Use()).plus(use)
        yield from (Spent(key, period, use) for period, use in sums.items())


def resets(budget: Budget, now: datetime) -> datetime | None:
    """When the next period of ``budget`` begins (UTC), ``None`` where it has but one."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    match budget.period:
        case "day":
            return day + timedelta(days=1)
        case "month":
            return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        case "total":
            return None


def _compare(budget: Budget, used: Use, now: datetime) -> None:
    for what, limit, so_far in (
        ("tokens", budget.tokens, used.input + used.output),
        ("reasoning tokens", budget.reasoning, used.reasoning),
    ):
        if limit is not None and so_far >= limit:
            raise _spent(what, limit, so_far, budget, now)


def _reserved(what: str, limit: int, running: int) -> Refused:
    those = "the request that runs" if running == 1 else f"the {running} requests that run"
    return Refused(
        429,
        "budget_reserved",
        f"what is left of this key's budget of {limit} {what} is reserved by {those}; retry when one has ended",
        retry_after=AGAIN,
        details={"what": what, "limit": limit},
    )


def _spent(what: str, limit: int, used: int, budget: Budget, now: datetime) -> Refused:
    again = resets(budget, now)
    per = "in all" if again is None else f"per {budget.period}"
    when = "" if again is None else f"; it resets at {again.isoformat().replace('+00:00', 'Z')}"
    return Refused(
        403 if again is None else 429,
        "budget_spent",
        f"this key's budget of {limit} {what} {per} is spent ({used} used){when}",
        retry_after=None if again is None else max(1.0, (again - now).total_seconds()),
        details={"what": what, "limit": limit, "used": used, "period": budget.period},
    )
