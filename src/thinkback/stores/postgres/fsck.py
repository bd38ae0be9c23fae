"""``fsck`` of a PostgreSQL log: reads all of a tenant, family by family, each as it was at one moment.

Changes nothing, and goes on after whatever is damaged. Whether pages are is for the server's own tools to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from thinkback.log.progress import Meter, Progress
from thinkback.log.protocol import Problem
from thinkback.stores.fsck import Row, audit, audit_steps, basis_problems, row_of, summary_problems
from thinkback.stores.migrations import Schema
from thinkback.stores.postgres.connections import SNAPSHOT, Connection, transaction
from thinkback.stores.postgres.rows import PostgresRows
from thinkback.stores.postgres.schema import check, version
from thinkback.stores.postgres.text import COLUMNS, given
from thinkback.stores.rows import BASED, Bases

BATCH = 1000

_FAMILIES = """
SELECT family FROM thinkback.families WHERE tenant = %(tenant)s
UNION SELECT family FROM thinkback.sessions WHERE tenant = %(tenant)s
UNION SELECT family FROM thinkback.segments WHERE tenant = %(tenant)s
UNION SELECT family FROM thinkback.branches WHERE tenant = %(tenant)s
UNION SELECT family FROM thinkback.steps WHERE tenant = %(tenant)s
UNION SELECT family FROM thinkback.commits WHERE tenant = %(tenant)s
UNION SELECT family FROM thinkback.sightings WHERE tenant = %(tenant)s
ORDER BY family
"""
_OF = "tenant = %s AND family = %s"
_COUNTED = f"""
SELECT f.sessions, f.segments,
       (SELECT coalesce(max(session), 0) FROM thinkback.sessions WHERE {_OF}),
       (SELECT coalesce(max(segment), 0) FROM thinkback.segments WHERE {_OF})
FROM thinkback.families AS f WHERE {_OF}
"""
_SESSIONS = f"SELECT session, id, name, branch FROM thinkback.sessions WHERE {_OF} ORDER BY session"
_NAMED = "SELECT 1 FROM thinkback.keys WHERE tenant = %s AND key = %s AND is_name = %s AND family = %s AND session = %s"
_BRANCH = f"SELECT 1 FROM thinkback.branches WHERE {_OF} AND session = %s AND name = %s"
_ASTRAY = """
SELECT k.key, k.is_name FROM thinkback.keys AS k WHERE k.tenant = %s AND NOT EXISTS (
    SELECT 1 FROM thinkback.sessions AS s
    WHERE s.tenant = k.tenant AND s.family = k.family AND s.session = k.session
      AND k.key = CASE WHEN k.is_name THEN s.name ELSE s.id END
)
"""
_SEGMENTS = f"""
SELECT segment, session, base, parent_segment, parent_position FROM thinkback.segments WHERE {_OF} ORDER BY segment
"""
_COMMIT = f"SELECT hash, time FROM thinkback.commits WHERE {_OF} AND segment = %s AND position = %s"
_ROWS = f"SELECT {COLUMNS} FROM thinkback.commits AS c WHERE {_OF} AND c.segment = %s ORDER BY c.position"
_BRANCHES = f"SELECT session, name, segment, position, seq, hash, time FROM thinkback.branches WHERE {_OF}"
_STEPS = f"""
SELECT id, segment, position, commits FROM thinkback.steps WHERE {_OF} AND commits > 0 ORDER BY segment, position
"""
_SIGHTINGS = f"""
SELECT segment, position, response, min(encode(digest, 'hex')) FROM thinkback.sightings WHERE {_OF}
GROUP BY segment, position, response ORDER BY segment, position
"""
_RESPONSE = f"SELECT 1 FROM thinkback.commits WHERE {_OF} AND segment = %s AND position = %s AND kind = 'response'"
_BASES = "SELECT digest, codec, text, uses FROM thinkback.bases WHERE tenant = %s ORDER BY digest"
_USES = f"""
SELECT substring(payload FROM 1 FOR 32), count(*) FROM thinkback.commits
WHERE tenant = %s AND codec = {BASED} GROUP BY 1
"""
_ENDS = f"SELECT segment, max(position) + 1 FROM thinkback.commits WHERE {_OF} GROUP BY segment"


_COMMITS_OF = "SELECT count(*) FROM thinkback.commits WHERE tenant = %s"


def fsck(db: Connection, tenant: str, schema: Schema, progress: Progress | None = None) -> Iterator[Problem]:
    """Every disagreement in a tenant's log."""
    families: list[int] = []
    meter = Meter(progress, commits_of(db, tenant) if progress else 0, "commits")
    with _snapshot(db):
        yield from _guarded(db, "migrations", (Problem("migrations", what) for what in check(db, schema)))
        yield from _guarded(db, "families", _families(db, tenant, families))
        yield from _guarded(db, "keys", _astray(db, tenant))
    with _snapshot(db):
        if schema.of(version(db, schema)) == schema:
            yield from _guarded(db, "bases", _bases(db, tenant))
        yield from _guarded(db, "summaries", summary_problems(PostgresRows(db, tenant, {})))
    for family in families:
        with _snapshot(db):
            audited = _Family(db, tenant, family, meter)
            parts = (audited.counts, audited.sessions, audited.segments, audited.branches, audited.steps)
            for part in (*parts, audited.sightings):
                yield from _guarded(db, f"family {family}", part())
    meter.end()


def commits_of(db: Connection, tenant: str) -> int:
    """How many commits the tenant has."""
    ((found,),) = db.execute(_COMMITS_OF, (tenant,)).fetchall()
    return int(found)


@contextmanager
def _snapshot(db: Connection) -> Iterator[None]:
    with transaction(db, SNAPSHOT):
        # Whoever reads the problems may take a while for each.
        db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        yield


def _families(db: Connection, tenant: str, found: list[int]) -> Iterator[Problem]:
    """Adds the families there are to ``found``, which is no problem."""
    found += (family for (family,) in db.execute(_FAMILIES, {"tenant": tenant}).fetchall())
    yield from ()


def _astray(db: Connection, tenant: str) -> Iterator[Problem]:
    """Names and ids of no session. A sharding server does not join them, and is not asked to."""
    try:
        rows = db.execute(_ASTRAY, (tenant,)).fetchall()
    except errors.FeatureNotSupported:
        db.execute("ROLLBACK TO SAVEPOINT part")
        return
    for key, is_name in rows:
        yield Problem(f"{'name' if is_name else 'id'} {given(key)}", "leads to no session that has it")


def _bases(db: Connection, tenant: str) -> Iterator[Problem]:
    uses: dict[bytes, int] = dict(db.execute(_USES, (tenant,), binary=True).fetchall())
    yield from basis_problems(db.execute(_BASES, (tenant,), binary=True), uses)


def _guarded(db: Connection, where: str, problems: Iterator[Problem]) -> Iterator[Problem]:
    """``problems``, and that they cannot be read to their end where tables or values are not what they were."""
    db.execute("SAVEPOINT part")
    try:
        yield from problems
    except (psycopg.DataError, psycopg.ProgrammingError, TypeError, ValueError) as error:
        db.execute("ROLLBACK TO SAVEPOINT part")
        yield Problem(where, f"cannot be read to its end: {error}")


class _Family:
    """What is found in one family."""

    def __init__(self, db: Connection, tenant: str, family: int, meter: Meter) -> None:
        self._db, self._of, self._meter = db, (tenant, family), meter
        self._sessions: dict[int, str | None] = {}
        self._bases: dict[int, int] = {}

    def counts(self) -> Iterator[Problem]:
        row = self._db.execute(_COUNTED, self._of * 3).fetchone()
        if row is None:
            yield Problem(f"family {self._of[1]}", "is not counted")
        elif row[0] < row[2] or row[1] < row[3]:
            what = f"counts {row[0]} sessions and {row[1]} segments, there are {row[2]} and {row[3]}"
            yield Problem(f"family {self._of[1]}", what)

    def sessions(self) -> Iterator[Problem]:
        for session, id, name, branch in self._db.execute(_SESSIONS, self._of).fetchall():
            self._sessions[session] = name
            keys = [(id, False)] if name is None else [(id, False), (name, True)]
            for key, is_name in keys:
                if not self._db.execute(_NAMED, (self._of[0], key, is_name, self._of[1], session)).fetchone():
                    yield Problem(f"session {given(id)}", f"is not found by its {'name' if is_name else 'id'}")
            if name is not None and not self._db.execute(_BRANCH, (*self._of, session, branch)).fetchone():
                yield Problem(f"session {given(id)}", f"its branch {given(branch)} does not exist")

    def segments(self) -> Iterator[Problem]:
        rows = self._db.execute(_SEGMENTS, self._of).fetchall()
        self._bases = {row[0]: row[2] for row in rows}
        for segment, session, base, above, position in rows:
            name = f"segment {segment} of family {self._of[1]}"
            if session not in self._sessions:
                yield Problem(name, f"is of session {session}, which does not exist")
            found = None if above is None else self._commit(above, position)
            if above is not None and found is None:
                yield Problem(name, f"its parent, segment {above} position {position}, does not exist")
            elif base != (0 if above is None else self._bases.get(above, 0) + position + 1):
                yield Problem(name, f"it begins at seq {base}, which does not follow its parent")
            yield from audit(name, "" if found is None else found[0].hex(), self._meter.over(self._rows(segment)))
        for segment in self._ends().keys() - self._bases.keys():
            yield Problem(
                f"segment {segment} of family {self._of[1]}", "has commits but is not a segment of any session"
            )

    def branches(self) -> Iterator[Problem]:
        for session, name, segment, position, seq, hash, time in self._db.execute(
            _BRANCHES, self._of, binary=True
        ).fetchall():
            where = f"branch {given(name)} of session {session} of family {self._of[1]}"
            if session not in self._sessions:
                yield Problem(where, "is of a session that does not exist")
            if position == -1 and self._bases.get(segment) == 0:
                expected: tuple[Any, ...] = (-1, b"", time)
            else:
                found = self._commit(segment, position)
                if found is None:
                    yield Problem(where, f"points at segment {segment} position {position}, where no commit is")
                    continue
                expected = (self._bases.get(segment, 0) + position, *found)
            if (seq, hash, time) != expected:
                yield Problem(where, f"says that its head is {hash.hex()} (seq {seq}), which is not what is there")

    def steps(self) -> Iterator[Problem]:
        steps = ((given(id), *run) for id, *run in self._db.execute(_STEPS, self._of))
        yield from audit_steps(steps, self._ends(), f" of family {self._of[1]}")

    def sightings(self) -> Iterator[Problem]:
        """Each leads to a response and to the end of the step that it came in."""
        for segment, position, response, digest in self._db.execute(_SIGHTINGS, self._of).fetchall():
            found = self._db.execute(_RESPONSE, (*self._of, segment, response)).fetchone()
            if found is None or response > position or self._commit(segment, position) is None:
                yield Problem(f"sighting {digest}", "leads to no response")

    def _ends(self) -> dict[int, int]:
        return dict(self._db.execute(_ENDS, self._of).fetchall())

    def _commit(self, segment: int, position: int) -> tuple[Any, ...] | None:
        """(hash, time) of the commit at a place."""
        return self._db.execute(_COMMIT, (*self._of, segment, position), binary=True).fetchone()

    def _rows(self, segment: int) -> Iterator[Row]:
        with self._db.cursor("rows", binary=True) as cursor:
            cursor.itersize = BATCH
            bases = Bases(PostgresRows(self._db, self._of[0], {}).bases)
            for stored in cursor.execute(_ROWS, (*self._of, segment)):
                (row,) = bases.whole([stored])
                yield row_of(row, row[3], given(row[6]))
