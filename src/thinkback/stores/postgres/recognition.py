"""Responses found by what is visible of them, in a PostgreSQL log.

Promises: a response whose commits were removed, or whose session was deleted, is not found. A look-up asks the shard of
its scope, and only for what it finds those of the families. Must not: know what a digest is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thinkback.log.protocol import Seen
from thinkback.model.commits import Head
from thinkback.stores.database import Family
from thinkback.stores.postgres.append import Appends
from thinkback.stores.postgres.connections import SNAPSHOT, Connection, transaction
from thinkback.stores.postgres.log import Log
from thinkback.stores.postgres.text import given

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


class PostgresRecognition:
    """The sightings of one log; ``appends`` stores those of a step with it."""

    def __init__(self, log: Log, appends: Appends) -> None:
        self._log = log
        self.record = appends.record

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
