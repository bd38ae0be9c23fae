"""Erasing, deleting and collecting in a PostgreSQL log, family by family.

Promises: each call on a family is done or not done; what others stand on stays. What was overwritten or removed is gone
for every reader at once; from the server's files it goes when the server vacuums, archives and copies expire.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from psycopg import errors

from thinkback.log.protocol import Removed
from thinkback.model.commits import Head
from thinkback.stores.postgres import index
from thinkback.stores.postgres.backup import copy_to_file
from thinkback.stores.postgres.connections import Connection, transaction
from thinkback.stores.postgres.log import Log
from thinkback.stores.postgres.places import SHORT, Family, Key, raw
from thinkback.stores.postgres.reach import Spare, cut, left_over, unreached
from thinkback.stores.postgres.refs import hold, require
from thinkback.stores.reach import Place
from thinkback.stores.rows import pack
from thinkback.stores.sealed import check_tombstones, no_commit

_ERASE = """
UPDATE thinkback.commits SET codec = %s, payload = %s
WHERE tenant = %s AND family = %s AND substring(hash FROM 1 FOR 6) = %s AND hash = %s RETURNING segment, position
"""
_ENDS = """
SELECT c.hash, g.base + c.position FROM thinkback.segments AS g
JOIN thinkback.commits AS c ON c.tenant = g.tenant AND c.family = g.family AND c.segment = g.segment
WHERE g.tenant = %s AND g.family = %s AND g.session = %s AND c.position = (
    SELECT max(l.position) FROM thinkback.commits AS l
    WHERE l.tenant = g.tenant AND l.family = g.family AND l.segment = g.segment
) ORDER BY g.segment
"""
_OF = "tenant = %s AND family = %s AND session = %s"
_UNSEE = "DELETE FROM thinkback.sightings WHERE tenant = %s AND family = %s"
_OWN_SEGMENTS = f"SELECT segment FROM thinkback.segments WHERE {_OF}"
_FORGET = (
    f"DELETE FROM thinkback.branches WHERE {_OF}",
    f"DELETE FROM thinkback.steps WHERE {_OF} AND commits = 0",
    f"UPDATE thinkback.sessions SET name = NULL, settings = '{{}}', branch = 'main', purpose = '' WHERE {_OF}",
)
_NAME = f"SELECT name FROM thinkback.sessions WHERE {_OF}"
_UNNAME = "DELETE FROM thinkback.keys WHERE tenant = %s AND key = %s AND is_name"
# A deleted session is remembered by its id while it has segments, or others descend from it.
_BURY = """
DELETE FROM thinkback.sessions AS s WHERE s.tenant = %s AND s.family = %s AND s.name IS NULL
AND NOT EXISTS (SELECT 1 FROM thinkback.segments AS g
                WHERE g.tenant = s.tenant AND g.family = s.family AND g.session = s.session)
AND NOT EXISTS (SELECT 1 FROM thinkback.sessions AS o
                WHERE o.tenant = s.tenant AND o.family = s.family AND o.session <> s.session
                AND (o.root = s.id OR o.parent = s.id))
RETURNING s.id
"""
_FREE = "DELETE FROM thinkback.keys WHERE tenant = %s AND key = %s AND NOT is_name"
# Families where a segment ends behind all branches and segments that stand on it, and those with deleted sessions.
_SUSPECTS = """
SELECT g.family FROM thinkback.segments AS g WHERE g.tenant = %(tenant)s AND (
    SELECT coalesce(max(c.position), -1) FROM thinkback.commits AS c
    WHERE c.tenant = g.tenant AND c.family = g.family AND c.segment = g.segment
) > coalesce(greatest(
    (SELECT max(b.position) FROM thinkback.branches AS b
     WHERE b.tenant = g.tenant AND b.family = g.family AND b.segment = g.segment),
    (SELECT max(h.parent_position) FROM thinkback.segments AS h
     WHERE h.tenant = g.tenant AND h.family = g.family AND h.parent_segment = g.segment)
), -2)
UNION SELECT s.family FROM thinkback.sessions AS s WHERE s.tenant = %(tenant)s AND s.name IS NULL
ORDER BY 1
"""
_ALL = "SELECT family FROM thinkback.families WHERE tenant = %s ORDER BY family"


class PostgresCare:
    """The care of one log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def erase(self, session: str, payloads: Mapping[str, bytes]) -> int:
        """Put tombstones in place of payloads, wherever in the session's family the commits stand."""
        check_tombstones(payloads)

        def work(db: Connection, of: Key) -> int:
            require(db, of)
            index.hold(db, of.tenant)
            # What is visible of a conversation is not what is stored of it any more.
            db.execute(_UNSEE, of[:2])
            erased: list[Place] = []
            for hash, payload in payloads.items():
                wanted = raw(hash)
                found = db.execute(_ERASE, (*pack(payload, erased=True), *of[:2], wanted[:SHORT], wanted)).fetchall()
                if not found:
                    raise no_commit(hash, session)
                erased += found
            index.renew(db, of[:2], erased)
            return len(payloads)

        return self._log.change(session, work)

    def ends(self, session: str) -> list[Head]:
        """The last commit of each segment of the session."""

        def work(db: Connection, of: Key) -> list[Head]:
            require(db, of)
            return [Head(hash.hex(), seq) for hash, seq in db.execute(_ENDS, of[:3], binary=True).fetchall()]

        return self._log.read(session, work)

    def delete_session(self, session: str) -> int:
        """Forget the session with its branches; returns how many commits went with it."""

        def work(db: Connection, of: Key) -> int:
            hold(db, of[:2])
            require(db, of)
            index.hold(db, of.tenant)
            for (name,) in db.execute(_NAME, of[:3]).fetchall():
                db.execute(_UNNAME, (of.tenant, name))
            for sql in _FORGET:
                db.execute(sql, of[:3])
            own = [segment for (segment,) in db.execute(_OWN_SEGMENTS, of[:3]).fetchall()]
            db.execute(_UNSEE + " AND segment = ANY(%s)", (*of[:2], own))
            return sum(spare.commits for spare in _remove(db, of[:2], left_over(db, of[:2])))

        return self._log.change(session, work)

    def gc(self, older_than: int, *, dry_run: bool = False) -> Removed:
        """Remove commits that no branch reaches and that are older than that; others may write meanwhile."""
        tenant = self._log.tenant

        def suspects(db: Connection) -> list[Family]:
            try:
                found = db.execute(_SUSPECTS, {"tenant": tenant}).fetchall()
            except errors.FeatureNotSupported:  # by a sharding server
                found = db.execute(_ALL, (tenant,)).fetchall()
            return [(tenant, family) for (family,) in found]

        def collect(db: Connection, of: Family) -> list[Spare]:
            with transaction(db):
                hold(db, of)
                spares = unreached(db, of, older_than)
                if dry_run:
                    return spares
                index.hold(db, tenant)
                return _remove(db, of, spares)

        run = self._log.pool.run
        removed = [spare for of in run(suspects) for spare in run(partial(collect, of=of))]
        return Removed(sum(spare.commits for spare in removed), sum(spare.bytes for spare in removed))

    def backup(self, path: str) -> None:
        """A copy of the tenant's log as of now, in a SQLite file, while others go on writing."""
        self._log.pool.run(lambda db: copy_to_file(db, self._log.tenant, path))


def _remove(db: Connection, of: Family, spares: list[Spare]) -> list[Spare]:
    """Take them out, and forget deleted sessions that left nothing and that nothing descends from."""
    for spare in spares:
        cut(db, of, spare)
    while buried := db.execute(_BURY, of).fetchall():
        for (id,) in buried:
            db.execute(_FREE, (of[0], id))
    return spares
