"""Circuit breakers: what failed several times in a row is left alone for a while, then asked once to see.

Promises: one success closes; while open, one request is admitted per cooldown, whatever becomes of it. Must not: wait.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable

from thinkback.errors import NetworkError, ProviderError

_KEPT = 4096
"""Failing places that are remembered: clients may name models that do not exist."""


class _State:
    def __init__(self) -> None:
        self.failures = 0
        self.reason = ""
        self.until = -math.inf
        self.opened = False


class Breakers:
    """One per key, closed at first. ``clock`` gives seconds that never go back.

    ``tell`` hears of each that opens, with the reason, and of each that closes, without one.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        failures: int = 5,
        cooldown: float = 30.0,
        tell: Callable[[Hashable, bool, str], object] = lambda key, opened, reason: None,
    ) -> None:
        self._clock, self._tell = clock, tell
        self._most, self._cooldown = failures, cooldown
        self._states: OrderedDict[Hashable, _State] = OrderedDict()

    def adjust(self, failures: int, cooldown: float) -> None:
        """From now on: after how many ``failures`` in a row, and for how many seconds."""
        self._most, self._cooldown = failures, cooldown

    def admits(self, key: Hashable) -> bool:
        """Whether ``key`` may be asked now; of an open one whose time is up, this admits the one that sees."""
        state = self._states.get(key)
        if state is None or state.failures < self._most:
            return True
        if self._clock() < state.until:
            return False
        state.until = self._clock() + self._cooldown
        return True

    def rests_for(self, key: Hashable) -> float:
        """Seconds until ``key`` may be asked again; 0 where it may be now."""
        state = self._states.get(key)
        if state is None or state.failures < self._most:
            return 0.0
        return max(state.until - self._clock(), 0.0)

    def reason(self, key: Hashable) -> str:
        """Why ``key`` failed last, as far as that was said."""
        state = self._states.get(key)
        return state.reason if state is not None else ""

    def succeeded(self, key: Hashable) -> None:
        """``key`` answered."""
        state = self._states.pop(key, None)
        if state is not None and state.opened:
            self._tell(key, False, "")

    def failed(self, key: Hashable, reason: str = "") -> None:
        """``key`` did not answer, for a ``reason`` that clients may read."""
        state = self._states.setdefault(key, _State())
        self._states.move_to_end(key)
        state.failures += 1
        state.reason = reason
        if state.failures >= self._most:
            state.until = self._clock() + self._cooldown
            if not state.opened:
                state.opened = True
                self._tell(key, True, reason)
        if len(self._states) > _KEPT:
            forgotten, state = self._states.popitem(last=False)
            if state.opened:
                self._tell(forgotten, False, "")


def is_of_the_place(error: Exception) -> bool:
    """Whether the place that was asked is at fault, and not what it was asked."""
    if isinstance(error, ProviderError):
        status = int(str(error.details.get("status") or 0))
        return status == 429 or not 400 <= status < 500
    return isinstance(error, NetworkError)
