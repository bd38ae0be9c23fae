"""The log in one SQLite file: the embedded default. docs/format.md describes the file.

Promises: an append is one transaction that is on the disk when it returns (``durability="full"``); any number of
threads and processes may read and append at once; steps of threads that append together share a transaction and
still fail one by one. Must not: know what a payload means.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from thinkback.errors import NotFoundError, StoreError
from thinkback.log.protocol import Problem, SessionInfo
from thinkback.model import canonical
from thinkback.model.commits import Commit, Head
from thinkback.stores import Durability, migrations, sqlite_fsck
from thinkback.stores.grouping import Group
from thinkback.stores.rows import COLUMNS, from_rows, to_rows
from thinkback.stores.sealed import (
    ambiguous,
    check_sealed,
    check_text,
    damaged,
    head_moved,
    id_taken,
    no_session,
    prefix_range,
)
from thinkback.stores.sqlite_open import Connect, Connection, configure, connect, named, naming_errors, transaction

IDLE_READERS = 8
MAIN = "main"

_INFO = """
SELECT s.id, s.name, s.created, coalesce(c.time, s.created), g.base + b.position, c.hash, s.settings
FROM sessions AS s
JOIN branches AS b ON b.session = s.session AND b.name = 'main'
JOIN segments AS g ON g.segment = b.segment
LEFT JOIN commits AS c ON c.segment = b.segment AND c.position = b.position
"""
_LIST = _INFO + "ORDER BY 4 DESC, s.session DESC"
_FIND = _INFO + "WHERE s.name = ?1 OR s.id = ?1 ORDER BY s.name = ?1 DESC LIMIT 1"
_HEAD = """
SELECT s.session, b.segment, b.position, g.base + b.position, c.hash,
       EXISTS (SELECT 1 FROM steps AS t WHERE t.session = s.session AND t.id = ?2)
FROM sessions AS s
JOIN branches AS b ON b.session = s.session AND b.name = 'main'
JOIN segments AS g ON g.segment = b.segment
LEFT JOIN commits AS c ON c.segment = b.segment AND c.position = b.position
WHERE s.id = ?1
"""
_BRANCH = """
SELECT b.segment, b.position FROM sessions AS s
JOIN branches AS b ON b.session = s.session AND b.name = 'main' WHERE s.id = ?
"""
_SEGMENT = "SELECT base, parent_segment, parent_position FROM segments WHERE segment = ?"
_RANGE = f"SELECT {COLUMNS} FROM commits WHERE segment = ? AND position BETWEEN ? AND ? ORDER BY position"
_BY_HASH = f"""
SELECT s.id, g.base, {", ".join("c." + column for column in COLUMNS.split(", "))} FROM commits AS c
JOIN segments AS g ON g.segment = c.segment
JOIN sessions AS s ON s.session = g.session
WHERE c.arrival IN (
    SELECT arrival FROM commits INDEXED BY commits_by_arrival WHERE hash BETWEEN ? AND ? ORDER BY arrival LIMIT 100
) ORDER BY c.arrival
"""
_ADD_COMMIT = f"INSERT INTO commits (segment, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_STEP = "INSERT INTO steps (session, id, segment, position, commits) VALUES (?, ?, ?, ?, ?)"
_ADD_BRANCH = f"INSERT INTO branches (session, name, segment, position) VALUES (?, '{MAIN}', ?, -1)"
_MOVE = f"UPDATE branches SET position = ? WHERE session = ? AND name = '{MAIN}'"

# What is wrong with one step alone; anything else concerns the whole transaction.
_FAULTS = (StoreError, NotFoundError, sqlite3.IntegrityError, sqlite3.DataError, ValueError, OverflowError)


class _Append:
    """One step on its way into the file, and what became of it."""

    __slots__ = ("expected", "failure", "rows", "session", "step", "stored")

    def __init__(self, session: str, step: str, rows: list[tuple[Any, ...]], expected: Head) -> None:
        self.session, self.step, self.rows, self.expected = session, step, rows, expected
        self.stored: bool | None = None
        self.failure: Exception | None = None


class SqliteStore:
    """The store in the SQLite file ``path``, made and brought to the newest format where needed.

    ``connect`` opens connections (tests pass their own). One connection writes, readers come from a small pool.
    """

    def __init__(
        self,
        path: str,
        durability: Durability = "full",
        connect: Connect = connect,
        schema: migrations.Schema = migrations.NEWEST,
    ) -> None:
        self._path, self._connect, self._schema = path, connect, schema
        self._idle: list[Connection] = []
        self._closed = False
        self._writing = threading.Lock()
        self._appends: Group[_Append] = Group(self._commit)
        with naming_errors(path):
            self._writer = connect(path)
            try:
                configure(self._writer, durability)
                migrations.migrate(self._writer, path, schema)
            except BaseException:
                self._writer.close()
                raise

    def create_session(self, id: str, name: str, time: int) -> SessionInfo:
        """Make the session ``name``; an existing one of that name is returned as it is."""
        check_text("session id", id)
        check_text("session name", name)
        with self._write() as db:
            if db.execute("SELECT 1 FROM sessions WHERE name = ?", (name,)).fetchone() is None:
                if db.execute("SELECT 1 FROM sessions WHERE id = ?", (id,)).fetchone():
                    raise id_taken(id)
                _add_session(db, id, name, time)
        found = self.find_session(name)
        assert found is not None
        return found

    def find_session(self, name: str) -> SessionInfo | None:
        """The session of that name or id; a name wins."""
        check_text("session name", name)
        with self._read() as db:
            row = db.execute(_FIND, (name,)).fetchone()
        return None if row is None else _info(row)

    def list_sessions(self) -> list[SessionInfo]:
        """All sessions, last updated first."""
        with self._read() as db:
            return [_info(row) for row in db.execute(_LIST).fetchall()]

    def write_settings(self, session: str, settings: Mapping[str, str]) -> None:
        """Replace the session layer of the settings."""
        text = canonical.encode(dict(settings)).decode()
        with self._write() as db:
            sql = "UPDATE sessions SET settings = ? WHERE id = ? RETURNING session"
            if not db.execute(sql, (text, session)).fetchall():
                raise no_session(session)

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head) -> bool:
        """Append ``commits``, sealed on top of ``expected``, in one durable transaction; ``False`` if it was there.

        Raises ``HeadMovedError`` when another writer was first, ``NotFoundError`` for an unknown session.
        """
        check_text("step id", step)
        check_sealed(commits, expected)
        item = _Append(session, step, to_rows(commits), expected)
        self._appends.run(item)
        if item.failure is not None:
            raise item.failure
        if item.stored is None:
            raise StoreError(
                "the append was interrupted", next_actions=("append the same step again: it is stored at most once",)
            )
        return item.stored

    def read(self, session: str, since: int = -1) -> list[Commit]:
        """Commits of the session's branch with ``seq`` greater than ``since``, in order."""
        with self._read() as db:
            place = db.execute(_BRANCH, (session,)).fetchone()
            if place is None:
                raise no_session(session)
            commits: list[Commit] = []
            for segment, base, first, last in reversed(_ancestry(db, place[0], place[1], since)):
                rows = db.execute(_RANGE, (segment, first, last)).fetchall()
                if len(rows) != max(0, last + 1 - first):
                    raise damaged(f"segment {segment} lacks commits between positions {first} and {last}")
                commits += from_rows(rows, base)
            return commits

    def find_commit(self, prefix: str) -> tuple[str, Commit]:
        """(session id, commit) of a hash prefix; of a commit that several sessions hold, the one stored first."""
        low, high = prefix_range(prefix)
        with self._read() as db:
            rows = db.execute(_BY_HASH, (low, high)).fetchall()
        found = {row[3]: row for row in reversed(rows)}
        if len(found) != 1:
            raise ambiguous(prefix, sorted(hash.hex() for hash in found))
        ((session, base, *row),) = found.values()
        return session, from_rows([tuple(row)], base)[0]

    def fsck(self) -> Iterator[Problem]:
        """Every disagreement between stored bytes, hashes, parents, positions and refs."""
        with self._read() as db:
            yield from sqlite_fsck.fsck(db, self._schema)

    def close(self) -> None:
        """Close every connection; later calls raise ``StoreError``. Waits for an append under way."""
        with self._writing:
            self._closed = True
            self._writer.close()
        self._close_idle()

    def _commit(self, batch: list[_Append]) -> None:
        """Store a batch of steps in one transaction. Outcomes count only once it is committed."""
        outcomes: Sequence[bool | Exception]
        try:
            with self._writing:
                self._refuse_closed()
                with transaction(self._writer):
                    outcomes = [_attempt(self._writer, item, alone=len(batch) == 1) for item in batch]
        except (sqlite3.Error, *_FAULTS) as error:
            outcomes = [error] * len(batch)
        for item, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, bool):
                item.stored = outcome
            elif isinstance(outcome, sqlite3.Error):
                item.failure = named(outcome, self._path)
            else:
                item.failure = outcome

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._writing:
            self._refuse_closed()
            with naming_errors(self._path), transaction(self._writer):
                yield self._writer

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        self._refuse_closed()
        with naming_errors(self._path):
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect(self._path)
            try:
                yield connection
            finally:
                if len(self._idle) < IDLE_READERS:
                    self._idle.append(connection)
                else:
                    connection.close()
                if self._closed:  # while this call read
                    self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreError(
                f"the log {self._path} was closed", details={"path": self._path}, next_actions=("open it again",)
            )


def _add_session(db: Connection, id: str, name: str, time: int) -> None:
    """A session with its first, empty segment and its branch; it is the root of its own family."""
    sql = """
    INSERT INTO sessions (session, id, name, family, created, settings)
    SELECT n, ?, ?, n, ?, '{}' FROM (SELECT coalesce(max(session), 0) + 1 AS n FROM sessions) RETURNING session
    """
    ((session,),) = db.execute(sql, (id, name, time)).fetchall()
    sql = "INSERT INTO segments (session, base) VALUES (?, 0) RETURNING segment"
    ((segment,),) = db.execute(sql, (session,)).fetchall()
    db.execute(_ADD_BRANCH, (session, segment))


def _attempt(db: Connection, item: _Append, alone: bool) -> bool | Exception:
    """Add one step of a batch; if it fails, it takes nothing of the others with it."""
    if alone:
        return _add_step(db, item)
    db.execute("SAVEPOINT step")
    try:
        return _add_step(db, item)
    except _FAULTS as error:
        db.execute("ROLLBACK TO step")
        return error
    finally:
        if db.in_transaction:  # a full disk undoes the whole transaction
            db.execute("RELEASE step")


def _add_step(db: Connection, item: _Append) -> bool:
    found = db.execute(_HEAD, (item.session, item.step)).fetchone()
    if found is None:
        raise no_session(item.session)
    session, segment, position, seq, hash, known = found
    if known:
        return False
    head = Head("" if hash is None else hash.hex(), seq)
    if head != item.expected:
        raise head_moved(item.session, item.expected, head)
    first = position + 1
    if item.rows:
        db.executemany(_ADD_COMMIT, [(segment, at, *row) for at, row in enumerate(item.rows, first)])
        db.execute(_MOVE, (position + len(item.rows), session))
    db.execute(_ADD_STEP, (session, item.step, segment, first, len(item.rows)))
    return True


def _ancestry(db: Connection, segment: int, position: int, since: int) -> list[tuple[int, int, int, int]]:
    """(segment, base, first position, last position) of the runs that hold what is after ``since``, newest first."""
    runs: list[tuple[int, int, int, int]] = []
    at: tuple[int | None, int] = (segment, position)
    while at[0] is not None:
        row = db.execute(_SEGMENT, (at[0],)).fetchone()
        if row is None:
            raise damaged(f"segment {at[0]} does not exist")
        base = row[0]
        runs.append((at[0], base, max(0, since + 1 - base), at[1]))
        if base <= since + 1:
            break
        at = (row[1], row[2])
    return runs


def _info(row: tuple[Any, ...]) -> SessionInfo:
    id, name, created, updated, seq, hash, settings = row
    head = Head("" if hash is None else hash.hex(), seq)
    return SessionInfo(id, name, created, updated, seq + 1, head, canonical.decode(settings, dict[str, str]))
