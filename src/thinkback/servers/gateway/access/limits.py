"""What one key may do at once and per minute.

Promises: a refusal says how long to wait. Counts are those of this process: with several, each allows as much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.grant import Grant, Limits

NO_LIMITS = Limits()
REMEMBERED = 20_000
AGAIN = 1.0
"""Seconds after which a place may have become free."""


class _Gate(msgspec.Struct):
    """One key: requests it may begin now, when that was, and those under way."""

    left: float
    at: float
    inside: int = 0


class Limiter:
    """Lets requests in. ``defaults`` hold where a key says nothing; a pause saves up to one minute's requests."""

    def __init__(self, defaults: Limits = NO_LIMITS, clock: Callable[[], float] = time.monotonic) -> None:
        self._defaults, self._clock = defaults, clock
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
                f"this key may have {at_once} requests under way at once; wait for one of them to end",
                retry_after=AGAIN,
            )
        if per_minute is not None:
            _take(gate, per_minute, now)
        gate.inside += 1
        return gate

    def _sweep(self, now: float) -> None:
        """Forget keys that nothing is known of that a new gate would not say too."""
        idle = [key for key, gate in self._gates.items() if not gate.inside and now - gate.at > 60]
        for key in idle:
            del self._gates[key]


def _take(gate: _Gate, per_minute: int, now: float) -> None:
    left = min(float(per_minute), gate.left + (now - gate.at) * per_minute / 60)
    gate.left, gate.at = left, now
    if left < 1:
        raise Refused(
            429,
            "too_many_per_minute",
            f"this key may begin {per_minute} requests per minute",
            retry_after=(1 - left) * 60 / per_minute,
        )
    gate.left = left - 1


def _either(own: int | None, default: int | None) -> int | None:
    return default if own is None else own
