"""What a log in memory is made of: sessions, branches, segments. The store, its refs and its care share one.

Must not: lock. Who uses it holds ``lock``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from thinkback.errors import StoreError
from thinkback.log.leases import Lease
from thinkback.log.protocol import MAIN, About, BranchInfo, SessionInfo
from thinkback.model.commits import Commit, Head
from thinkback.stores.errors import EMPTY, head_moved, no_branch, no_commit, no_session, on_branch


@dataclass(slots=True, eq=False)
class Segment:
    """A run of commits that follows ``parent``; ``base`` is the ``seq`` of its first, ``arrivals`` number them."""

    session: Session
    parent: Place | None
    base: int
    commits: list[Commit] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)


class Place(NamedTuple):
    """Where a commit stands."""

    segment: Segment
    position: int

    @property
    def commit(self) -> Commit:
        """The commit that stands there."""
        return self.segment.commits[self.position]


@dataclass(slots=True, eq=False)
class Session:
    """A session; a branch without commits points at nothing. ``steps`` say where their first commit went."""

    id: str
    name: str
    created: int
    family: str
    parent: str = ""
    purpose: str = ""
    branch: str = MAIN
    settings: dict[str, str] = field(default_factory=dict)
    about: About = field(default_factory=About)
    branches: dict[str, Place | None] = field(default_factory=dict)
    steps: dict[str, Place | None] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)

    def info(self) -> SessionInfo:
        """The session as listed."""
        at = self.branch_info(self.branch)
        return SessionInfo(
            self.id,
            self.name,
            self.created,
            at.updated,
            at.head.seq + 1,
            at.head,
            dict(self.settings),
            self.branch,
            self.family,
            self.parent,
            self.purpose,
        )

    def branch_info(self, name: str) -> BranchInfo:
        """A branch as listed."""
        place = self.branches[name]
        return BranchInfo(name, head(place), place.commit.time if place else self.created)

    def tip(self, branch: str) -> Place | None:
        """Where a branch points. Raises ``NotFoundError``."""
        try:
            return self.branches[branch]
        except KeyError:
            raise no_branch(branch, self.id, self.branches) from None

    def find(self, at: Head, via: str) -> Place | None:
        """Where a commit stands on the branch ``via``; ``None`` for the empty head. Raises ``NotFoundError``."""
        if at == EMPTY:
            return None
        place = self.tip(via)
        while place is not None and place.segment.base > at.seq:
            place = place.segment.parent
        if place is not None and at.seq <= place.segment.base + place.position:
            found = Place(place.segment, at.seq - place.segment.base)
            if found.commit.hash == at.hash:
                return found
        raise on_branch(at, via)


class MemoryLog:
    """Sessions by id, in the order they were made in, and segments in theirs.

    ``gone`` are deleted sessions that left something to others. ``sightings`` are, by scope and digest, the last
    commits of steps and the responses in them, oldest first.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.sessions: dict[str, Session] = {}
        self.names: dict[str, Session] = {}
        self.gone: dict[str, Session] = {}
        self.segments: list[Segment] = []
        self.sightings: dict[tuple[bytes, bytes], list[tuple[Place, str]]] = {}
        self.arrived = 0
        self.epoch = 0
        self._closed = False

    def session(self, id: str) -> Session:
        """The session of that id. Raises ``NotFoundError``."""
        self.refuse_closed()
        try:
            return self.sessions[id]
        except KeyError:
            raise no_session(id) from None

    def places(self, family: str | None = None) -> Iterator[Place]:
        """Where commits stand, of one family or of all."""
        for segment in self.segments:
            if family in (None, segment.session.family):
                yield from (Place(segment, position) for position in range(len(segment.commits)))

    def owner(self, place: Place) -> Session:
        """Whose commit it is: of one that a deleted session left, the first of the family that is there."""
        owner = place.segment.session
        if owner.id in self.sessions:
            return owner
        return next(session for session in self.sessions.values() if session.family == owner.family)

    def find(self, session: Session, at: Head, via: str) -> Place | None:
        """Where a commit stands; with ``via``, on that branch, else in the session's family."""
        return session.find(at, via) if via or at == EMPTY else self.locate(session, at.hash)

    def locate(self, session: Session, hash: str) -> Place:
        """Where the commit of that hash stands in the session's family, in its own segments if it can be."""
        places = [place for place in self.places(session.family) if place.commit.hash == hash]
        if not places:
            raise no_commit(hash, session.id)
        return min(places, key=lambda place: place.segment.session is not session)

    def add(self, session: Session, above: Place | None, commits: list[Commit]) -> Place:
        """Put commits behind a place, in its segment if that ends there and is the session's; where they begin."""
        segment = above.segment if above else None
        if above is None or segment is None or segment.session is not session or above[1] + 1 < len(segment.commits):
            segment = Segment(session, above, head(above).seq + 1)
            self.segments.append(segment)
        first = Place(segment, len(segment.commits))
        segment.commits.extend(commits)
        segment.arrivals.extend(range(self.arrived, self.arrived + len(commits)))
        self.arrived += len(commits)
        return first

    def append(self, session: Session, step: str, commits: Sequence[Commit], expected: Head, branch: str) -> bool:
        """Append commits to a branch; ``False`` when the step was stored before."""
        if step in session.steps:
            return False
        tip = session.tip(branch)
        if head(tip) != expected:
            raise head_moved(session.id, expected, head(tip))
        session.steps[step] = None
        if commits:
            first = self.add(session, tip, list(commits))
            session.steps[step] = first
            session.branches[branch] = Place(first.segment, first.position + len(commits) - 1)
        return True

    def unsee(self, is_gone: Callable[[Place], bool]) -> None:
        """Forget the sightings whose place ``is_gone``."""
        left = ((key, [seen for seen in found if not is_gone(seen[0])]) for key, found in self.sightings.items())
        self.sightings = {key: found for key, found in left if found}

    def close(self) -> None:
        """Forget everything."""
        self._closed = True
        self.sessions.clear()
        self.names.clear()
        self.segments.clear()
        self.sightings.clear()

    def refuse_closed(self) -> None:
        """Raise ``StoreError`` after ``close``."""
        if self._closed:
            raise StoreError("the log in memory was closed", next_actions=("open a new one",))


def head(place: Place | None) -> Head:
    """The head of a branch that points there."""
    return Head(place.commit.hash, place.commit.seq) if place else EMPTY


def line(place: Place | None, since: int = -1) -> list[Commit]:
    """The commits up to a place, those with ``seq`` greater than ``since``."""
    runs: list[list[Commit]] = []
    while place is not None:
        segment, position = place
        runs.append(segment.commits[max(0, since + 1 - segment.base) : position + 1])
        place = segment.parent if segment.base > since + 1 else None
    return [commit for run in reversed(runs) for commit in run]
