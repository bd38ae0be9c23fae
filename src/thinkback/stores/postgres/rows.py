"""The queries of a PostgreSQL log. docs/scale.md describes its tables.

Every query but the look-up of a session names one tenant and one family, so that on a sharding PostgreSQL it touches
one shard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from psycopg import errors

from thinkback.errors import StoreError
from thinkback.log.leases import Lease, Owner
from thinkback.log.protocol import MAIN, About, Seen, SessionInfo
from thinkback.log.tally import KINDS, Tally
from thinkback.model.commits import Head
from thinkback.stores.database import (
    Branch,
    CommitAddress,
    Cut,
    Family,
    Key,
    Match,
    Range,
    RepeatError,
    Segment,
    Stored,
    Tail,
    Tip,
    lease_of,
    session_info,
)
from thinkback.stores.errors import damaged, id_taken, no_session
from thinkback.stores.postgres import index
from thinkback.stores.postgres.connections import Connection
from thinkback.stores.postgres.schema import FORMAT
from thinkback.stores.postgres.text import COLUMNS, SHORT, given, raw, stored, unescaped
from thinkback.stores.rows import BASED, Bases

_KEY = "SELECT family, session FROM thinkback.keys WHERE tenant = %s AND key = %s AND is_name = %s"
_KEYS = "SELECT family, session FROM thinkback.keys WHERE tenant = %s AND key = %s ORDER BY is_name DESC LIMIT 1"
_CLAIM = """
INSERT INTO thinkback.keys (tenant, key, is_name, family, session) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_INFO = """
SELECT s.id, s.name, s.created, b.time, b.seq, b.hash, s.settings, s.branch, s.root, s.parent, s.purpose
FROM thinkback.sessions AS s
JOIN thinkback.branches AS b
  ON b.tenant = s.tenant AND b.family = s.family AND b.session = s.session AND b.name = s.branch
WHERE s.tenant = %s
"""
_ONE = _INFO + "AND s.family = %s AND s.session = %s"
_ALL = _INFO + "ORDER BY b.time DESC, s.made DESC"
_SIZES = """
SELECT s.root, sum(b.seq + 1)::bigint
FROM thinkback.sessions AS s
JOIN thinkback.branches AS b
  ON b.tenant = s.tenant AND b.family = s.family AND b.session = s.session AND b.name = s.branch
WHERE s.tenant = %s AND s.name IS NOT NULL {} GROUP BY s.family, s.root ORDER BY min(s.created), s.root
"""
_OLDER = "AND s.family IN (SELECT c.family FROM thinkback.commits AS c WHERE c.tenant = %s AND c.time < %s)"
_OF_FAMILIES = """
AND s.family IN (SELECT k.family FROM thinkback.keys AS k WHERE k.tenant = %s AND NOT k.is_name AND k.key = ANY(%s))
"""
# Only what was made from others is walked.
_OWNED = """
WITH RECURSIVE place AS (
    SELECT s.tenant, s.family, s.id, u.program, u.project, p.id AS parent
    FROM thinkback.sessions AS s
    JOIN thinkback.summaries AS u ON u.tenant = s.tenant AND u.family = s.family AND u.session = s.session
    LEFT JOIN thinkback.sessions AS p
      ON p.tenant = s.tenant AND p.family = s.family AND p.id = s.parent AND p.name IS NOT NULL
    WHERE s.tenant = %(tenant)s AND s.name IS NOT NULL
), below (family, id, program, project) AS (
    SELECT c.family, c.id, coalesce(nullif(c.program, ''), u.program), coalesce(nullif(c.project, ''), u.project)
    FROM place AS c JOIN place AS u ON u.family = c.family AND u.id = c.parent AND u.parent IS NULL
    UNION ALL
    SELECT c.family, c.id, coalesce(nullif(c.program, ''), u.program), coalesce(nullif(c.project, ''), u.project)
    FROM below AS u JOIN place AS c ON c.family = u.family AND c.parent = u.id
)
SELECT u.id FROM place AS u WHERE u.parent IS NULL AND {said}
UNION ALL SELECT u.id FROM below AS u WHERE {said}
"""
_SAID = "u.program IN (%(program)s, %(also)s) AND (%(project)s = '' OR u.project = %(project)s)"
_SAID_ANY = "(%(project)s = '' OR u.project = %(project)s)"
_OF = "tenant = %s AND family = %s AND session = %s"
_HOLD = "SELECT 1 FROM thinkback.families WHERE tenant = %s AND family = %s FOR UPDATE"
_SESSION = f"SELECT created, branch FROM thinkback.sessions WHERE {_OF} AND name IS NOT NULL"
OWNER = """
CASE WHEN s.name IS NOT NULL THEN s.id ELSE (
    SELECT h.id FROM thinkback.sessions AS h WHERE h.tenant = s.tenant AND h.family = s.family AND h.name IS NOT NULL
    ORDER BY h.session LIMIT 1
) END
"""
_BEGIN_FAMILY = """
INSERT INTO thinkback.families (tenant, family, sessions, segments) VALUES (%s, %s, 1, 0)
ON CONFLICT (tenant, family) DO UPDATE SET sessions = families.sessions + 1 RETURNING sessions
"""
_JOIN_FAMILY = """
UPDATE thinkback.families SET sessions = sessions + 1 WHERE tenant = %s AND family = %s RETURNING sessions
"""
_ROOT = f"SELECT root FROM thinkback.sessions WHERE {_OF} AND name IS NOT NULL"
_ADD_SESSION = f"""
INSERT INTO thinkback.sessions (tenant, family, session, id, name, root, parent, purpose, branch, created, settings,
                                written_by_format_5_or_later)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, {FORMAT})
"""
_ADD_SUMMARY = """
INSERT INTO thinkback.summaries (tenant, family, session, counted, turns, tokens, reasoning, last, title, models,
                                 program, project, directory, sources)
VALUES (%s, %s, %s, true, 0, 0, 0, 0, '', '{}', '', '', '', '{}')
"""
_BASES = "SELECT digest, codec, text FROM thinkback.bases WHERE tenant = %s AND digest = ANY(%s)"
_USE_LESS = "UPDATE thinkback.bases SET uses = uses - %s WHERE tenant = %s AND digest = %s"
_BASES_OF = f"""
SELECT substring(payload FROM 1 FOR 32), count(*) FROM thinkback.commits
WHERE tenant = %s AND family = %s AND segment = %s AND position > %s AND codec = {BASED} GROUP BY 1
"""
_BASIS_OF = f"""
SELECT substring(payload FROM 1 FOR 32), count(*) FROM thinkback.commits
WHERE tenant = %s AND family = %s AND substring(hash FROM 1 FOR 6) = %s AND hash = %s AND codec = {BASED} GROUP BY 1
"""
_SUMMARIES = """
SELECT u.tenant, u.family, u.session, s.id, u.counted, u.title, u.models, u.turns, u.tokens, u.reasoning, u.last,
       u.program, u.project, u.directory, u.sources, u.cost
FROM thinkback.summaries AS u
JOIN thinkback.sessions AS s ON s.tenant = u.tenant AND s.family = u.family AND s.session = u.session
WHERE u.tenant = %s AND s.name IS NOT NULL {} ORDER BY s.made
"""
_OF_IDS = """
AND (s.family, s.session) IN (
    SELECT k.family, k.session FROM thinkback.keys AS k WHERE k.tenant = %s AND NOT k.is_name AND k.key = ANY(%s)
)
"""
# Of a log that was not written to since it had an older format.
_UNSUMMED = """
SELECT tenant, family, session, id FROM thinkback.sessions AS s WHERE tenant = %s AND name IS NOT NULL {} ORDER BY made
"""
_UNCOUNTED = """
SELECT s.tenant, s.family, s.session, s.id FROM thinkback.sessions AS s
JOIN thinkback.summaries AS u ON u.tenant = s.tenant AND u.family = s.family AND u.session = s.session
WHERE s.tenant = %s AND s.family = %s AND NOT u.counted
"""
_TALLIED = f"""
SELECT {COLUMNS} FROM thinkback.commits AS c
WHERE c.tenant = %s AND c.family = %s AND c.segment = %s AND c.kind = ANY(%s) ORDER BY c.position
"""
_SETTINGS = f"UPDATE thinkback.sessions SET settings = %s WHERE {_OF} AND name IS NOT NULL"
_IS_KNOWN = f"SELECT 1 FROM thinkback.steps WHERE {_OF} AND id = %s"
_TIP = f"SELECT segment, position, seq, hash FROM thinkback.branches WHERE {_OF} AND name = %s"
_BRANCHES = f"SELECT name, segment, position, seq, hash, time FROM thinkback.branches WHERE {_OF}"
_PUT_BRANCH = """
INSERT INTO thinkback.branches (tenant, family, session, name, segment, position, seq, hash, time)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (tenant, family, session, name) DO UPDATE
SET segment = excluded.segment, position = excluded.position, seq = excluded.seq, hash = excluded.hash,
    time = excluded.time
"""
_DELETE = f"DELETE FROM thinkback.branches WHERE {_OF} AND name = %s"
_END_LEASE = f"DELETE FROM thinkback.leases WHERE {_OF} AND branch = %s"
_SWITCH = f"UPDATE thinkback.sessions SET branch = %s WHERE {_OF}"
_NUMBER = """
UPDATE thinkback.families SET segments = segments + 1 WHERE tenant = %s AND family = %s RETURNING segments
"""
_ADD_SEGMENT = """
INSERT INTO thinkback.segments (tenant, family, segment, session, base, parent_segment, parent_position)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""
_ANCESTRY = """
WITH RECURSIVE line (segment, base, last, parent_segment, parent_position) AS (
    SELECT segment, base, %(position)s::integer, parent_segment, parent_position FROM thinkback.segments
    WHERE tenant = %(tenant)s AND family = %(family)s AND segment = %(segment)s
    UNION ALL
    SELECT g.segment, g.base, l.parent_position, g.parent_segment, g.parent_position
    FROM line AS l JOIN thinkback.segments AS g
      ON g.tenant = %(tenant)s AND g.family = %(family)s AND g.segment = l.parent_segment
    WHERE l.base > %(first)s
)
SELECT segment, base, last, parent_segment FROM line ORDER BY base DESC, last DESC
"""
_RANGE = f"""
SELECT {COLUMNS} FROM thinkback.commits AS c
WHERE c.tenant = %s AND c.family = %s AND c.segment = %s AND c.position BETWEEN %s AND %s ORDER BY c.position
"""
_COMMIT = """
SELECT g.base + c.position, c.hash, c.time FROM thinkback.commits AS c
JOIN thinkback.segments AS g ON g.tenant = c.tenant AND g.family = c.family AND g.segment = c.segment
WHERE c.tenant = %s AND c.family = %s AND c.segment = %s AND c.position = %s
"""
_PLACE = """
SELECT c.segment, c.position FROM thinkback.commits AS c
JOIN thinkback.segments AS g ON g.tenant = c.tenant AND g.family = c.family AND g.segment = c.segment
WHERE c.tenant = %s AND c.family = %s AND substring(c.hash FROM 1 FOR 6) = %s AND c.hash = %s
ORDER BY g.session <> %s, c.segment LIMIT 1
"""
_MATCHES = f"""
SELECT {OWNER}, g.base, {COLUMNS} FROM thinkback.commits AS c
JOIN thinkback.segments AS g ON g.tenant = c.tenant AND g.family = c.family AND g.segment = c.segment
JOIN thinkback.sessions AS s ON s.tenant = c.tenant AND s.family = c.family AND s.session = g.session
WHERE c.tenant = %s AND {{within}} substring(c.hash FROM 1 FOR 6) BETWEEN %s AND %s AND c.hash BETWEEN %s AND %s
ORDER BY s.made, c.segment LIMIT 100
"""
_EPOCH = "SELECT coalesce(max(epoch), 0) FROM thinkback.erasures WHERE tenant = %s"
_HELD_EPOCH = "SELECT epoch FROM thinkback.erasures WHERE tenant = %s FOR SHARE"
_BEGIN_EPOCHS = "INSERT INTO thinkback.erasures (tenant, epoch) VALUES (%s, 0) ON CONFLICT DO NOTHING"
_NEW_EPOCH = """
INSERT INTO thinkback.erasures (tenant, epoch) VALUES (%s, 1)
ON CONFLICT (tenant) DO UPDATE SET epoch = erasures.epoch + 1
"""
_SESSIONS = "SELECT count(*) FROM thinkback.sessions WHERE tenant = %s AND name IS NOT NULL"
_COUNT = "SELECT count(*) FROM thinkback.commits WHERE tenant = %s"

_WITHIN = "tenant = %s AND family = %s"
_AT = f"{_WITHIN} AND segment = %s"
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
_FAMILIES = "SELECT family FROM thinkback.families WHERE tenant = %s ORDER BY family"
_SEGMENTS = """
SELECT g.segment, g.session, s.name IS NOT NULL, g.base, g.parent_segment, g.parent_position,
       (SELECT coalesce(max(c.position), -1) FROM thinkback.commits AS c
        WHERE c.tenant = g.tenant AND c.family = g.family AND c.segment = g.segment),
       (SELECT max(b.position) FROM thinkback.branches AS b
        WHERE b.tenant = g.tenant AND b.family = g.family AND b.segment = g.segment)
FROM thinkback.segments AS g
JOIN thinkback.sessions AS s ON s.tenant = g.tenant AND s.family = g.family AND s.session = g.session
WHERE g.tenant = %s AND g.family = %s
"""
_MERGES = """
SELECT segment, position, parents FROM thinkback.commits
WHERE tenant = %s AND family = %s AND length(parents) > 32
"""
_STANDING = """
SELECT segment, position FROM thinkback.commits
WHERE tenant = %s AND family = %s AND substring(hash FROM 1 FOR 6) = %s AND hash = %s
"""
_RESPONSE_END = f"""
SELECT max(n.position) FROM thinkback.commits AS n
WHERE {_AT} AND position > %s AND n.block >= 0 AND n.response = (
    SELECT response FROM thinkback.commits WHERE {_AT} AND position = %s AND response <> ''
)
"""
_TAIL = f"""
SELECT count(*), coalesce(sum(octet_length(payload)), 0)::bigint, max(CASE WHEN time >= %s::bigint THEN position END)
FROM thinkback.commits WHERE {_AT} AND position > %s
"""
_IS_NEEDED = f"""
SELECT EXISTS (SELECT 1 FROM thinkback.branches WHERE {_AT} AND position > %s)
OR EXISTS (SELECT 1 FROM thinkback.segments WHERE {_WITHIN} AND parent_segment = %s AND parent_position > %s)
"""
_REMOVE = (
    f"DELETE FROM thinkback.commits WHERE {_AT} AND position > %s",
    f"DELETE FROM thinkback.sightings WHERE {_AT} AND position > %s",
    f"DELETE FROM thinkback.steps WHERE {_AT} AND position > %s AND commits > 0",
)
_SHORTEN = f"""
UPDATE thinkback.steps SET commits = %s + 1 - position
WHERE {_AT} AND position <= %s AND position + commits > %s + 1 AND commits > 0
"""
_JOINABLE = """
SELECT t.family, t.segment FROM thinkback.steps AS t
WHERE t.tenant = %s AND t.commits > 0 AND t.stored < to_timestamp(%s) AND NOT EXISTS (
    SELECT 1 FROM thinkback.unsearched AS u
    WHERE u.tenant = t.tenant AND u.family = t.family AND u.segment = t.segment
) GROUP BY t.family, t.segment HAVING count(*) > 1
"""
_OLD_STEPS = f"""
SELECT session, id, position, commits FROM thinkback.steps
WHERE {_AT} AND commits > 0 AND stored < to_timestamp(%s) ORDER BY position FOR UPDATE
"""
_DROP_STEPS = f"DELETE FROM thinkback.steps WHERE {_OF} AND id = ANY(%s)"
_WIDEN_STEP = f"UPDATE thinkback.steps SET commits = %s WHERE {_OF} AND id = %s"
_REMOVE_SEGMENT = f"DELETE FROM thinkback.segments WHERE {_AT}"
CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
# There is one lease or none: what sums it up is a row in either case, so that the clock comes along.
_LEASE = f"""
SELECT {CLOCK}, max(owner), max(pid), max(started), max(boot), max(host), max(taken), max(deadline)
FROM thinkback.leases WHERE {_OF} AND branch = %s
"""
_ADD_LEASE = """
INSERT INTO thinkback.leases (tenant, family, session, branch, owner, pid, started, boot, host, taken, deadline)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_PUT_LEASE = f"""
UPDATE thinkback.leases SET owner = %s, pid = %s, started = %s, boot = %s, host = %s, taken = %s, deadline = %s
WHERE {_OF} AND branch = %s AND owner = %s AND deadline = %s
"""
_DROP_LEASE = f"DELETE FROM thinkback.leases WHERE {_OF} AND branch = %s AND owner = %s"
_ERASE = """
UPDATE thinkback.commits SET codec = %s, payload = %s
WHERE tenant = %s AND family = %s AND substring(hash FROM 1 FOR 6) = %s AND hash = %s RETURNING segment, position
"""
_IS_SIGHTED = f"SELECT 1 FROM thinkback.sightings WHERE {_AT} LIMIT 1"
_UNSEE = f"DELETE FROM thinkback.sightings WHERE {_WITHIN}"
_FORGET = (
    f"DELETE FROM thinkback.branches WHERE {_OF}",
    f"DELETE FROM thinkback.leases WHERE {_OF}",
    f"DELETE FROM thinkback.summaries WHERE {_OF}",
    f"DELETE FROM thinkback.steps WHERE {_OF} AND commits = 0",
    f"UPDATE thinkback.sessions SET name = NULL, settings = '{{}}', branch = 'main', purpose = '' WHERE {_OF}",
)
_OWN_SEGMENTS = f"SELECT segment FROM thinkback.segments WHERE {_OF}"
_LATEST = """
SELECT coalesce(max(c.time), 0) FROM thinkback.segments AS g
JOIN thinkback.commits AS c ON c.tenant = g.tenant AND c.family = g.family AND c.segment = g.segment
WHERE g.tenant = %s AND g.family = %s AND g.session = %s
"""
_IS_UNCOUNTED = f"SELECT 1 FROM thinkback.summaries WHERE {_OF} AND NOT counted FOR UPDATE"
_PUT_TALLY = f"""
UPDATE thinkback.summaries
SET counted = true, title = %s, models = %s, turns = %s, tokens = %s, reasoning = %s, last = %s WHERE {_OF}
"""
_PUT_ABOUT = f"""
UPDATE thinkback.summaries SET program = %s, project = %s, directory = %s, sources = %s, cost = %s WHERE {_OF}
"""
_UNCOUNT = f"""
UPDATE thinkback.summaries SET counted = false, title = ''
WHERE {_WITHIN} AND session IN (SELECT session FROM thinkback.segments WHERE {_AT})
"""
_UNCOUNT_FAMILY = f"UPDATE thinkback.summaries SET counted = false, title = '' WHERE {_WITHIN}"
_NAME = f"SELECT name FROM thinkback.sessions WHERE {_OF}"
_RELABEL = f"UPDATE thinkback.sessions SET name = %s, purpose = %s WHERE {_OF}"
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

_SIGHTED = """
SELECT d.at, s.family, s.segment, s.position, s.response
FROM unnest(%s::bytea[]) WITH ORDINALITY AS d (digest, at) CROSS JOIN LATERAL (
    SELECT stored, family, segment, position, response FROM thinkback.sightings
    WHERE tenant = %s AND scope = %s AND digest = d.digest ORDER BY stored DESC LIMIT %s
) AS s ORDER BY d.at, s.stored DESC
"""
# The branch: one that ends in the commit's segment, else one that goes on from there in others.
_SEEN = """
SELECT c.segment, c.position, r.position, n.id, g.base + c.position, c.hash, r.response, coalesce(
    (SELECT b.name FROM thinkback.branches AS b
     WHERE b.tenant = c.tenant AND b.family = c.family AND b.session = g.session AND b.segment = c.segment
       AND b.position >= c.position
     ORDER BY b.position, b.name LIMIT 1),
    (WITH RECURSIVE behind (segment) AS (
         SELECT h.segment FROM thinkback.segments AS h
         WHERE h.tenant = c.tenant AND h.family = c.family AND h.parent_segment = c.segment
           AND h.parent_position >= c.position
         UNION
         SELECT h.segment FROM behind JOIN thinkback.segments AS h
           ON h.tenant = c.tenant AND h.family = c.family AND h.parent_segment = behind.segment
     )
     SELECT b.name FROM behind JOIN thinkback.branches AS b
       ON b.tenant = c.tenant AND b.family = c.family AND b.segment = behind.segment
     WHERE b.session = g.session ORDER BY b.name LIMIT 1),
    '')
FROM thinkback.commits AS c
JOIN thinkback.commits AS r ON r.tenant = c.tenant AND r.family = c.family AND r.segment = c.segment
JOIN thinkback.segments AS g ON g.tenant = c.tenant AND g.family = c.family AND g.segment = c.segment
JOIN thinkback.sessions AS n ON n.tenant = c.tenant AND n.family = c.family AND n.session = g.session
JOIN unnest(%s::integer[], %s::integer[], %s::integer[]) AS w (segment, position, response)
  ON c.segment = w.segment AND c.position = w.position AND r.position = w.response
WHERE c.tenant = %s AND c.family = %s AND n.name IS NOT NULL
"""


class PostgresRows:
    """A transaction on ``db`` of the log of ``tenant``. Where sessions are found is remembered in ``keys``.

    ``may_be_old``: the log may still have an older format, as nobody had written to it when it was opened.
    """

    def __init__(self, db: Connection, tenant: str, keys: dict[str, Key], may_be_old: bool = True) -> None:
        self.db, self.tenant, self._may_be_old = db, tenant, may_be_old
        self._keys, self._found = keys, set[str]()
        self._remembered = set[str]()

    def key(self, session: str) -> Key | None:
        """Where a session is never changes, but it may be deleted and its id given to another."""
        known = self._keys.get(session)
        if known is not None:
            if session not in self._found:
                self._remembered.add(session)
            return known
        row = self.db.execute(_KEY, (self.tenant, stored(session), False)).fetchone()
        if row is None:
            return None
        self._found.add(session)
        self._keys[session] = Key(self.tenant, row[0], row[1], session)
        return self._keys[session]

    def forget(self) -> bool:
        """Forget the sessions that were remembered and not looked up; whether there were any."""
        for session in self._remembered:
            self._keys.pop(session, None)
        return bool(self._remembered)

    def info(self, name: str) -> SessionInfo | None:
        at = self.db.execute(_KEYS, (self.tenant, stored(name))).fetchone()
        row = None if at is None else self.db.execute(_ONE, (self.tenant, *at), binary=True).fetchone()
        return None if row is None else session_info(_given(row))

    def infos(self, most: int | None = None) -> list[SessionInfo]:
        rows = self.db.execute(f"{_ALL} LIMIT %s", (self.tenant, most), binary=True).fetchall()
        return [session_info(_given(row)) for row in rows]

    def family_sizes(self, before: int | None, ids: Collection[str] | None) -> list[tuple[str, int]]:
        wanted, values = "", list[object]([self.tenant])
        if before is not None:
            wanted, values = wanted + _OLDER, [*values, self.tenant, before]
        if ids is not None:
            wanted, values = wanted + _OF_FAMILIES, [*values, self.tenant, [*map(stored, ids)]]
        rows = self.db.execute(_SIZES.format(wanted), values).fetchall()
        return [(given(root), int(commits)) for root, commits in rows]

    def family_infos(self, roots: Collection[str]) -> list[SessionInfo]:
        values = (self.tenant, self.tenant, [*map(stored, roots)])
        rows = self.db.execute(f"{_INFO} {_OF_FAMILIES} ORDER BY s.created, s.id", values, binary=True).fetchall()
        return [session_info(_given(row)) for row in rows]

    def owned(self, program: str, project: str, is_own: bool) -> list[str]:
        if not self._has("summaries"):
            nobody = not project and (is_own or not program)
            return [info.id for info in self.infos()] if nobody else []
        said = {"program": stored(program), "also": "" if is_own else stored(program), "project": stored(project)}
        sql = _OWNED.format(said=_SAID if program else _SAID_ANY)
        return [given(id) for (id,) in self.db.execute(sql, {"tenant": self.tenant, **said}).fetchall()]

    def count_sessions(self) -> int:
        ((count,),) = self.db.execute(_SESSIONS, (self.tenant,)).fetchall()
        return int(count)

    def has_id(self, id: str) -> bool:
        return self._is_there(_KEY, self.tenant, stored(id), False)

    def has_name(self, name: str) -> bool:
        return self._is_there(_KEY, self.tenant, stored(name), True)

    def has_step(self, of: Key, id: str) -> bool:
        return self._is_there(_IS_KNOWN, *of[:3], stored(id))

    def add_session(self, id: str, name: str, time: int, parent: Key | None, purpose: str, settings: str) -> Key:
        of, root, above = self._numbered(id, parent), id, ""
        if parent is not None:
            row = self.db.execute(_ROOT, parent[:3]).fetchone()
            if row is None:
                raise no_session(parent.id)
            root, above = given(row[0]), parent.id
        if not self.db.execute(_CLAIM, (self.tenant, stored(name), True, *of[1:3])).rowcount:
            raise RepeatError(f"the name {name!r} leads to no session")
        if not self.db.execute(_CLAIM, (self.tenant, stored(id), False, *of[1:3])).rowcount:
            raise id_taken(id)
        self.db.execute(_ADD_SESSION, (*of[:3], *map(stored, (id, name, root, above, purpose, MAIN)), time, settings))
        self.db.execute(_ADD_SUMMARY, of[:3])
        return of

    def _numbered(self, id: str, parent: Key | None) -> Key:
        """The key of a new session; its family is held from here on."""
        family = family_of(self.tenant, id) if parent is None else parent.family
        row = self.db.execute(_JOIN_FAMILY if parent else _BEGIN_FAMILY, (self.tenant, family)).fetchone()
        if row is None:
            raise damaged(f"family {family} is not counted", session=id)
        return Key(self.tenant, family, row[0], id)

    def write_settings(self, of: Key, text: str) -> bool:
        return self.db.execute(_SETTINGS, (text, *of[:3])).rowcount > 0

    def relabel(self, of: Key, name: str, purpose: str) -> None:
        ((before,),) = self.db.execute(_NAME, of[:3]).fetchall()
        if given(before) != name:
            if not self.db.execute(_CLAIM, (self.tenant, stored(name), True, *of[1:3])).rowcount:
                raise RepeatError(f"the name {name!r} was taken")
            self.db.execute(_UNNAME, (self.tenant, before))
        self.db.execute(_RELABEL, (stored(name), stored(purpose), *of[:3]))

    def hold(self, of: Key) -> tuple[int, str] | None:
        self.db.execute(_HOLD, of[:2])
        row = self.db.execute(_SESSION, of[:3]).fetchone()
        if row is None:
            self._keys.pop(of.id, None)
            return None
        return row[0], given(row[1])

    def tip(self, of: Key, branch: str, hold: bool = False) -> Tip | None:
        query = _TIP + " FOR UPDATE" if hold else _TIP
        row = self.db.execute(query, (*of[:3], stored(branch)), binary=True).fetchone()
        return None if row is None else Tip(*row)

    def branches(self, of: Key) -> list[Branch]:
        rows = self.db.execute(_BRANCHES, of[:3], binary=True).fetchall()
        return [Branch(given(name), Tip(*tip), time) for name, *tip, time in rows]

    def put_branch(self, of: Key, branch: Branch) -> None:
        self.db.execute(_PUT_BRANCH, (*of[:3], stored(branch.name), *branch.tip, branch.time))

    def delete_branch(self, of: Key, name: str) -> None:
        self.db.execute(_DELETE, (*of[:3], stored(name)))
        self.db.execute(_END_LEASE, (*of[:3], stored(name)))

    def switch(self, of: Key, name: str) -> None:
        self.db.execute(_SWITCH, (stored(name), *of[:3]))

    def add_segment(self, of: Key, base: int, above: CommitAddress | None) -> int:
        """Holds the family's row, and with it all that changes the family's shape."""
        row = self.db.execute(_NUMBER, of[:2]).fetchone()
        if row is None:
            raise damaged(f"family {of.family} is not counted", session=of.id)
        self.db.execute(_ADD_SEGMENT, (*of[:2], row[0], of.session, base, *(above or (None, None))))
        return int(row[0])

    def ranges(self, within: Family, at: CommitAddress, since: int) -> list[Range]:
        values = {"tenant": within[0], "family": within[1], "first": since + 1, **at._asdict()}
        rows = self.db.execute(_ANCESTRY, values).fetchall()
        if not rows or (rows[-1][1] > since + 1 and rows[-1][3] is not None):
            raise damaged(f"a segment that segment {at.segment} of family {within[1]} stands on does not exist")
        return [Range(segment, base, max(0, since + 1 - base), last) for segment, base, last, _ in rows]

    def commits(self, within: Family, ranges: Sequence[Range]) -> Iterator[list[Stored]]:
        with self.db.pipeline():
            found = [
                self.db.execute(_RANGE, (*within, segment, first, last), binary=True)
                for segment, _, first, last in ranges
            ]
        bases = Bases(self.bases)
        return (bases.whole(list(unescaped(cursor.fetchall()))) for cursor in found)

    def commit_at(self, within: Family, at: CommitAddress) -> tuple[int, bytes, int] | None:
        row = self.db.execute(_COMMIT, (*within, *at), binary=True).fetchone()
        return None if row is None else (row[0], row[1], row[2])

    def place_of(self, of: Key, hash: bytes) -> CommitAddress | None:
        row = self.db.execute(_PLACE, (*of[:2], hash[:SHORT], hash, of.session)).fetchone()
        return None if row is None else CommitAddress(*row)

    def matches(self, low: bytes, high: bytes, within: Family | None) -> list[Match]:
        condition, family = ("", ()) if within is None else ("c.family = %s AND", within[1:])
        values = (self.tenant, *family, low[:SHORT], high[:SHORT], low, high)
        rows = self.db.execute(_MATCHES.replace("{within}", condition), values, binary=True).fetchall()
        first = {row[3]: row for row in reversed(rows)}.values()
        found = Bases(self.bases).whole(list(unescaped([row[2:] for row in first])))
        return [Match(given(session), base, commit) for (session, base, *_), commit in zip(first, found, strict=True)]

    def bases(self, digests: Sequence[bytes]) -> list[tuple[Any, ...]]:
        """Digest, codec and text of what requests share."""
        return self.db.execute(_BASES, (self.tenant, list(digests)), binary=True).fetchall()

    def _release(self, uses: Sequence[tuple[Any, ...]]) -> None:
        """Forget that so many requests that go use these bases, and those that none uses any more. Comes last."""
        for digest, count in sorted(uses):
            self.db.execute(_USE_LESS, (count, self.tenant, digest))
        if uses:
            self.db.execute("DELETE FROM thinkback.bases WHERE tenant = %s AND uses <= 0", (self.tenant,))

    def count(self) -> int:
        ((count,),) = self.db.execute(_COUNT, (self.tenant,)).fetchall()
        return int(count)

    def epoch(self) -> int:
        if not self._has("erasures"):
            return 0
        ((epoch,),) = self.db.execute(_EPOCH, (self.tenant,)).fetchall()
        return int(epoch)

    def count_erasure(self) -> None:
        """Waits for steps that are being stored and have seen the epoch before; those that come wait for this."""
        self.db.execute(_NEW_EPOCH, (self.tenant,))

    def hold_epoch(self) -> int:
        """The epoch, which stays until the transaction ends."""
        ((epoch,),) = self.db.execute(_HELD_EPOCH, (self.tenant,)).fetchall()
        return int(epoch)

    def begin_epochs(self) -> None:
        """Have a row of the epoch that can be held."""
        self.db.execute(_BEGIN_EPOCHS, (self.tenant,))

    def is_sighted(self, of: Key, segment: int) -> bool:
        return self.db.execute(_IS_SIGHTED, (*of[:2], segment)).fetchone() is not None

    def seen(self, scope: bytes, digests: Sequence[bytes], limit: int) -> list[Seen]:
        """Asks the shard of the scope, and only for what it finds those of the families."""
        values = (list(digests), self.tenant, scope, limit)
        sighted = self.db.execute(_SIGHTED, values, binary=True).fetchall()
        found: dict[tuple[int, ...], tuple[str, str, Head, str]] = {}
        for family in dict.fromkeys(row[1] for row in sighted):
            places = dict.fromkeys(row[2:] for row in sighted if row[1] == family)
            columns = [list(column) for column in zip(*places, strict=True)]
            for *place, id, seq, hash, response, branch in self.db.execute(
                _SEEN, (*columns, self.tenant, family), binary=True
            ).fetchall():
                found[family, *place] = given(id), given(branch), Head(hash.hex(), seq), given(response)
        return [Seen(digests[row[0] - 1], *found[row[1:]]) for row in sighted if row[1:] in found]

    def suspects(self) -> list[Family]:
        try:
            with self.db.transaction():
                found = self.db.execute(_SUSPECTS, {"tenant": self.tenant}).fetchall()
        except errors.FeatureNotSupported:  # by a sharding server
            found = self.db.execute(_FAMILIES, (self.tenant,)).fetchall()
        return [(self.tenant, family) for (family,) in found]

    def segments_of_old_steps(self, before: int) -> list[tuple[Family, int]]:
        """But for segments that the search index lacks steps of: it finds them as they were stored."""
        rows = self.db.execute(_JOINABLE, (self.tenant, before / 1_000_000)).fetchall()
        return [((self.tenant, family), segment) for family, segment in rows]

    def join_steps(self, within: Family, segment: int, before: int, most: int) -> int:
        joined = 0
        runs: list[tuple[int, str, int, int, list[str]]] = []
        for session, id, position, commits in self.db.execute(
            _OLD_STEPS, (*within, segment, before / 1_000_000)
        ).fetchall():
            if runs and runs[-1][0] == session and runs[-1][2] == position and runs[-1][3] + commits <= most:
                owner, first, _, count, more = runs[-1]
                runs[-1] = owner, first, position + commits, count + commits, [*more, id]
            else:
                runs.append((session, id, position + commits, commits, []))
        for session, first, _, count, more in runs:
            if more:
                joined += self.db.execute(_DROP_STEPS, (*within, session, more)).rowcount
                self.db.execute(_WIDEN_STEP, (count, *within, session, first))
        return joined

    def hold_family(self, within: Family) -> None:
        self.db.execute(_HOLD, within)

    def segments(self, within: Family) -> list[Segment]:
        rows = self.db.execute(_SEGMENTS, within).fetchall()
        return [
            Segment(
                segment, session, is_there, base, None if above is None else CommitAddress(above, at), last, reached
            )
            for segment, session, is_there, base, above, at, last, reached in rows
        ]

    def merges(self, within: Family) -> list[tuple[CommitAddress, bytes]]:
        rows = self.db.execute(_MERGES, within, binary=True).fetchall()
        return [(CommitAddress(segment, position), parents) for segment, position, parents in rows]

    def standing(self, within: Family, hashes: Sequence[str]) -> dict[str, list[CommitAddress]]:
        found = {}
        for hash in hashes:
            wanted = raw(hash)
            rows = self.db.execute(_STANDING, (*within, wanted[:SHORT], wanted)).fetchall()
            found[hash] = [CommitAddress(*row) for row in rows]
        return found

    def response_end(self, within: Family, at: tuple[int, int]) -> int:
        ((end,),) = self.db.execute(_RESPONSE_END, (*within, *at, *within, *at)).fetchall()
        return at[1] if end is None else int(end)

    def tail(self, within: Family, cut: Cut, older_than: int | None) -> Tail:
        (row,) = self.db.execute(_TAIL, (older_than, *within, cut.segment, cut.after)).fetchall()
        return Tail(*row)

    def is_needed(self, within: Family, cut: Cut) -> bool:
        kept = *within, cut.segment, -2 if cut.last is None else cut.last
        ((found,),) = self.db.execute(_IS_NEEDED, (*kept, *kept)).fetchall()
        return bool(found)

    def summaries(self, ids: Collection[str] | None = None) -> list[tuple[Key, Tally | None, About]]:
        found: list[tuple[Key, Tally | None, About]] = []
        wanted, values = "", list[object]([self.tenant])
        if ids is not None:
            wanted, values = _OF_IDS, [self.tenant, self.tenant, [*map(stored, ids)]]
        if not self._has("summaries"):
            rows = self.db.execute(_UNSUMMED.format(wanted), values).fetchall()
            return [(Key(row[0], row[1], row[2], given(row[3])), None, About()) for row in rows]
        for row in self.db.execute(_SUMMARIES.format(wanted), values).fetchall():
            program, project, directory, sources, cost = row[11:]
            about = About(given(program), given(project), given(directory), tuple(map(given, sources)), cost)
            tally = Tally(given(row[5]), tuple(sorted(map(given, row[6]))), *row[7:11])
            found.append((Key(row[0], row[1], row[2], given(row[3])), tally if row[4] else None, about))
        return found

    def tallied(self, of: Key) -> Iterator[list[Stored]]:
        for (segment,) in self.db.execute(f"{_OWN_SEGMENTS} ORDER BY segment", of[:3]).fetchall():
            found = self.db.execute(_TALLIED, (*of[:2], segment, sorted(KINDS)), binary=True).fetchall()
            yield list(unescaped(found))

    def latest(self, of: Key) -> int:
        ((last,),) = self.db.execute(_LATEST, of[:3]).fetchall()
        return int(last)

    def uncounted(self, within: Family) -> list[Key]:
        rows = self.db.execute(_UNCOUNTED, within).fetchall()
        return [Key(row[0], row[1], row[2], given(row[3])) for row in rows]

    def hold_uncounted(self, of: Key) -> bool:
        """Holds the row: an append that is under way is seen by the next statement, or adds to what this transaction
        puts there."""
        return self._is_there(_IS_UNCOUNTED, *of[:3])

    def put_tally(self, of: Key, tally: Tally) -> None:
        self.db.execute(_PUT_TALLY, (*tally_row(tally), *of[:3]))

    def put_about(self, of: Key, about: About) -> bool:
        said = *map(stored, (about.program, about.project, about.directory)), list(map(stored, about.sources))
        return self.db.execute(_PUT_ABOUT, (*said, about.cost, *of[:3])).rowcount > 0

    def remove(self, within: Family, cut: Cut) -> None:
        index.hold(self.db, self.tenant)
        self.db.execute(_UNCOUNT, (*within, *within, cut.segment))
        uses = self.db.execute(_BASES_OF, (*within, cut.segment, cut.after), binary=True).fetchall()
        for sql in _REMOVE:
            self.db.execute(sql, (*within, cut.segment, cut.after))
        self.db.execute(_SHORTEN, (cut.after, *within, cut.segment, cut.after, cut.after))
        if cut.last is None:
            self.db.execute(_REMOVE_SEGMENT, (*within, cut.segment))
        index.cut(self.db, within, cut.segment, cut.after)
        self._release(uses)

    def lease(self, of: Key, branch: str, now: int) -> tuple[int, Lease | None]:
        """The clock is the server's: the hosts of a team need not agree."""
        if not self._has("leases"):
            return now, None
        ((clock, *lease),) = self.db.execute(_LEASE, (*of[:3], stored(branch))).fetchall()
        return clock, lease_of(lease if lease[0] is not None else None, clock)

    def put_lease(self, of: Key, branch: str, lease: Lease, instead_of: Lease | None) -> bool:
        at, values = (*of[:3], stored(branch)), (*lease.owner, lease.taken, lease.deadline)
        if instead_of is None:
            return self.db.execute(_ADD_LEASE, (*at, *values)).rowcount == 1
        seen = instead_of.owner.id, instead_of.deadline
        return self.db.execute(_PUT_LEASE, (*values, *at, *seen)).rowcount == 1

    def drop_lease(self, of: Key, branch: str, owner: Owner) -> None:
        self.db.execute(_DROP_LEASE, (*of[:3], stored(branch), owner.id))

    def erase(self, of: Key, tombstones: Mapping[str, tuple[int, bytes]], *, unsees: bool) -> Collection[str]:
        index.hold(self.db, self.tenant)
        if unsees:
            self.db.execute(_UNSEE, of[:2])
        self.db.execute(_UNCOUNT_FAMILY, of[:2])
        erased: dict[str, list[tuple[int, int]]] = {}
        uses: list[tuple[Any, ...]] = []
        for hash, tombstone in tombstones.items():
            wanted = raw(hash)
            uses += self.db.execute(_BASIS_OF, (*of[:2], wanted[:SHORT], wanted), binary=True).fetchall()
            if found := self.db.execute(_ERASE, (*tombstone, *of[:2], wanted[:SHORT], wanted)).fetchall():
                erased[hash] = [(segment, position) for segment, position in found]
        index.renew(self.db, of[:2], [place for places in erased.values() for place in places])
        self._release(uses)
        return erased

    def scrub(self) -> None:
        """An entry that was changed is gone for every reader, and from the files when the server vacuums."""

    def forget_session(self, of: Key) -> None:
        for (name,) in self.db.execute(_NAME, of[:3]).fetchall():
            self.db.execute(_UNNAME, (self.tenant, name))
        for sql in _FORGET:
            self.db.execute(sql, of[:3])
        own = [segment for (segment,) in self.db.execute(_OWN_SEGMENTS, of[:3]).fetchall()]
        self.db.execute(_UNSEE + " AND segment = ANY(%s)", (*of[:2], own))

    def bury(self, within: Family) -> None:
        while buried := self.db.execute(_BURY, within).fetchall():
            for (id,) in buried:
                self.db.execute(_FREE, (self.tenant, id))

    def _has(self, table: str) -> bool:
        """Whether a table is there: not in a log that was not written to since it had an older format."""
        return not self._may_be_old or self._is_there(f"SELECT 1 WHERE to_regclass('thinkback.{table}') IS NOT NULL")

    def _is_there(self, sql: str, *values: object) -> bool:
        return self.db.execute(sql, values).fetchone() is not None


def tally_row(tally: Tally) -> tuple[str, list[str], int, int, int, int]:
    """Title, models, turns, tokens, reasoning, last."""
    models = list(map(stored, tally.models))
    return stored(tally.title), models, tally.turns, tally.tokens, tally.reasoning, tally.last


def family_of(tenant: str, id: str) -> int:
    """The number of the family that a session begins: spread evenly, and found without asking anybody."""
    digest = hashlib.sha256(f"{tenant}\n{id}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def refuse_tenant(tenant: str) -> None:
    """Raise ``StoreError`` for a tenant that cannot be a key."""
    if not tenant or "\0" in tenant or len(tenant.encode(errors="replace")) > 200:
        raise StoreError(
            f"{tenant!r} is not a tenant's name", next_actions=("use 1 to 200 bytes of text; short names save space",)
        )


def _given(row: tuple[Any, ...]) -> list[Any]:
    """A row of ``_INFO``; its settings are JSON and were stored as they are."""
    return [given(value) if type(value) is str and at != 6 else value for at, value in enumerate(row)]
