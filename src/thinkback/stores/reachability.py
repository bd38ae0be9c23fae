"""What is still stood on: which commits of a family a removal must leave, and what it may take out.

A commit is reached by a branch, by the first commit of a segment that follows it, by a merge whose further parent it
is, and by every commit after it in its segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from thinkback.log.protocol import Removed
from thinkback.stores.database import CommitAddress, Cut, Family, Rows, Segment
from thinkback.stores.rows import hashes

Address: TypeAlias = tuple[int, int]
"""(segment, position); position -1 is before the first commit of a segment that follows nothing."""

Merges: TypeAlias = Mapping[int, list[tuple[int, list[Address]]]]
"""By segment, (position, places of the further parents)."""


class Run(NamedTuple):
    """A segment: its depth, what its position 0 follows, the position of its last commit (-1: it has none)."""

    base: int
    parent: Address | None
    last: int


class Spare(NamedTuple):
    """A cut, and how many commits with how many stored bytes it takes out."""

    cut: Cut
    removed: Removed


class Reach:
    """Grows with every root that is added."""

    def __init__(self, runs: Mapping[int, Run], merges: Merges) -> None:
        self._runs, self._merges = runs, merges
        self._kept: dict[int, int] = {}

    def add(self, roots: Iterable[Address]) -> None:
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


def unreached(rows: Rows, within: Family, older_than: int) -> list[Spare]:
    """What no branch reaches and is older than that."""
    reach = _reach(rows, within, rows.segments(within))
    while young := [
        (cut.segment, position)
        for cut in reach.cuts()
        if (position := rows.tail(within, cut, older_than).young) is not None
    ]:
        reach.add(young)
    return list(_spares(rows, within, reach))


def left_over(rows: Rows, within: Family) -> list[Spare]:
    """What deleted sessions have that nothing of the others stands on."""
    segments = rows.segments(within)
    reach = _reach(rows, within, segments)
    reach.add((found.segment, found.last) for found in segments if found.is_there)
    return list(_spares(rows, within, reach))


def left_behind(rows: Rows, within: Family, end: CommitAddress) -> list[Cut]:
    """What nothing stands on of the segment that a branch ended at; nothing where the segment did not end there."""
    segments = rows.segments(within)
    if not any((found.segment, found.last) == end for found in segments):
        return []
    return [spare.cut for spare in _spares(rows, within, _reach(rows, within, segments)) if spare.cut.segment == end[0]]


def pieces(rows: Rows, within: Family, spare: Spare, most: int) -> list[Cut]:
    """Cuts that together are this one, the end first, each of about ``most`` commits."""
    segment, last = spare.cut
    first = -1 if last is None else last
    ends = range(first + most, first + spare.removed.commits, most)
    return [*(Cut(segment, rows.response_end(within, (segment, end))) for end in reversed(ends)), spare.cut]


def _reach(rows: Rows, within: Family, segments: list[Segment]) -> Reach:
    """What the branches of a family stand on."""
    runs = {found.segment: Run(found.base, found.above, found.last) for found in segments}
    merges: dict[int, list[tuple[int, list[Address]]]] = {}
    further = [(place, hashes(parents)[1:]) for place, parents in rows.merges(within)]
    standing = rows.standing(within, sorted({hash for _, parents in further for hash in parents}))
    for (segment, position), parents in further:
        places: list[Address] = [place for hash in parents for place in standing.get(hash, ())]
        merges.setdefault(segment, []).append((position, places))
    reach = Reach(runs, merges)
    reach.add((found.segment, found.reached) for found in segments if found.reached is not None)
    return reach


def _spares(rows: Rows, within: Family, reach: Reach) -> Iterator[Spare]:
    """The cuts that take something out. A response that is begun is kept to its last block."""
    for segment, last in reach.cuts():
        cut = Cut(segment, None if last is None else rows.response_end(within, (segment, last)))
        tail = rows.tail(within, cut, None)
        if tail.commits or last is None:
            yield Spare(cut, Removed(tail.commits, tail.bytes))
