"""Search in a log in memory: every entry is looked at, newest first."""

from __future__ import annotations

from bisect import bisect_left

from tests.stores.model.log import MemoryLog, Place, Session
from thinkback.log import searching
from thinkback.log.protocol import BareHit, Hit, Query
from thinkback.log.searching import IndexEntry, Placed
from thinkback.model.commits import Commit


class MemorySearch:
    """The entries of the commits that were taken in, and their words."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._next = 0
        self._read: list[Commit] = []
        self._entries: list[tuple[IndexEntry, str]] = []

    def fill(self, limit: int = 5000) -> int:
        """Take in up to ``limit`` commits and what belongs to the last of them."""
        with self._log.lock:
            self._log.refuse_closed()
            new = self._placed(self._next)
            end = min(limit, len(new))
            while 0 < end < len(new) and _belongs(new[end - 1][1].commit, new[end][1].commit):
                end += 1
            if end > 0:
                self._next = new[end - 1][0] + 1
            return max(0, end)

    def find(self, query: Query) -> list[Hit]:
        """The commits that ``query`` describes, newest first."""
        with self._log.lock:
            self._log.refuse_closed()
            reached = _reached(self._log.session(query.session)) if query.session else None
            places = dict(self._placed(0, self._next))
            self._catch_up(places)
            wanted = searching.asked(query)
            if searching.is_hopeless(query, wanted):
                return []
            hits: list[Hit] = []
            for entry, said in sorted(self._page(query.before), key=lambda each: _moment(each[0]), reverse=True):
                place = places[entry.arrival]
                if len(hits) >= query.limit:
                    break
                if reached is not None and reached.get(id(place.segment), -1) < place.position:
                    continue
                owner = self._owner(place.segment.session)
                if query.owners is not None and owner not in query.owners:
                    continue
                if searching.fits(entry, query) and searching.holds(said, wanted):
                    hits.append(searching.hit(owner, entry, wanted))
            return hits

    def _page(self, before: int | None) -> list[tuple[IndexEntry, str]]:
        """The entries that were said before the last hit of the page before."""
        if before is None:
            return self._entries
        last = [(entry.time, before) for entry, _ in self._entries if entry.arrival <= before][-1:]
        return [each for each in self._entries if [_moment(each[0])] < last]

    def find_bare(self, query: Query) -> list[BareHit]:
        """The same without what is not counted."""
        return [BareHit(hit.session, hit.model, hit.time) for hit in self.find(query)]

    def find_owners(self, text: str, *, prefix: bool = False) -> set[str]:
        """The sessions of all hits."""
        return {hit.session for hit in self.find(Query(text, prefix=prefix, limit=1_000_000))}

    def rebuild(self) -> None:
        """Forget what was taken in."""
        with self._log.lock:
            self._log.refuse_closed()
            self._next = 0

    def _catch_up(self, places: dict[int, Place]) -> None:
        """Read the log again where it is not what was read: it grew, or something was erased."""
        commits = [place.commit for place in places.values()]
        if len(commits) == len(self._read) and all(map(_is, commits, self._read)):
            return
        reading = searching.read(
            Placed(arrival, place.segment.session.family, place.commit) for arrival, place in places.items()
        )
        self._read = commits
        self._entries = [(entry, searching.joined(entry.text)) for entry in reading.entries]

    def _placed(self, since: int, until: int | None = None) -> list[tuple[int, Place]]:
        """The commits from one arrival to before another, in that order."""
        found: list[tuple[int, Place]] = []
        for segment in self._log.segments:
            first = bisect_left(segment.arrivals, since)
            last = len(segment.arrivals) if until is None else bisect_left(segment.arrivals, until)
            found += ((segment.arrivals[at], Place(segment, at)) for at in range(first, last))
        return sorted(found, key=lambda placed: placed[0])

    def _owner(self, session: Session) -> str:
        """The session that a commit is said to be of: where its own was deleted, the first of the family."""
        if session.id in self._log.sessions:
            return session.id
        return next(other.id for other in self._log.sessions.values() if other.family == session.family)


def _belongs(before: Commit, commit: Commit) -> bool:
    return searching.belongs_to(before.response, commit.kind, commit.response)


def _is(one: Commit, other: Commit) -> bool:
    return one is other


def _reached(session: Session) -> dict[int, int]:
    """How far the branches of a session reach into each segment."""
    reached: dict[int, int] = {}
    for place in session.branches.values():
        while place is not None and reached.get(id(place.segment), -1) < place.position:
            reached[id(place.segment)] = place.position
            place = place.segment.parent
    return reached


def _moment(entry: IndexEntry) -> tuple[int, int]:
    return entry.time, entry.arrival
