"""Where commits stand in a SQLite log: sessions, branches, and the segments that a history runs through.

Must not: change anything, or know what a payload means.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from thinkback.log.protocol import SessionInfo
from thinkback.model import canonical
from thinkback.model.commits import Commit, Head
from thinkback.stores.rows import COLUMNS, from_rows
from thinkback.stores.sealed import (
    EMPTY,
    ambiguous,
    damaged,
    no_branch,
    no_commit,
    no_session,
    on_branch,
    prefix_range,
    whole_hash,
)
from thinkback.stores.sqlite_open import Connection

_INFO = """
SELECT s.id, s.name, s.created, coalesce(c.time, s.created), g.base + b.position, c.hash, s.settings, s.branch,
       f.id, coalesce(p.id, ''), s.purpose
FROM sessions AS s
JOIN sessions AS f ON f.session = s.family
JOIN branches AS b ON b.session = s.session AND b.name = s.branch
JOIN segments AS g ON g.segment = b.segment
LEFT JOIN sessions AS p ON p.session = s.parent
LEFT JOIN commits AS c ON c.segment = b.segment AND c.position = b.position
WHERE s.name IS NOT NULL
"""
_LIST = _INFO + "ORDER BY 4 DESC, s.session DESC"
_FIND = _INFO + "AND (s.name = ? OR s.id = ?) ORDER BY s.name = ? DESC LIMIT 1"
_KEY = "SELECT session, family, id FROM sessions WHERE id = ? AND name IS NOT NULL"
_POINTER = "SELECT segment, position FROM branches WHERE session = ? AND name = ?"
_NAMES = "SELECT name FROM branches WHERE session = ?"
_SEGMENT = "SELECT base, parent_segment, parent_position FROM segments WHERE segment = ?"
_RANGE = f"SELECT {COLUMNS} FROM commits WHERE segment = ? AND position BETWEEN ? AND ? ORDER BY position"
_HASH = "SELECT hash FROM commits WHERE segment = ? AND position = ?"

# A hash is looked for in the slim index; only rows that have it are joined.
_HASHED = "SELECT arrival FROM commits INDEXED BY commits_by_arrival WHERE hash BETWEEN ? AND ?"
_PREFIX = f"""
SELECT c.hash, min(c.arrival) FROM commits AS c
JOIN segments AS g ON g.segment = c.segment
JOIN sessions AS s ON s.session = g.session
WHERE c.arrival IN ({_HASHED}) AND s.family = coalesce(?, s.family)
GROUP BY c.hash LIMIT 100
"""
_TIP = """
SELECT b.segment, b.position FROM branches AS b
JOIN segments AS g ON g.segment = b.segment AND g.session = b.session
JOIN commits AS c ON c.segment = b.segment AND c.position = b.position
WHERE b.session = ? AND c.hash = ? LIMIT 1
"""
_PLACES = f"""
SELECT c.segment, c.position FROM commits AS c
JOIN segments AS g ON g.segment = c.segment
JOIN sessions AS s ON s.session = g.session
WHERE c.arrival IN ({_HASHED}) AND s.family = ?
ORDER BY g.session <> ?, c.arrival LIMIT 1
"""
_ARRIVED = f"""
SELECT g.base, {", ".join("c." + column for column in COLUMNS.split(", "))}
FROM commits AS c JOIN segments AS g ON g.segment = c.segment WHERE c.arrival = ?
"""
_OWNER = """
SELECT CASE WHEN s.name IS NOT NULL THEN s.id ELSE (
           SELECT h.id FROM sessions AS h WHERE h.family = s.family AND h.name IS NOT NULL ORDER BY h.session LIMIT 1
       ) END
FROM commits AS c
JOIN segments AS g ON g.segment = c.segment
JOIN sessions AS s ON s.session = g.session
WHERE c.arrival = ?
"""


class Key(NamedTuple):
    """A session within the file."""

    session: int
    family: int
    id: str


class Place(NamedTuple):
    """Where a commit stands; position -1 is before the first commit of a segment that follows nothing."""

    segment: int
    position: int


def key(db: Connection, session: str) -> Key:
    """The session of that id. Raises ``NotFoundError``."""
    row = db.execute(_KEY, (session,)).fetchone()
    if row is None:
        raise no_session(session)
    return Key(*row)


def pointer(db: Connection, of: Key, branch: str) -> Place:
    """Where a branch points. Raises ``NotFoundError``."""
    row = db.execute(_POINTER, (of.session, branch)).fetchone()
    if row is None:
        raise no_branch(branch, of.id, [name for (name,) in db.execute(_NAMES, (of.session,))])
    return Place(*row)


def infos(db: Connection) -> list[SessionInfo]:
    """All sessions, last updated first."""
    return [_info(row) for row in db.execute(_LIST).fetchall()]


def info(db: Connection, name: str) -> SessionInfo | None:
    """The session of that name or id."""
    row = db.execute(_FIND, (name, name, name)).fetchone()
    return None if row is None else _info(row)


def head(hash: bytes | None, seq: int) -> Head:
    """The head of a pointer whose commit has ``hash``."""
    return Head("" if hash is None else hash.hex(), seq)


def line(db: Connection, at: Place, since: int = -1) -> list[Commit]:
    """The commits up to a place, those with ``seq`` greater than ``since``."""
    commits: list[Commit] = []
    for segment, base, first, last in reversed(_runs(db, at, since)):
        rows = db.execute(_RANGE, (segment, first, last)).fetchall()
        if len(rows) != max(0, last + 1 - first):
            raise damaged(f"segment {segment} lacks commits between positions {first} and {last}")
        commits += from_rows(rows, base)
    return commits


def find(db: Connection, of: Key, at: Head, via: str) -> Place | None:
    """Where a commit stands; ``None`` for the empty head. With ``via``, on that branch, else in the family.

    Walks the segments of the branch, not its commits. Raises ``NotFoundError``.
    """
    if at == EMPTY:
        return None
    if not via:
        return locate(db, of, at.hash)
    tip = pointer(db, of, via)
    segment, base, _, last = _runs(db, tip, at.seq - 1)[-1]
    row = db.execute(_HASH, (segment, at.seq - base)).fetchone() if base <= at.seq <= base + last else None
    if row is None or row[0].hex() != at.hash:
        raise on_branch(at, via)
    return Place(segment, at.seq - base)


def locate(db: Connection, of: Key, hash: str) -> Place:
    """Where the commit of that hash stands in the session's family, in the session's own segments if it can be."""
    if not whole_hash(hash):
        raise no_commit(hash, of.id)
    raw = bytes.fromhex(hash)
    # Mostly it is where one of its branches ends.
    row = db.execute(_TIP, (of.session, raw)).fetchone()
    row = row or db.execute(_PLACES, (raw, raw, of.family, of.session)).fetchone()
    if row is None:
        raise no_commit(hash, of.id)
    return Place(*row)


def find_prefix(db: Connection, prefix: str, session: str) -> tuple[str, Commit]:
    """(session id, commit) of a hash prefix; of a commit that is there several times, the one stored first."""
    low, high = prefix_range(prefix)
    family = key(db, session).family if session else None
    found = db.execute(_PREFIX, (low, high, family)).fetchall()
    if len(found) != 1:
        raise ambiguous(prefix, [hash.hex() for hash, _ in found])
    arrival = found[0][1]
    base, *row = db.execute(_ARRIVED, (arrival,)).fetchone()
    return owner(db, arrival), from_rows([tuple(row)], base)[0]


def owner(db: Connection, arrival: int) -> str:
    """The session that stored a commit; where it was deleted, the first of its family that is there."""
    id: str = db.execute(_OWNER, (arrival,)).fetchone()[0]
    return id


def _runs(db: Connection, at: Place, since: int) -> list[tuple[int, int, int, int]]:
    """(segment, base, first position, last position) of the runs that hold what is after ``since``, newest first."""
    runs: list[tuple[int, int, int, int]] = []
    segment: int | None
    segment, last = at
    while segment is not None:
        row = db.execute(_SEGMENT, (segment,)).fetchone()
        if row is None:
            raise damaged(f"segment {segment} does not exist")
        base, parent, position = row
        runs.append((segment, base, max(0, since + 1 - base), last))
        if base <= since + 1:
            break
        segment, last = parent, position
    return runs


def _info(row: tuple[Any, ...]) -> SessionInfo:
    id, name, created, updated, seq, hash, settings, branch, family, parent, purpose = row
    layer = canonical.decode(settings, dict[str, str])
    return SessionInfo(id, name, created, updated, seq + 1, head(hash, seq), layer, branch, family, parent, purpose)
