"""The log in memory: what ``":memory:"`` opens, and the simplest thing that passes the stores' conformance suite."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from thinkback.errors import StoreError
from thinkback.log.protocol import Problem, SessionInfo
from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Head
from thinkback.stores.audit import Row, audit
from thinkback.stores.sealed import (
    ambiguous,
    check_sealed,
    check_text,
    head_moved,
    id_taken,
    no_session,
    prefix_range,
)


@dataclass(slots=True)
class _Session:
    id: str
    name: str
    created: int
    order: int
    settings: dict[str, str] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    steps: set[str] = field(default_factory=set)

    def head(self) -> Head:
        return head_of(self.commits)

    def info(self) -> SessionInfo:
        updated = self.commits[-1].time if self.commits else self.created
        count = len(self.commits)
        return SessionInfo(self.id, self.name, self.created, updated, count, self.head(), dict(self.settings))


class MemoryStore:
    """A store that ends with the process. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_id: dict[str, _Session] = {}
        self._by_name: dict[str, _Session] = {}
        self._closed = False

    def create_session(self, id: str, name: str, time: int) -> SessionInfo:
        """Make the session ``name``; an existing one of that name is returned as it is."""
        check_text("session id", id)
        check_text("session name", name)
        with self._lock:
            self._refuse_closed()
            session = self._by_name.get(name)
            if session is None:
                if id in self._by_id:
                    raise id_taken(id)
                session = _Session(id, name, time, len(self._by_id))
                self._by_id[id] = self._by_name[name] = session
            return session.info()

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

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head) -> bool:
        """Append ``commits``, sealed on top of ``expected``; ``False`` when the step was stored before."""
        check_text("step id", step)
        check_sealed(commits, expected)
        with self._lock:
            found = self._session(session)
            if step in found.steps:
                return False
            if found.head() != expected:
                raise head_moved(session, expected, found.head())
            found.commits.extend(commits)
            found.steps.add(step)
            return True

    def read(self, session: str, since: int = -1) -> list[Commit]:
        """Commits of the session with ``seq`` greater than ``since``, in order."""
        with self._lock:
            return self._session(session).commits[max(0, since + 1) :]

    def find_commit(self, prefix: str) -> tuple[str, Commit]:
        """(session id, commit) of a hash prefix; of a commit that several sessions hold, the first session's."""
        prefix_range(prefix)
        found: dict[str, tuple[str, Commit]] = {}
        with self._lock:
            self._refuse_closed()
            for session in self._by_id.values():
                for commit in session.commits:
                    if commit.hash.startswith(prefix.lower()):
                        found.setdefault(commit.hash, (session.id, commit))
        if len(found) != 1:
            raise ambiguous(prefix, sorted(found))
        return next(iter(found.values()))

    def fsck(self) -> Iterator[Problem]:
        """Every disagreement between payloads, hashes, parents and positions."""
        with self._lock:
            self._refuse_closed()
            runs = [(session.id, list(session.commits)) for session in self._by_id.values()]
        for id, commits in runs:
            yield from audit(f"session {id}", "", map(_row, commits))

    def close(self) -> None:
        """Forget everything; later calls raise ``StoreError``."""
        with self._lock:
            self._closed = True
            self._by_id.clear()
            self._by_name.clear()

    def _session(self, id: str) -> _Session:
        self._refuse_closed()
        try:
            return self._by_id[id]
        except KeyError:
            raise no_session(id) from None

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreError("the log in memory was closed", next_actions=("open a new one",))


def _row(commit: Commit) -> Row:
    return Row(
        commit.seq,
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
