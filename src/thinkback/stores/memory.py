"""The log in memory: what ``":memory:"`` opens, and the simplest thing that passes the stores' conformance suite."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from thinkback.errors import StoreError
from thinkback.log.protocol import MAIN, BranchInfo, Origin, Problem, SessionInfo
from thinkback.model.commits import Commit, Head
from thinkback.stores.audit import Row, audit
from thinkback.stores.sealed import (
    ambiguous,
    branch_taken,
    check_sealed,
    check_text,
    head_moved,
    id_taken,
    no_branch,
    no_commit,
    no_session,
    on_branch,
    prefix_range,
)

EMPTY = Head()


@dataclass(slots=True)
class _Segment:
    """A run of commits; ``parent`` is the (segment, position) that its position 0 follows."""

    session: _Session
    parent: tuple[_Segment, int] | None
    base: int
    commits: list[Commit] = field(default_factory=list)


@dataclass(slots=True)
class _Branch:
    """A pointer; position -1 of a segment is what the segment follows."""

    segment: _Segment
    position: int


@dataclass(slots=True)
class _Session:
    id: str
    name: str
    created: int
    order: int
    family: str
    parent: str = ""
    purpose: str = ""
    branch: str = MAIN
    settings: dict[str, str] = field(default_factory=dict)
    branches: dict[str, _Branch] = field(default_factory=dict)
    steps: set[str] = field(default_factory=set)

    def info(self) -> SessionInfo:
        last = _last(self.branches[self.branch])
        head = _head(last)
        return SessionInfo(
            self.id,
            self.name,
            self.created,
            last.time if last else self.created,
            head.seq + 1,
            head,
            dict(self.settings),
            self.branch,
            self.family,
            self.parent,
            self.purpose,
        )


def _place(segment: _Segment, position: int) -> tuple[_Segment, int] | None:
    """Where a pointer's commit really stands; ``None`` before the first of all."""
    while position < 0:
        if segment.parent is None:
            return None
        segment, position = segment.parent
    return segment, position


def _last(branch: _Branch) -> Commit | None:
    place = _place(branch.segment, branch.position)
    return place[0].commits[place[1]] if place else None


def _head(commit: Commit | None) -> Head:
    return Head(commit.hash, commit.seq) if commit else EMPTY


def _line(segment: _Segment, position: int, since: int = -1) -> list[Commit]:
    """The commits up to a place, those with ``seq`` greater than ``since``."""
    runs: list[list[Commit]] = []
    place: tuple[_Segment, int] | None = (segment, position)
    while place is not None:
        segment, position = place
        runs.append(segment.commits[max(0, since + 1 - segment.base) : position + 1])
        if segment.base <= since + 1:
            break
        place = segment.parent
    return [commit for run in reversed(runs) for commit in run]


class MemoryStore:
    """A store that ends with the process. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._by_id: dict[str, _Session] = {}
        self._by_name: dict[str, _Session] = {}
        self._segments: list[_Segment] = []
        self._closed = False
        self.refs = MemoryRefs(self)

    def create_session(self, id: str, name: str, time: int, origin: Origin | None = None) -> SessionInfo:
        """Make the session ``name``; an existing one of that name is returned as it is."""
        check_text("session id", id)
        check_text("session name", name)
        with self._lock:
            self._refuse_closed()
            session = self._by_name.get(name)
            if session is None:
                if id in self._by_id:
                    raise id_taken(id)
                session = self._made(id, name, time, origin)
                self._by_id[id] = self._by_name[name] = session
            return session.info()

    def _made(self, id: str, name: str, time: int, origin: Origin | None) -> _Session:
        session = _Session(id, name, time, len(self._by_id), id)
        start: tuple[_Segment, int] | None = None
        if origin is not None:
            parent = self._session(origin.session)
            session.family, session.parent, session.purpose = parent.family, parent.id, origin.purpose
            if origin.at is not None:
                start = self._find(parent, origin.at, origin.branch)
        session.branches[MAIN] = _Branch(*(start or (self._segment(session, None), -1)))
        return session

    def find_session(self, name: str) -> SessionInfo | None:
        """The session of that name or id; a name wins."""
        check_text("session name", name)
        with self._lock:
            self._refuse_closed()
            session = self._by_name.get(name) or self._by_id.get(name)
            return session.info() if session else None

    def list_sessions(self) -> list[SessionInfo]:
        """All sessions, last updated first."""
        with self._lock:
            self._refuse_closed()
            newest = sorted(self._by_id.values(), key=lambda session: -session.order)
            return sorted((session.info() for session in newest), key=lambda info: -info.updated)

    def write_settings(self, session: str, settings: Mapping[str, str]) -> None:
        """Replace the session layer of the settings."""
        with self._lock:
            self._session(session).settings = dict(settings)

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str = MAIN) -> bool:
        """Append ``commits``, sealed on top of ``expected``; ``False`` when the step was stored before."""
        check_text("step id", step)
        check_sealed(commits, expected)
        with self._lock:
            found = self._session(session)
            if step in found.steps:
                return False
            pointer = self._branch(found, branch)
            head = _head(_last(pointer))
            if head != expected:
                raise head_moved(session, expected, head)
            if commits:
                end = len(pointer.segment.commits) - 1
                if pointer.position != end or pointer.segment.session is not found:
                    pointer.segment = self._segment(found, _place(pointer.segment, pointer.position))
                    pointer.position = -1
                pointer.segment.commits.extend(commits)
                pointer.position += len(commits)
            found.steps.add(step)
            return True

    def read(self, session: str, since: int = -1, branch: str = MAIN) -> list[Commit]:
        """Commits of a branch with ``seq`` greater than ``since``, in order."""
        with self._lock:
            pointer = self._branch(self._session(session), branch)
            return _line(pointer.segment, pointer.position, since)

    def read_to(self, session: str, hash: str) -> list[Commit]:
        """The history that ends with a commit of the session's family."""
        with self._lock:
            return _line(*self._locate(self._session(session), hash))

    def find_commit(self, prefix: str, session: str = "") -> tuple[str, Commit]:
        """(session id, commit) of a hash prefix; of a commit that several sessions hold, the first session's."""
        prefix_range(prefix)
        found: dict[str, tuple[str, Commit]] = {}
        with self._lock:
            self._refuse_closed()
            family = self._session(session).family if session else None
            for segment in self._segments:
                if family in (None, segment.session.family):
                    for commit in segment.commits:
                        if commit.hash.startswith(prefix.lower()):
                            found.setdefault(commit.hash, (segment.session.id, commit))
        if len(found) != 1:
            raise ambiguous(prefix, sorted(found))
        return next(iter(found.values()))

    def fsck(self) -> Iterator[Problem]:
        """Every disagreement between payloads, hashes, parents and positions."""
        with self._lock:
            self._refuse_closed()
            runs = [(at, segment, list(segment.commits)) for at, segment in enumerate(self._segments)]
        for at, segment, commits in runs:
            above = _place(*segment.parent) if segment.parent else None
            parent = above[0].commits[above[1]].hash if above else ""
            rows = (_row(position, commit) for position, commit in enumerate(commits))
            yield from audit(f"segment {at} of session {segment.session.id}", parent, rows)

    def close(self) -> None:
        """Forget everything; later calls raise ``StoreError``."""
        with self._lock:
            self._closed = True
            self._by_id.clear()
            self._by_name.clear()
            self._segments.clear()

    def _segment(self, session: _Session, parent: tuple[_Segment, int] | None) -> _Segment:
        base = 0 if parent is None else parent[0].base + parent[1] + 1
        segment = _Segment(session, parent, base)
        self._segments.append(segment)
        return segment

    def _locate(self, session: _Session, hash: str) -> tuple[_Segment, int]:
        """Where the commit of that hash stands in the session's family; the session's own first."""
        places = [
            (segment, position)
            for segment in self._segments
            if segment.session.family == session.family
            for position, commit in enumerate(segment.commits)
            if commit.hash == hash
        ]
        if not places:
            raise no_commit(hash, session.id)
        return min(places, key=lambda place: place[0].session is not session)

    def _find(self, session: _Session, at: Head, via: str) -> tuple[_Segment, int] | None:
        if at == EMPTY:
            return None
        if via:
            pointer = self._branch(session, via)
            line = _line(pointer.segment, pointer.position, at.seq - 1)
            if not line or line[0].hash != at.hash:
                raise on_branch(at, via)
        return self._locate(session, at.hash)

    def _branch(self, session: _Session, name: str) -> _Branch:
        try:
            return session.branches[name]
        except KeyError:
            raise no_branch(name, session.id, session.branches) from None

    def _session(self, id: str) -> _Session:
        self._refuse_closed()
        try:
            return self._by_id[id]
        except KeyError:
            raise no_session(id) from None

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreError("the log in memory was closed", next_actions=("open a new one",))


class MemoryRefs:
    """The branches of a ``MemoryStore``."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def list(self, session: str) -> list[BranchInfo]:
        """Its branches by name."""
        with self._store._lock:
            found = self._store._session(session)
            return [_branch_info(found, name) for name in sorted(found.branches)]

    def create(self, session: str, name: str, at: Head, via: str = "") -> BranchInfo:
        """A branch at a commit of the session's family."""
        check_text("branch name", name)
        with self._store._lock:
            found = self._store._session(session)
            if name in found.branches:
                raise branch_taken(name, session)
            found.branches[name] = self._pointer(found, at, via)
            return _branch_info(found, name)

    def move(self, session: str, name: str, expected: Head, to: Head, via: str = "") -> None:
        """Point a branch elsewhere, if its head is still ``expected``."""
        with self._store._lock:
            found = self._store._session(session)
            self._check(found, name, expected)
            found.branches[name] = self._pointer(found, to, via)

    def delete(self, session: str, name: str, expected: Head) -> None:
        """Forget the name."""
        with self._store._lock:
            found = self._store._session(session)
            self._check(found, name, expected)
            if name == found.branch:
                raise StoreError(
                    f"{name} is the current branch of the session", next_actions=("switch to another one first",)
                )
            del found.branches[name]

    def switch(self, session: str, name: str) -> None:
        """Make it the branch that the session is opened on."""
        with self._store._lock:
            found = self._store._session(session)
            self._store._branch(found, name)
            found.branch = name

    def _check(self, session: _Session, name: str, expected: Head) -> None:
        head = _head(_last(self._store._branch(session, name)))
        if head != expected:
            raise head_moved(session.id, expected, head)

    def _pointer(self, session: _Session, at: Head, via: str) -> _Branch:
        place = self._store._find(session, at, via)
        return _Branch(*place) if place else _Branch(self._store._segment(session, None), -1)


def _branch_info(session: _Session, name: str) -> BranchInfo:
    last = _last(session.branches[name])
    return BranchInfo(name, _head(last), last.time if last else session.created)


def _row(position: int, commit: Commit) -> Row:
    return Row(
        position,
        commit.hash,
        commit.parents,
        commit.kind,
        commit.digest,
        commit.time,
        commit.response,
        commit.index,
        commit.edit,
        commit.payload,
    )
