"""Responses found by what is visible of them, in a PostgreSQL log.

Promises: a response whose commits were removed, or whose session was deleted, is not found. A look-up asks the shard of
its scope, and only for what it finds those of the families. Must not: know what a digest is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from thinkback.errors import NotFoundError, StoreError
from thinkback.log.protocol import MAIN, Entry, Seen
from thinkback.model.commits import Head
from thinkback.stores.postgres import sessions
from thinkback.stores.postgres.append import LOOKS, Appends, OvertakenError, append_inside
from thinkback.stores.postgres.connections import SNAPSHOT, Connection, transaction
from thinkback.stores.postgres.log import Log
from thinkback.stores.postgres.places import Family, Key, Place, find, given, key, stored
from thinkback.stores.postgres.refs import add_branch, hold, require
from thinkback.stores.sealed import EMPTY, check_entry, check_sealed, check_text, damaged

_FIND = """
SELECT d.at, s.family, s.segment, s.position, s.response
FROM unnest(%s::bytea[]) WITH ORDINALITY AS d (digest, at) CROSS JOIN LATERAL (
    SELECT stored, family, segment, position, response FROM thinkback.sightings
    WHERE tenant = %s AND scope = %s AND digest = d.digest ORDER BY stored DESC LIMIT %s
) AS s ORDER BY d.at, s.stored DESC
"""
_SEEN = """
SELECT c.segment, c.position, r.position, n.id, g.base + c.position, c.hash, r.response, (
    SELECT b.name FROM thinkback.branches AS b
    WHERE b.tenant = c.tenant AND b.family = c.family AND b.session = g.session AND b.segment = c.segment
      AND b.position >= c.position
    ORDER BY b.position, b.name LIMIT 1
)
FROM thinkback.commits AS c
JOIN thinkback.commits AS r ON r.tenant = c.tenant AND r.family = c.family AND r.segment = c.segment
JOIN thinkback.segments AS g ON g.tenant = c.tenant AND g.family = c.family AND g.segment = c.segment
JOIN thinkback.sessions AS n ON n.tenant = c.tenant AND n.family = c.family AND n.session = g.session
JOIN unnest(%s::integer[], %s::integer[], %s::integer[]) AS w (segment, position, response)
  ON c.segment = w.segment AND c.position = w.position AND r.position = w.response
WHERE c.tenant = %s AND c.family = %s AND n.name IS NOT NULL
"""
# A branch of the session that goes on from there in another segment; several may.
_BEHIND = """
WITH RECURSIVE behind (segment) AS (
    SELECT segment FROM thinkback.segments
    WHERE tenant = %(tenant)s AND family = %(family)s AND parent_segment = %(segment)s
      AND parent_position >= %(position)s
    UNION
    SELECT g.segment FROM behind AS b JOIN thinkback.segments AS g
      ON g.tenant = %(tenant)s AND g.family = %(family)s AND g.parent_segment = b.segment
)
SELECT b.name FROM behind
JOIN thinkback.branches AS b ON b.tenant = %(tenant)s AND b.family = %(family)s AND b.segment = behind.segment
JOIN thinkback.sessions AS n ON n.tenant = %(tenant)s AND n.family = %(family)s AND n.session = b.session
WHERE n.id = %(session)s ORDER BY b.name LIMIT 1
"""
_IS_KNOWN = "SELECT 1 FROM thinkback.steps WHERE tenant = %s AND family = %s AND session = %s AND id = %s"
_IS_BRANCH = "SELECT 1 FROM thinkback.branches WHERE tenant = %s AND family = %s AND session = %s AND name = %s"


class PostgresRecognition:
    """The sightings of one log; ``appends`` stores those of a step with it."""

    def __init__(self, log: Log, appends: Appends) -> None:
        self._log, self._appends = log, appends

    def record(self, entry: Entry) -> bool:
        """Append a step that may open its session and branch, with its sightings; ``False`` if the step was there."""
        check_text("step id", entry.step)
        check_sealed(entry.commits, entry.expected)
        seen = check_entry(entry)

        def append(db: Connection, of: Key) -> bool:
            return self._appends.append(db, of, entry.branch, entry.step, entry.commits, entry.expected, seen)

        def open_and_append(db: Connection) -> bool:
            with transaction(db):
                of = _opened(db, self._log.tenant, entry)
                if of is None:
                    return False
                after = append_inside(db, of, entry.branch, entry.step, entry.commits, entry.expected, seen)
            self._appends.remember(of, entry.branch, after)
            return True

        for _ in range(LOOKS):
            with suppress(NotFoundError):
                return self._log.run(entry.session, append)
            with suppress(OvertakenError):
                return self._log.pool.run(open_and_append)
        raise damaged(f"session {entry.session} takes no step", session=entry.session)

    def lookup(self, scope: bytes, digests: Sequence[bytes], limit: int = 3) -> list[Seen]:
        """The responses seen in ``scope`` under any of ``digests``, at most ``limit`` for each, newest first."""

        def work(db: Connection) -> list[Seen]:
            parameters = (list(digests), self._log.tenant, scope, limit)
            rows = db.execute(_FIND, parameters, binary=True).fetchall()
            if not rows:
                return []
            wanted: dict[int, list[tuple[int, int, int]]] = {}
            for _, family, *place in rows:
                wanted.setdefault(family, []).append((place[0], place[1], place[2]))
            with transaction(db, SNAPSHOT):
                found = {
                    (family, *place): seen
                    for family, places in wanted.items()
                    for place, seen in _seen(db, (self._log.tenant, family), places)
                }
            return [Seen(digests[row[0] - 1], *found[row[1:]]) for row in rows if row[1:] in found]

        return self._log.pool.run(work)


def _opened(db: Connection, tenant: str, entry: Entry) -> Key | None:
    """The session with the branch, made where they are not there; ``None`` if the step is. Holds the family's row."""
    try:
        of = key(db, tenant, entry.session)
        hold(db, of[:2])
        created, _ = require(db, of)
    except NotFoundError:
        if entry.expected != EMPTY:
            raise
        of, created = _begun(db, tenant, entry), entry.created
        if entry.branch == MAIN:
            return of
    if db.execute(_IS_KNOWN, (*of[:3], stored(entry.step))).fetchone():
        return None
    if not db.execute(_IS_BRANCH, (*of[:3], stored(entry.branch))).fetchone():
        add_branch(db, of, entry.branch, _standing(db, of, entry.expected, entry.via), created)
    return of


def _begun(db: Connection, tenant: str, entry: Entry) -> Key:
    """A new session, unless another process makes the same one."""
    try:
        return sessions.begin(db, tenant, entry.session, entry.name, entry.created)
    except StoreError:
        with suppress(NotFoundError):
            require(db, key(db, tenant, entry.session))
            raise OvertakenError from None
        raise


def _standing(db: Connection, of: Key, at: Head, via: str) -> Place | None:
    """Where a commit stands, on the branch that it was seen on, or wherever it is if that has moved since."""
    try:
        return find(db, of, at, via)
    except NotFoundError:
        return find(db, of, at, "")


def _seen(
    db: Connection, of: Family, places: Sequence[tuple[int, int, int]]
) -> list[tuple[tuple[int, int, int], tuple[str, str, Head, str]]]:
    """(segment, position, response's position) with (session, branch, head, response), of those that are there."""
    columns = [list(column) for column in zip(*dict.fromkeys(places), strict=True)]
    rows: list[tuple[Any, ...]] = db.execute(_SEEN, (*columns, *of), binary=True).fetchall()
    return [
        ((segment, position, first), (given(id), _branch(db, of, segment, position, id, name), head, given(response)))
        for segment, position, first, id, seq, hash, response, name in rows
        for head in (Head(hash.hex(), seq),)
    ]


def _branch(db: Connection, of: Family, segment: int, position: int, session: str, name: str | None) -> str:
    """The branch of that name; without one, another that stands on the place, or nothing."""
    if name is None:
        place = {"tenant": of[0], "family": of[1], "segment": segment, "position": position, "session": session}
        row = db.execute(_BEHIND, place).fetchone()
        name = "" if row is None else row[0]
    return given(name)
