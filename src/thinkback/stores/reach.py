"""What is still stood on: which commits of which segments a removal must leave, whatever store they are in.

A commit is reached by a branch, by the first commit of a segment that follows it, by a merge whose further parent it
is, and by every commit after it in its segment. Pure; segments are any integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

Place: TypeAlias = tuple[int, int]
"""(segment, position); position -1 is before the first commit of a segment that follows nothing."""


class Run(NamedTuple):
    """A segment: its depth, what its position 0 follows, the position of its last commit (-1: it has none)."""

    base: int
    parent: Place | None
    last: int


class Cut(NamedTuple):
    """Remove what a segment has after ``last``; ``last`` ``None``: and the segment itself."""

    segment: int
    last: int | None


class Reach:
    """Grows with every root that is added. ``merges``: by segment, (position, places of the further parents)."""

    def __init__(self, runs: Mapping[int, Run], merges: Mapping[int, list[tuple[int, list[Place]]]]) -> None:
        self._runs, self._merges = runs, merges
        self._kept: dict[int, int] = {}

    def add(self, roots: Iterable[Place]) -> None:
        """Keep the commits at ``roots`` and all that they stand on."""
        waiting = list(roots)
        while waiting:
            segment, position = waiting.pop()
            before = self._kept.get(segment)
            if before is not None and position <= before:
                continue
            self._kept[segment] = position
            above = self._runs[segment].parent
            if before is None and above is not None:
                waiting.append(above)
            for at, places in self._merges.get(segment, ()):
                if (-1 if before is None else before) < at <= position:
                    waiting.extend(places)

    def cuts(self) -> list[Cut]:
        """What is not reached, segments that stand on others before those."""
        found = [
            Cut(segment, self._kept.get(segment))
            for segment, run in self._runs.items()
            if run.last > self._kept.get(segment, -1) or segment not in self._kept
        ]
        return sorted(found, key=lambda cut: (-self._runs[cut.segment].base, cut.segment))
