"""How far long work has come, for those who wait for it.

Promises: what is done never goes back, and its last report names all of it. Must not: keep time, or draw anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with how much is done, of how much (0: not known), and of what: ``commits``, ``bytes``, ``pages``."""

_REPORTS = 100
_EVERY = 1000


class Meter:
    """Counts work, and reports its beginning, its end, and each hundredth of it between.

    Where nobody knows how much there is, each thousand.
    """

    def __init__(self, progress: Progress | None, total: int, unit: str) -> None:
        self._progress = progress
        self._total = total
        self._is_known = total > 0
        self._unit = unit
        self._every = max(total // _REPORTS, 1) if total else _EVERY
        self._done = self._told = 0
        self._report()

    def add(self, amount: int = 1) -> None:
        """So much more is done."""
        self._done += amount
        if self._done - self._told >= self._every:
            self._report()

    def end(self) -> None:
        """All of it is done, if it was less than expected."""
        self._total = min(self._total, self._done)
        self._report()

    def over(self, items: Iterable[T], size: Callable[[T], int] = lambda _: 1) -> Iterator[T]:
        """``items``, each counted once the next one is asked for."""
        for item in items:
            yield item
            self.add(size(item))

    def _report(self) -> None:
        self._told = self._done
        if self._progress is not None:
            self._progress(self._done, max(self._total, self._done) if self._is_known else 0, self._unit)
