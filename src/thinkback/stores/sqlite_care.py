"""Erasing, deleting, collecting and copying a SQLite log.

Promises: what was erased or deleted is in no file of the log when the call returns; what others stand on stays; a
crash leaves each call done or not done (``gc``: partly, and the log whole). Must not: know what a payload means.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing

from thinkback.errors import StoreError
from thinkback.log.protocol import Removed
from thinkback.model.commits import Head
from thinkback.stores.rows import pack
from thinkback.stores.sealed import check_tombstones, no_commit
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_open import Connection, naming_errors, new_file
from thinkback.stores.sqlite_places import head, key
from thinkback.stores.sqlite_reach import cut, left_over, pieces, unreached
from thinkback.stores.sqlite_search import changing, scrub

_FAMILY = """
SELECT c.arrival, c.hash FROM sessions AS s
JOIN segments AS g ON g.session = s.session
JOIN commits AS c ON c.segment = g.segment
WHERE s.family = ?
"""
_ENDS = """
SELECT c.hash, g.base + c.position FROM segments AS g JOIN commits AS c ON c.segment = g.segment
WHERE g.session = ? AND c.position = (SELECT max(l.position) FROM commits AS l WHERE l.segment = g.segment)
ORDER BY g.segment
"""
_ERASE = "UPDATE commits SET codec = ?, payload = ? WHERE arrival = ?"
_UNSEE = """
DELETE FROM sightings WHERE head IN (
    SELECT c.arrival FROM sessions AS s JOIN segments AS g ON g.session = s.session
    JOIN commits AS c ON c.segment = g.segment WHERE s.{} = ?
)
"""
_FORGET = (
    _UNSEE.format("session"),
    "DELETE FROM branches WHERE session = ?",
    "DELETE FROM steps WHERE session = ? AND commits = 0",
    "UPDATE sessions SET name = NULL, settings = '{}', branch = 'main', purpose = '' WHERE session = ?",
)
# A deleted session is remembered by its id while it has segments, or others descend from it.
_BURY = """
DELETE FROM sessions AS s WHERE s.name IS NULL
AND NOT EXISTS (SELECT 1 FROM segments AS g WHERE g.session = s.session)
AND NOT EXISTS (SELECT 1 FROM sessions AS o WHERE o.family = s.family AND o.session <> s.session
                AND (o.family = s.session OR o.parent = s.session))
RETURNING session
"""
_UNSWEPT = "SELECT max(unswept) FROM migrations"
_SWEPT = "UPDATE migrations SET unswept = 0"
_AT_ONCE = 5_000  # commits, so that nobody waits long for the lock


class SqliteCare:
    """The care of one file."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def erase(self, session: str, payloads: Mapping[str, bytes]) -> int:
        """Put tombstones in place of payloads, wherever in the session's family the commits stand."""
        check_tombstones(payloads)
        with self._file.write() as db:
            of = key(db, session)
            arrivals: dict[str, list[int]] = {hash: [] for hash in payloads}
            for arrival, hash in db.execute(_FAMILY, (of.family,)):
                if hash.hex() in arrivals:
                    arrivals[hash.hex()].append(arrival)
            missing = [hash for hash, found in arrivals.items() if not found]
            if missing:
                raise no_commit(missing[0], session)
            # What is visible of a conversation is not what is stored of it any more.
            db.execute(_UNSEE.format("family"), (of.family,))
            with changing(db, [arrival for found in arrivals.values() for arrival in found]):
                for hash, found in arrivals.items():
                    db.executemany(_ERASE, [(*pack(payloads[hash], erased=True), arrival) for arrival in found])
            scrub(db)
        self._sweep()
        return len(payloads)

    def ends(self, session: str) -> list[Head]:
        """The last commit of each segment of the session."""
        with self._file.read() as db:
            rows = db.execute(_ENDS, (key(db, session).session,)).fetchall()
        return [head(hash, seq) for hash, seq in rows]

    def delete_session(self, session: str) -> int:
        """Forget the session with its branches; returns how many commits went with it."""
        with self._file.write() as db:
            of = key(db, session)
            for sql in _FORGET:
                db.execute(sql, (of.session,))
            spares = left_over(db, of.family)
            for spare in spares:
                cut(db, spare.cut)
            scrub(db)
            _bury(db)
        self._sweep()
        return sum(spare.commits for spare in spares)

    def gc(self, older_than: int, *, dry_run: bool = False) -> Removed:
        """Remove commits that no branch reaches and that are older than that; others may write meanwhile."""
        with self._file.read() as db:
            spares = unreached(db, older_than)
            planned = [piece for spare in spares for piece in pieces(db, spare, _AT_ONCE)]
        if dry_run:
            return Removed(sum(spare.commits for spare in spares), sum(spare.bytes for spare in spares))
        commits = size = 0
        for piece in planned:
            with self._file.write() as db:
                removed = cut(db, piece, older_than)
            commits, size = commits + removed.commits, size + removed.bytes
        with self._file.write() as db:
            _bury(db)
        return Removed(commits, size)

    def backup(self, path: str) -> None:
        """A whole copy of the log as of now, as private as the log, while others go on writing."""
        if self._file.in_memory:
            self._file.refuse_closed()
            raise StoreError(
                "the log is in memory and has no file to copy",
                details={"path": path},
                next_actions=("export what is to be kept, or open a log at a path",),
            )
        with (
            closing(self._file.connection()) as log,
            new_file(path),
            naming_errors(path),
            closing(sqlite3.connect(path)) as copy,
        ):
            log.backup(copy)

    def _sweep(self) -> None:
        """Bring what was overwritten into the database, also what an old format left in unused space."""
        with self._file.writer() as db, naming_errors(self._file.path):
            if db.execute(_UNSWEPT).fetchone()[0]:
                db.execute("VACUUM")
                db.execute(_SWEPT)
        self._file.empty_journal()


def _bury(db: Connection) -> None:
    while db.execute(_BURY).fetchall():
        pass
