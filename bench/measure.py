"""Timing: cases take turns in one process, each figure is a median, and its spread is shown.

Before each sample the garbage of the one before is collected and what survives is frozen, so that no case pays for
the others' objects; inside a sample the collector runs as it does for users.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple

import msgspec

Case = Callable[[], float]


class Figure(msgspec.Struct, frozen=True):
    """One line of the table and of ``bench/latest.json``.

    ``limit_ratio``: cost of thinkback / cost of the limit (for rates: rate of thinkback / rate of the limit).
    ``peers``: cost of the peer / cost of thinkback, so 20 means that thinkback is 20 times faster.
    ``met``: ``None`` where there is no aim, or nothing to measure yet. ``noise``: half the spread between the quartiles
    of the ratio (of the value where there is no ratio), relative to its median.
    """

    name: str
    value: float | None
    unit: str
    limit_ratio: float | None = None
    peers: dict[str, float] = {}
    aim: str = ""
    met: bool | None = None
    noise: float | None = None
    note: str = ""


class Group(NamedTuple):
    """A group of measurements; each takes ``quick`` and gives a figure."""

    name: str
    measurements: tuple[Callable[[bool], Figure], ...]


class Ratio(NamedTuple):
    """The median of the per-round ratios, and their relative spread."""

    value: float
    noise: float


class Samples:
    """Seconds per case, one sample of each case per round."""

    def __init__(self, seconds: Mapping[str, Sequence[float]]) -> None:
        self.seconds = seconds

    def median(self, case: str) -> float:
        """Median seconds of ``case``."""
        return median(self.seconds[case])

    def ratio(self, case: str, to: str) -> Ratio:
        """``case`` / ``to``, round by round."""
        ratios = [mine / other for mine, other in zip(self.seconds[case], self.seconds[to], strict=True)]
        return Ratio(median(ratios), spread(ratios))

    def over(self, case: str, base: str) -> Ratio:
        """Seconds of ``case`` over those of ``base``: the difference of the medians, with the spread of ``case``."""
        difference = self.median(case) - self.median(base)
        middle = self.median(case)
        return Ratio(difference, spread(self.seconds[case]) * middle / difference if difference > 0 else 0.0)

    def noise(self, case: str) -> float:
        """Relative spread of ``case``."""
        return spread(self.seconds[case])


def spread(values: Sequence[float]) -> float:
    """Half the distance between the quartiles, relative to the median."""
    if len(values) < 2:
        return 0.0
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / middle if middle else 0.0


def timed(work: Callable[[], object]) -> Case:
    """A case that is the whole of ``work``; what it returns is let go inside the measured time."""

    def case() -> float:
        start = perf_counter()
        work()
        return perf_counter() - start

    return case


def cold(work: Callable[[], object]) -> Case:
    """``timed``, with free memory given back to the system first (glibc), so that buffers get fresh pages.

    A process's first body gets those too. Otherwise a copy of 5 MB takes 0.3 or 3 ms, by what was freed before it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    case = timed(work)

    def cold_case() -> float:
        if trim is not None:
            trim(0)
        return case()

    return cold_case


def interleaved(cases: Mapping[str, Case], rounds: int, warm_up: int = 1) -> Samples:
    """``rounds`` samples of each case, the cases taking turns in an order that moves on by one each round."""
    names = list(cases)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for at in range(-warm_up, rounds):
        shift = at % len(names)
        for name in names[shift:] + names[:shift]:
            gc.collect()
            gc.freeze()
            taken = cases[name]()
            if at >= 0:
                seconds[name].append(taken)
    gc.unfreeze()
    return Samples(seconds)
