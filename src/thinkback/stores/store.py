"""A log in a database, as callers have it: each call is one transaction, by operations that are written once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from thinkback.errors import StoreError
from thinkback.log.progress import Progress
from thinkback.log.protocol import MAIN, About, Arrival, Origin, Problem, Recognition, SearchIndex, SessionInfo, Summary
from thinkback.model import canonical
from thinkback.model.commits import Commit, Head
from thinkback.stores import branches, history, summaries
from thinkback.stores.branches import LogRefs
from thinkback.stores.care import LogCare
from thinkback.stores.database import Database
from thinkback.stores.errors import check_text, prefix_range
from thinkback.stores.leases import LogLeases


class Appends(Recognition, Protocol):
    """How a database stores steps and finds their responses: what each does its own way, beside searching."""

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str) -> bool:
        """Store a step in one durable transaction; ``False`` if it was there."""
        ...

    def arrive(self, arrival: Arrival) -> SessionInfo:
        """Store a session from elsewhere in one durable transaction."""
        ...


class LogStore:
    """The log in ``database``, with what each database does its own way: appending, searching."""

    def __init__(self, database: Database, appends: Appends, search: SearchIndex) -> None:
        self.database, self._appends = database, appends
        self.refs, self.care = LogRefs(database), LogCare(database)
        self.search, self.leases = search, LogLeases(database)
        self.recognition: Recognition = appends

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
        # A fork is a new session, all but always: only the others are looked for without a write.
        known = self.find_session(name) if origin is None else None
        if known is not None and known.name == name:
            return known
        layer = canonical.encode(dict(settings or {})).decode()
        return self.database.write(branches.create_session, id, name, time, origin, layer, about or About())

    def find_session(self, name: str) -> SessionInfo | None:
        """The session of that name or id; a name wins."""
        check_text("session name", name)
        return self.database.read(branches.find_session, name)

    def list_sessions(self, most: int | None = None) -> list[SessionInfo]:
        """All sessions, last updated first, or the first so many of them."""
        return self.database.read(branches.list_sessions, most)

    def count_sessions(self) -> int:
        """Count the sessions."""
        return self.database.peek(branches.count_sessions)

    def owned_sessions(self, program: str, project: str, *, is_own: bool = False) -> list[str]:
        """The ids of the sessions of a program and a project, where these are not empty."""
        return self.database.read(branches.owned_sessions, program, project, is_own)

    def summaries(self, ids: Collection[str] | None = None) -> dict[str, Summary]:
        """Summarise each session, or those of these ids, by its id."""
        found, uncounted = self.database.read(summaries.summaries, ids)
        if uncounted and self.database.is_writable():
            # So that it is read once. Whoever holds the log now, or must not write to it, finds it as it is.
            with suppress(StoreError):
                self.database.note(summaries.settle_all, uncounted)
        return found

    def describe(self, session: str, about: About) -> None:
        """Replace what programs say of a session."""
        self.database.write(summaries.describe, session, about)

    def relabel(self, session: str, name: str, purpose: str) -> None:
        """Give a session another name and purpose. Raises ``StoreError`` for a name that another one has."""
        check_text("session name", name)
        self.database.write(branches.relabel, session, name, purpose)

    def write_settings(self, session: str, settings: Mapping[str, str]) -> None:
        """Replace the session layer of the settings."""
        self.database.write(branches.write_settings, session, canonical.encode(dict(settings)).decode())

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head, branch: str = MAIN) -> bool:
        """Append ``commits``, sealed on top of ``expected``, in one durable transaction; ``False`` if it was there.

        Raises ``HeadMovedError`` when another writer was first, ``NotFoundError`` for an unknown session or branch.
        """
        return self._appends.append(session, step, commits, expected, branch)

    def arrive(self, arrival: Arrival) -> SessionInfo:
        """Store a session from elsewhere, or what is new of it, in one durable transaction."""
        check_text("session id", arrival.session)
        check_text("session name", arrival.name)
        return self._appends.arrive(arrival)

    def read(self, session: str, since: int = -1, branch: str = MAIN) -> list[Commit]:
        """Commits of a branch with ``seq`` greater than ``since``, in order."""
        return self.database.read(history.read, session, since, branch)

    def read_to(self, session: str, hash: str) -> list[Commit]:
        """The history that ends with a commit of the session's family."""
        return self.database.read(history.read_to, session, hash)

    def find_commit(self, prefix: str, session: str = "") -> tuple[str, Commit]:
        """(session id, commit) of a hash prefix; of a commit that is there several times, the one stored first."""
        prefix_range(prefix)
        return self.database.read(history.find_prefix, prefix, session)

    def fsck(self, progress: Progress | None = None) -> Iterator[Problem]:
        """Every disagreement between stored bytes, hashes, parents, positions and refs."""
        return self.database.problems(progress)

    def count(self) -> int:
        """How many commits there are, on a branch or not."""
        return self.database.read(history.count)

    def epoch(self) -> int:
        """A number that each erasure and deletion counts up: what was read before it is to be read again."""
        return self.database.peek(history.epoch)

    def close(self) -> None:
        """Close every connection; later calls raise ``StoreError``. Waits for an append under way."""
        self.database.close()
