"""Responses found by what is visible of them, in a SQLite log.

Promises: a response whose commits were removed, or whose session was deleted, is not found. Must not: know what a
digest is of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from thinkback.log.protocol import Seen
from thinkback.model.commits import Head
from thinkback.stores.sqlite_append import Appends
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_open import Connection

_FIND = "SELECT head, response FROM sightings WHERE scope = ? AND digest = ? ORDER BY head DESC LIMIT ?"
_SEEN = """
SELECT n.id, g.base + c.position, c.hash, r.response, c.segment, c.position, (
    SELECT b.name FROM branches AS b
    WHERE b.session = g.session AND b.segment = c.segment AND b.position >= c.position
    ORDER BY b.position, b.name LIMIT 1
)
FROM commits AS c
JOIN commits AS r ON r.arrival = ?
JOIN segments AS g ON g.segment = c.segment
JOIN sessions AS n ON n.session = g.session AND n.name IS NOT NULL
WHERE c.arrival = ?
"""
# A branch of the session that goes on from there in another segment; several may.
_BEHIND = """
WITH RECURSIVE behind (segment) AS (
    SELECT segment FROM segments WHERE parent_segment = ? AND parent_position >= ?
    UNION
    SELECT g.segment FROM behind AS b JOIN segments AS g ON g.parent_segment = b.segment
)
SELECT b.name FROM behind JOIN branches AS b ON b.segment = behind.segment
JOIN sessions AS n ON n.session = b.session WHERE n.id = ? ORDER BY b.name LIMIT 1
"""


class SqliteRecognition:
    """The sightings of one file; ``appends`` stores those of a step with it."""

    def __init__(self, file: LogFile, appends: Appends) -> None:
        self._file = file
        self.record = appends.record
        self.record_all = appends.record_all

    def lookup(self, scope: bytes, digests: Sequence[bytes], limit: int = 3) -> list[Seen]:
        """The responses seen in ``scope`` under any of ``digests``, at most ``limit`` for each, newest first."""
        found: list[Seen] = []
        with self._file.read() as db:
            for digest in digests:
                places = db.execute(_FIND, (scope, digest, limit)).fetchall()
                found += (seen for place in places for seen in _seen(db, digest, place))
        return found


def _seen(db: Connection, digest: bytes, place: tuple[int, int]) -> Iterator[Seen]:
    """The response at (last commit, response), if it is there."""
    last, response_at = place
    for id, seq, hash, response, segment, position, branch in db.execute(_SEEN, (response_at, last)).fetchall():
        name = _behind(db, segment, position, id) if branch is None else branch
        yield Seen(digest, id, name, Head(hash.hex(), seq), response)


def _behind(db: Connection, segment: int, position: int, session: str) -> str:
    """A branch of the session that stands on the place; nothing where none does."""
    row = db.execute(_BEHIND, (segment, position, session)).fetchone()
    return "" if row is None else str(row[0])
