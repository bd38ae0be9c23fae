"""What one key may do at once and per minute.

Promises: a refusal says how long to wait. How many are under way at once is counted by each process for itself, how
many begin per minute by all processes of one store together, where there may be several.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

import msgspec

from thinkback.errors import StoreError
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.grant import Grant, Limits
from thinkback.stores.gateway_state.state import GatewayState

NO_LIMITS = Limits()
REMEMBERED = 20_000
AGAIN = 1.0
"""Seconds after which a place may have become free."""
PATIENCE = 2.0
"""Seconds for which a database that may do without is waited for."""
RESTS = 1.0
"""Seconds for which a database that did not answer is not asked again."""


class _Gate(msgspec.Struct):
    """One key: requests it may begin now, when that was, and those under way."""

    left: float
    at: float
    inside: int = 0


class Limiter:
    """Lets requests in. ``defaults`` hold where a key says nothing; a pause saves up to one minute's requests.

    ``alone``: no other process counts the requests of a minute, and so this one does.
    """

    def __init__(
        self, defaults: Limits = NO_LIMITS, clock: Callable[[], float] = time.monotonic, *, alone: bool = True
    ) -> None:
        self._defaults, self._clock, self._alone = defaults, clock, alone
        self._gates: dict[str, _Gate] = {}

    @contextmanager
    def entered(self, grant: Grant) -> Iterator[None]:
        """One request of ``grant`` while it is answered. Raises ``Refused`` (429) where it is one too many."""
        gate = self._enter(grant)
        try:
            yield
        finally:
            gate.inside -= 1

    def _enter(self, grant: Grant) -> _Gate:
        per_minute = _either(grant.limits.per_minute, self._defaults.per_minute)
        at_once = _either(grant.limits.at_once, self._defaults.at_once)
        now = self._clock()
        gate = self._gates.get(grant.key)
        if gate is None:
            if len(self._gates) >= REMEMBERED:
                self._sweep(now)
            gate = self._gates[grant.key] = _Gate(float(per_minute or 0), now)
        if at_once is not None and gate.inside >= at_once:
            raise Refused(
                429,
                "too_many_at_once",
                f"this key may have {at_once} concurrent requests; wait until one of them has ended",
                retry_after=AGAIN,
            )
        if per_minute is not None and self._alone:
            _take(gate, per_minute, now)
        gate.inside += 1
        return gate

    def _sweep(self, now: float) -> None:
        """Forget keys that nothing is known of that a new gate would not say too."""
        idle = [key for key, gate in self._gates.items() if not gate.inside and now - gate.at > 60]
        for key in idle:
            del self._gates[key]


class SharedMinutes:
    """Requests per minute, counted in ``office`` for all its processes.

    One statement for a request of a key with such a limit, none for others. A refusal is remembered until it ends, so
    that who goes on asking costs the database nothing. ``blind``: while the database does not answer, this process
    counts for itself.
    """

    def __init__(
        self,
        office: GatewayState,
        executor: Executor | None = None,
        defaults: Limits = NO_LIMITS,
        *,
        blind: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._office, self._executor, self._defaults = office, executor, defaults
        self._blind, self._clock = blind, clock
        self._shut: dict[str, float] = {}
        self._gates: dict[str, _Gate] = {}
        self._rests_until = float("-inf")

    async def enter(self, grant: Grant) -> None:
        """Begin one request of ``grant``. Raises ``Refused``: 429 where it is one too many, 503 where nobody knows."""
        per_minute = _either(grant.limits.per_minute, self._defaults.per_minute)
        if per_minute is None:
            return
        if len(self._shut) + len(self._gates) >= REMEMBERED:
            self._shut.clear()
            self._gates.clear()
        wait = self._shut.get(grant.key, 0.0) - self._clock()
        if wait <= 0:
            wait = await self._ask(grant, per_minute)
            if wait:
                self._shut[grant.key] = self._clock() + wait
        if wait:
            raise _too_many(per_minute, wait)

    async def _ask(self, grant: Grant, per_minute: int) -> float:
        failure: Exception | None = None
        if self._clock() >= self._rests_until:
            take = asyncio.get_running_loop().run_in_executor(
                self._executor, self._office.rates.take, grant.tenant, grant.key, per_minute
            )
            try:
                # not wait_for: up to Python 3.11 that loses a cancellation which comes together with the answer
                async with asyncio.timeout(PATIENCE if self._blind else None):
                    return await take
            except (StoreError, TimeoutError) as error:
                failure = error
                self._rests_until = self._clock() + RESTS
        if not self._blind:
            raise Refused(
                503, "store_unavailable", "limits cannot be checked at the moment; ask again", retry_after=5
            ) from failure
        now = self._clock()
        _take(self._gates.setdefault(grant.key, _Gate(float(per_minute), now)), per_minute, now)
        return 0.0


def _take(gate: _Gate, per_minute: int, now: float) -> None:
    left = min(float(per_minute), gate.left + (now - gate.at) * per_minute / 60)
    gate.left, gate.at = left, now
    if left < 1:
        raise _too_many(per_minute, (1 - left) * 60 / per_minute)
    gate.left = left - 1


def _too_many(per_minute: int, again: float) -> Refused:
    told = f"this key may begin {per_minute} {'request' if per_minute == 1 else 'requests'} per minute"
    return Refused(429, "too_many_per_minute", told, retry_after=again)


def _either(own: int | None, default: int | None) -> int | None:
    return default if own is None else own
