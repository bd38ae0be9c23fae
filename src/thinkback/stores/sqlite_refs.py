"""The branches of sessions in a SQLite log."""

from __future__ import annotations

from typing import Any

from thinkback.log.protocol import BranchInfo
from thinkback.model.commits import Head
from thinkback.stores.sealed import branch_taken, check_text, current_branch, head_moved
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_open import Connection
from thinkback.stores.sqlite_places import Key, Place, find, head, key, pointer

_LIST = """
SELECT b.name, g.base + b.position, c.hash, coalesce(c.time, s.created), s.branch FROM branches AS b
JOIN sessions AS s ON s.session = b.session
JOIN segments AS g ON g.segment = b.segment
LEFT JOIN commits AS c ON c.segment = b.segment AND c.position = b.position
WHERE b.session = ?
"""
_ONE = _LIST + "AND b.name = ?"
_ADD = "INSERT INTO branches (session, name, segment, position) VALUES (?, ?, ?, ?)"
_ADD_SEGMENT = "INSERT INTO segments (session, base) VALUES (?, 0) RETURNING segment"
_POINT = "UPDATE branches SET segment = ?, position = ? WHERE session = ? AND name = ?"
_DELETE = "DELETE FROM branches WHERE session = ? AND name = ?"
_SWITCH = "UPDATE sessions SET branch = ? WHERE session = ?"


class SqliteRefs:
    """The branches in ``file``; each call is one transaction."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def list(self, session: str) -> list[BranchInfo]:
        """Its branches by name."""
        with self._file.read() as db:
            rows = db.execute(_LIST + "ORDER BY b.name", (key(db, session).session,)).fetchall()
        return [BranchInfo(name, head(hash, seq), updated) for name, seq, hash, updated, _ in rows]

    def create(self, session: str, name: str, at: Head, via: str = "") -> BranchInfo:
        """A branch at a commit of the session's family."""
        check_text("branch name", name)
        with self._file.write() as db:
            of = key(db, session)
            if _row(db, of, name) is not None:
                raise branch_taken(name, session)
            add_branch(db, of, name, find(db, of, at, via))
            _, seq, hash, updated, _ = _row(db, of, name)
        return BranchInfo(name, head(hash, seq), updated)

    def move(self, session: str, name: str, expected: Head, to: Head, via: str = "") -> None:
        """Point a branch elsewhere, if its head is still ``expected``."""
        with self._file.write() as db:
            of = key(db, session)
            _check(db, of, name, expected)
            place = find(db, of, to, via) or _nothing(db, of)
            db.execute(_POINT, (*place, of.session, name))

    def delete(self, session: str, name: str, expected: Head) -> None:
        """Forget the name."""
        with self._file.write() as db:
            of = key(db, session)
            if name == _check(db, of, name, expected):
                raise current_branch(name, session)
            db.execute(_DELETE, (of.session, name))

    def switch(self, session: str, name: str) -> None:
        """Make it the branch that the session is opened on."""
        with self._file.write() as db:
            of = key(db, session)
            pointer(db, of, name)
            db.execute(_SWITCH, (name, of.session))


def add_branch(db: Connection, of: Key, name: str, place: Place | None) -> None:
    """A branch of that name at a place; ``None`` for before the first commit of all."""
    db.execute(_ADD, (of.session, name, *(place or _nothing(db, of))))


def _nothing(db: Connection, of: Key) -> Place:
    """Before the first commit of a new segment."""
    ((segment,),) = db.execute(_ADD_SEGMENT, (of.session,)).fetchall()
    return Place(segment, -1)


def _row(db: Connection, of: Key, name: str) -> Any:
    return db.execute(_ONE, (of.session, name)).fetchone()


def _check(db: Connection, of: Key, name: str, expected: Head) -> str:
    """The session's current branch. Raises ``HeadMovedError`` if the head of ``name`` is not ``expected``."""
    pointer(db, of, name)
    _, seq, hash, _, current = _row(db, of, name)
    actual = head(hash, seq)
    if actual != expected:
        raise head_moved(of.id, expected, actual)
    return str(current)
