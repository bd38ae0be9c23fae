"""The log in memory: what ``":memory:"`` opens, and the simplest thing that passes the stores' conformance suite."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count

from tests.stores.model.care import MemoryCare
from tests.stores.model.leases import MemoryLeases
from tests.stores.model.log import MemoryLog, Session, head, line
from tests.stores.model.recognition import MemoryRecognition
from tests.stores.model.search import MemorySearch
from thinkback.log.progress import Progress
from thinkback.log.protocol import MAIN, About, Arrival, BranchInfo, Origin, Problem, SessionInfo, Summary
from thinkback.log.tally import Tally, tally
from thinkback.model.commits import Commit, Erased, Head
from thinkback.stores.arriving import requests_of
from thinkback.stores.errors import (
    ambiguous,
    branch_taken,
    check_sealed,
    check_text,
    current_branch,
    head_moved,
    id_taken,
    name_taken,
    prefix_range,
)
from thinkback.stores.fsck import Row, audit


class MemoryStore:
    """A store that ends with the process. Safe to share between threads."""

    def __init__(self) -> None:
        self._log = MemoryLog()
        self.refs = MemoryRefs(self._log)
        self.care = MemoryCare(self._log)
        self.search = MemorySearch(self._log)
        self.recognition = MemoryRecognition(self._log)
        self.leases = MemoryLeases(self._log)

    def create_session(
        self,
        id: str,
        name: str,
        time: int,
        origin: Origin | None = None,
        settings: Mapping[str, str] | None = None,
        about: About | None = None,
    ) -> SessionInfo:
        """Make the session ``name`` with ``settings``; an existing one of that name is returned as it is."""
        check_text("session id", id)
        check_text("session name", name)
        with self._log.lock:
            self._log.refuse_closed()
            session = self._log.names.get(name)
            if session is None:
                if id in self._log.sessions or id in self._log.gone:
                    raise id_taken(id)
                session = self._made(id, name, time, origin)
                session.settings = dict(settings or {})
                session.about = about or About()
                self._log.sessions[id] = self._log.names[name] = session
            return session.info()

    def _made(self, id: str, name: str, time: int, origin: Origin | None) -> Session:
        if origin is None:
            return Session(id, name, time, family=id, branches={MAIN: None})
        parent = self._log.session(origin.session)
        start = None if origin.at is None else self._log.find(parent, origin.at, origin.branch)
        return Session(id, name, time, parent.family, parent.id, origin.purpose, branches={MAIN: start})

    def find_session(self, name: str) -> SessionInfo | None:
        """The session of that name or id; a name wins."""
        check_text("session name", name)
        with self._log.lock:
            self._log.refuse_closed()
            session = self._log.names.get(name) or self._log.sessions.get(name)
            return session.info() if session else None

    def count_sessions(self) -> int:
        """How many sessions there are."""
        return len(self.list_sessions())

    def list_sessions(self, most: int | None = None) -> list[SessionInfo]:
        """All sessions, last updated first, or the first so many of them."""
        with self._log.lock:
            self._log.refuse_closed()
            newest = reversed(self._log.sessions.values())
            return sorted((session.info() for session in newest), key=lambda info: -info.updated)[:most]

    def summaries(self, ids: Collection[str] | None = None) -> dict[str, Summary]:
        """What a list shows of each session."""
        with self._log.lock:
            self._log.refuse_closed()
            sessions = {id: one for id, one in self._log.sessions.items() if ids is None or id in ids}
            return {id: Summary(self._tally(session), session.about) for id, session in sessions.items()}

    def _tally(self, session: Session) -> Tally:
        found = Tally()
        for segment in self._log.segments:
            if segment.session is session:
                found = found.plus(tally(segment.commits))
        return found

    def describe(self, session: str, about: About) -> None:
        """Replace what programs say of a session."""
        with self._log.lock:
            self._log.session(session).about = about

    def relabel(self, session: str, name: str, purpose: str) -> None:
        """Give a session another name and purpose."""
        with self._log.lock:
            found = self._log.session(session)
            if self._log.names.get(name, found) is not found:
                raise name_taken(name)
            del self._log.names[found.name]
            found.name, found.purpose = name, purpose
            self._log.names[name] = found

    def write_settings(self, session: str, settings: Mapping[str, str]) -> None:
        """Replace the session layer of the settings."""
        with self._log.lock:
            self._log.session(session).settings = dict(settings)

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str = MAIN) -> bool:
        """Append ``commits``, sealed on top of ``expected``; ``False`` when the step was stored before."""
        check_text("step id", step)
        check_sealed(commits, expected)
        with self._log.lock:
            return self._log.append(self._log.session(session), step, commits, expected, branch)

    def arrive(self, arrival: Arrival) -> SessionInfo:
        """Store a session from elsewhere, or what is new of it."""
        with self._log.lock:
            if arrival.is_new:
                if arrival.session in self._log.sessions:
                    raise head_moved(arrival.session, Head(), self._log.sessions[arrival.session].info().head)
                names = (arrival.name if number == 1 else f"{arrival.name}-{number}" for number in count(1))
                name = next(name for name in names if name not in self._log.names)
                rest = (arrival.origin, arrival.settings, arrival.about)
                self.create_session(arrival.session, name, arrival.created, *rest)
            session = self._log.session(arrival.session)
            for entry, tail in zip(requests_of(arrival), arrival.tails, strict=True):
                if tail.outgrown is not None:
                    end = session.tip(tail.branch)
                    self.refs.move(session.id, tail.branch, tail.outgrown, tail.expected)
                    self.care.let_go(end)
                self.recognition.record(entry)
            if arrival.branch:
                self.refs.switch(session.id, arrival.branch)
            return session.info()

    def read(self, session: str, since: int = -1, branch: str = MAIN) -> list[Commit]:
        """Commits of a branch with ``seq`` greater than ``since``, in order."""
        with self._log.lock:
            return line(self._log.session(session).tip(branch), since)

    def read_to(self, session: str, hash: str) -> list[Commit]:
        """The history that ends with a commit of the session's family."""
        with self._log.lock:
            return line(self._log.locate(self._log.session(session), hash))

    def find_commit(self, prefix: str, session: str = "") -> tuple[str, Commit]:
        """(session id, commit) of a hash prefix; of a commit that is there several times, the one stored first."""
        prefix_range(prefix)
        with self._log.lock:
            self._log.refuse_closed()
            places = self._log.places(self._log.session(session).family if session else None)
            found = [place for place in places if place.commit.hash.startswith(prefix.lower())]
        hashes = sorted({place.commit.hash for place in found})
        if len(hashes) != 1:
            raise ambiguous(prefix, hashes[:100])
        first = min(found, key=lambda place: place.segment.arrivals[place.position])
        return self._log.owner(first).id, first.commit

    def fsck(self, progress: Progress | None = None) -> Iterator[Problem]:
        """Every disagreement between payloads, hashes, parents and positions."""
        with self._log.lock:
            self._log.refuse_closed()
            runs = [(at, segment, list(segment.commits)) for at, segment in enumerate(self._log.segments)]
        for at, segment, commits in runs:
            rows = (_row(position, commit) for position, commit in enumerate(commits))
            yield from audit(f"segment {at} of session {segment.session.id}", head(segment.parent).hash, rows)

    def count(self) -> int:
        """How many commits there are, on a branch or not."""
        with self._log.lock:
            self._log.refuse_closed()
            return sum(len(segment.commits) for segment in self._log.segments)

    def owned_sessions(self, program: str, project: str, *, is_own: bool = False) -> list[str]:
        """The ids of the sessions of a program and a project, where these are not empty."""
        summaries, infos = self.summaries(), {info.id: info for info in self.list_sessions()}

        def said(id: str) -> tuple[str, str]:
            about = summaries[id].about
            above = said(infos[id].parent) if infos[id].parent in infos else ("", "")
            return about.program or above[0], about.project or above[1]

        programs = ("", program) if is_own else (program,)
        return [
            id
            for id in infos
            for own in [said(id)]
            if (not program or own[0] in programs) and (not project or own[1] == project)
        ]

    def epoch(self) -> int:
        """A number that each erasure and deletion counts up."""
        with self._log.lock:
            self._log.refuse_closed()
            return self._log.epoch

    def close(self) -> None:
        """Forget everything; later calls raise ``StoreError``."""
        with self._log.lock:
            self._log.close()


class MemoryRefs:
    """The branches of a log in memory."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def list(self, session: str) -> list[BranchInfo]:
        """Its branches by name."""
        with self._log.lock:
            found = self._log.session(session)
            return [found.branch_info(name) for name in sorted(found.branches)]

    def create(self, session: str, name: str, at: Head, via: str = "") -> BranchInfo:
        """A branch at a commit of the session's family."""
        check_text("branch name", name)
        with self._log.lock:
            found = self._log.session(session)
            if name in found.branches:
                raise branch_taken(name, session)
            found.branches[name] = self._log.find(found, at, via)
            return found.branch_info(name)

    def move(self, session: str, name: str, expected: Head, to: Head, via: str = "") -> None:
        """Point a branch elsewhere, if its head is still ``expected``."""
        with self._log.lock:
            found = self._log.session(session)
            _check(found, name, expected)
            found.branches[name] = self._log.find(found, to, via)

    def delete(self, session: str, name: str, expected: Head) -> None:
        """Forget the name."""
        with self._log.lock:
            found = self._log.session(session)
            _check(found, name, expected)
            if name == found.branch:
                raise current_branch(name, session)
            del found.branches[name]
            found.leases.pop(name, None)

    def switch(self, session: str, name: str) -> None:
        """Make it the branch that the session is opened on."""
        with self._log.lock:
            found = self._log.session(session)
            found.tip(name)
            found.branch = name


def _check(session: Session, name: str, expected: Head) -> None:
    actual = head(session.tip(name))
    if actual != expected:
        raise head_moved(session.id, expected, actual)


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
        isinstance(commit.value, Erased),
    )
