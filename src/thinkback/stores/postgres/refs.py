"""The branches of sessions in a PostgreSQL log.

What changes the shape of a family (a new branch, a moved or deleted one) first holds the family's row, so that nothing
is removed from under it; an append holds the row of its branch alone.
"""

from __future__ import annotations

from thinkback.log.protocol import BranchInfo
from thinkback.model.commits import Head
from thinkback.stores.postgres.append import open_segment
from thinkback.stores.postgres.connections import Connection
from thinkback.stores.postgres.log import Log
from thinkback.stores.postgres.places import Key, Place, Tip, find, given, pointer, stored
from thinkback.stores.sealed import branch_taken, check_text, current_branch, damaged, head_moved, no_session

_HOLD = "SELECT 1 FROM thinkback.families WHERE tenant = %s AND family = %s FOR UPDATE"
_LIST = """
SELECT name, hash, seq, time FROM thinkback.branches WHERE tenant = %s AND family = %s AND session = %s
"""
_ONE = _LIST + "AND name = %s"
_COMMIT = """
SELECT g.base + c.position, c.hash, c.time FROM thinkback.commits AS c
JOIN thinkback.segments AS g ON g.tenant = c.tenant AND g.family = c.family AND g.segment = c.segment
WHERE c.tenant = %s AND c.family = %s AND c.segment = %s AND c.position = %s
"""
_ADD = """
INSERT INTO thinkback.branches (tenant, family, session, name, segment, position, seq, hash, time)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_POINT = """
UPDATE thinkback.branches SET segment = %s, position = %s, seq = %s, hash = %s, time = %s
WHERE tenant = %s AND family = %s AND session = %s AND name = %s
"""
_DELETE = "DELETE FROM thinkback.branches WHERE tenant = %s AND family = %s AND session = %s AND name = %s"
_SESSION = """
SELECT created, branch FROM thinkback.sessions
WHERE tenant = %s AND family = %s AND session = %s AND name IS NOT NULL
"""
_SWITCH = "UPDATE thinkback.sessions SET branch = %s WHERE tenant = %s AND family = %s AND session = %s"


class PostgresRefs:
    """The branches in ``log``; each call is one transaction."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def list(self, session: str) -> list[BranchInfo]:
        """Its branches by name."""

        def work(db: Connection, of: Key) -> list[BranchInfo]:
            rows = db.execute(_LIST, of[:3], binary=True).fetchall()
            if not rows:
                require(db, of)
            return sorted((_info(*row) for row in rows), key=lambda branch: branch.name)

        return self._log.run(session, work)

    def create(self, session: str, name: str, at: Head, via: str = "") -> BranchInfo:
        """A branch at a commit of the session's family."""
        check_text("branch name", name)

        def work(db: Connection, of: Key) -> BranchInfo:
            hold(db, of[:2])
            created, _ = require(db, of)
            if db.execute(_ONE, (*of[:3], stored(name))).fetchone():
                raise branch_taken(name, session)
            add_branch(db, of, name, find(db, of, at, via), created)
            row = db.execute(_ONE, (*of[:3], stored(name)), binary=True).fetchone()
            assert row is not None
            return _info(*row)

        return self._log.change(session, work)

    def move(self, session: str, name: str, expected: Head, to: Head, via: str = "") -> None:
        """Point a branch elsewhere, if its head is still ``expected``."""

        def work(db: Connection, of: Key) -> None:
            hold(db, of[:2])
            created, _ = require(db, of)
            _check(db, of, name, expected)
            tip, time = _tip(db, of, find(db, of, to, via), created)
            db.execute(_POINT, (*tip, time, *of[:3], stored(name)))

        self._log.change(session, work)

    def delete(self, session: str, name: str, expected: Head) -> None:
        """Forget the name."""

        def work(db: Connection, of: Key) -> None:
            hold(db, of[:2])
            _, current = require(db, of)
            _check(db, of, name, expected)
            if name == current:
                raise current_branch(name, session)
            db.execute(_DELETE, (*of[:3], stored(name)))

        self._log.change(session, work)

    def switch(self, session: str, name: str) -> None:
        """Make it the branch that the session is opened on."""

        def work(db: Connection, of: Key) -> None:
            hold(db, of[:2])
            pointer(db, of, name)
            db.execute(_SWITCH, (stored(name), *of[:3]))

        self._log.change(session, work)


def hold(db: Connection, family: tuple[str, int]) -> None:
    """Wait for, and then keep out, all others that change the shape of the family."""
    db.execute(_HOLD, family)


def add_branch(db: Connection, of: Key, name: str, place: Place | None, created: int) -> None:
    """A branch of that name at a place; ``None`` for before the first commit of all."""
    tip, time = _tip(db, of, place, created)
    db.execute(_ADD, (*of[:3], stored(name), *tip, time))


def _tip(db: Connection, of: Key, place: Place | None, created: int) -> tuple[Tip, int]:
    """A place with the head and the time that are there. Before the first commit that is the session's own making."""
    if place is None:
        return Tip(open_segment(db, of, 0, None), -1, -1, b""), created
    row = db.execute(_COMMIT, (*of[:2], *place), binary=True).fetchone()
    if row is None:
        raise damaged(f"no commit is at position {place.position} of segment {place.segment}", session=of.id)
    seq, hash, time = row
    return Tip(*place, seq, hash), time


def _check(db: Connection, of: Key, name: str, expected: Head) -> None:
    """Raise ``HeadMovedError`` if the head of ``name`` is not ``expected``; from here on it stays."""
    actual = pointer(db, of, name, hold=True).head
    if actual != expected:
        raise head_moved(of.id, expected, actual)


def require(db: Connection, of: Key) -> tuple[int, str]:
    """When the session was made, and its current branch. Raises ``NotFoundError``."""
    row = db.execute(_SESSION, of[:3]).fetchone()
    if row is None:
        raise no_session(of.id)
    return row[0], given(row[1])


def _info(name: str, hash: bytes, seq: int, time: int) -> BranchInfo:
    return BranchInfo(given(name), Head(hash.hex(), seq), time)
