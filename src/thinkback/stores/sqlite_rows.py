"""The queries of a SQLite log. docs/format.md describes its tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Concatenate, ParamSpec, TypeVar

from thinkback.errors import StoreError
from thinkback.log.leases import Lease, Owner
from thinkback.log.progress import Progress
from thinkback.log.protocol import About, Problem, Seen, SessionInfo
from thinkback.log.tally import KINDS, Tally
from thinkback.model import canonical
from thinkback.model.commits import Head
from thinkback.stores.database import (
    Branch,
    CommitAddress,
    Cut,
    Family,
    Key,
    Match,
    Range,
    Rows,
    Segment,
    Stored,
    Tail,
    Tip,
    lease_of,
    session_info,
)
from thinkback.stores.errors import damaged, id_taken
from thinkback.stores.rows import BASED, COLUMNS, Bases
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_index import changing, scrub
from thinkback.stores.sqlite_open import Connection, naming_errors, new_file

P = ParamSpec("P")
T = TypeVar("T")

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
# Only what it is ordered by is read of all.
_NEWEST = f"""
{_INFO} AND s.session IN (
    SELECT s.session FROM sessions AS s
    JOIN branches AS b ON b.session = s.session AND b.name = s.branch
    LEFT JOIN commits AS c ON c.segment = b.segment AND c.position = b.position
    WHERE s.name IS NOT NULL ORDER BY coalesce(c.time, s.created) DESC, s.session DESC LIMIT ?
) ORDER BY 4 DESC, s.session DESC
"""
_SIZES = """
SELECT f.id, sum(g.base + b.position + 1)
FROM sessions AS s
JOIN sessions AS f ON f.session = s.family
JOIN branches AS b ON b.session = s.session AND b.name = s.branch
JOIN segments AS g ON g.segment = b.segment
WHERE s.name IS NOT NULL {} GROUP BY s.family ORDER BY min(s.created), f.id
"""
_OLDER = """
AND s.family IN (
    SELECT o.family FROM segments AS e JOIN sessions AS o ON o.session = e.session
    WHERE EXISTS (SELECT 1 FROM commits AS c WHERE c.segment = e.segment AND c.time < ?)
)
"""
_OF_FAMILIES = "AND s.family IN (SELECT o.family FROM sessions AS o WHERE o.id IN (SELECT value FROM json_each(?)))"
# Only what was made from others is walked.
_OWNED = """
WITH RECURSIVE below (session, id, family, program, project, depth) AS (
    SELECT s.session, s.id, s.family, u.program, u.project, 0
    FROM sessions AS s JOIN summaries AS u ON u.session = s.session
    WHERE s.name IS NOT NULL AND s.session IN (SELECT parent FROM sessions WHERE parent IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.session = s.parent AND p.name IS NOT NULL)
    UNION ALL
    SELECT s.session, s.id, s.family, coalesce(nullif(u.program, ''), b.program),
           coalesce(nullif(u.project, ''), b.project), b.depth + 1
    FROM below AS b JOIN sessions AS s ON s.family = b.family AND s.parent = b.session AND s.name IS NOT NULL
    JOIN summaries AS u ON u.session = s.session
)
SELECT s.id FROM sessions AS s JOIN summaries AS u ON u.session = s.session
WHERE s.name IS NOT NULL AND {said}
  AND NOT EXISTS (SELECT 1 FROM sessions AS p WHERE p.session = s.parent AND p.name IS NOT NULL)
UNION ALL SELECT u.id FROM below AS u WHERE u.depth > 0 AND {said}
"""
_SAID = "u.program IN (?1, ?2) AND (?3 = '' OR u.project = ?3)"
_SAID_ANY = "?1 IN ('', ?2) AND (?3 = '' OR u.project = ?3)"
_FIND = _INFO + "AND (s.name = ? OR s.id = ?) ORDER BY s.name = ? DESC LIMIT 1"
_KEY = "SELECT '', family, session, id FROM sessions WHERE id = ? AND name IS NOT NULL"
_HOLD = "SELECT created, branch FROM sessions WHERE session = ? AND name IS NOT NULL"
OWNER = """
CASE WHEN s.name IS NOT NULL THEN s.id ELSE (
    SELECT h.id FROM sessions AS h WHERE h.family = s.family AND h.name IS NOT NULL ORDER BY h.session LIMIT 1
) END
"""
_NEXT = "(SELECT coalesce(max(session), 0) + 1 FROM sessions)"
# The number is the next one, so that sessions stand in the order they were made in. No row where id or name is taken.
# Not a SELECT with a number for both columns: beside ON CONFLICT SQLite looks through all sessions for it.
ADD_SESSION = f"""
INSERT INTO sessions (session, id, name, family, created, settings, branch, parent, purpose)
VALUES ({_NEXT}, ?, ?, coalesce(?, {_NEXT}), ?, ?, 'main', ?, ?)
ON CONFLICT DO NOTHING RETURNING '', family, session, id
"""
_BRANCHES = """
SELECT b.name, b.segment, b.position, coalesce(g.base, 0) + b.position, coalesce(c.hash, x''),
       coalesce(c.time, s.created)
FROM branches AS b
JOIN sessions AS s ON s.session = b.session
LEFT JOIN segments AS g ON g.segment = b.segment
LEFT JOIN commits AS c ON c.segment = b.segment AND c.position = b.position
WHERE b.session = ?
"""
_TIP = """
SELECT b.segment, b.position, coalesce(g.base, 0) + b.position, coalesce(c.hash, x'') FROM branches AS b
LEFT JOIN segments AS g ON g.segment = b.segment
LEFT JOIN commits AS c ON c.segment = b.segment AND c.position = b.position
WHERE b.session = ? AND b.name = ?
"""
PUT_BRANCH = """
INSERT INTO branches (session, name, segment, position) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET segment = excluded.segment, position = excluded.position
"""
ADD_SEGMENT = """
INSERT INTO segments (session, base, parent_segment, parent_position) VALUES (?, ?, ?, ?) RETURNING segment
"""
# A segment and those below it, down to the one where a seq is.
_LINE = """
WITH RECURSIVE line (segment, base, last, above, position) AS (
    SELECT segment, base, ?, parent_segment, parent_position FROM segments WHERE segment = ?
    UNION ALL
    SELECT g.segment, g.base, l.position, g.parent_segment, g.parent_position
    FROM line AS l JOIN segments AS g ON g.segment = l.above WHERE l.base > ?
)
SELECT segment, base, last, above FROM line
"""
_RANGE = f"SELECT {COLUMNS} FROM commits WHERE segment = ? AND position BETWEEN ? AND ? ORDER BY position"
_COMMIT = """
SELECT g.base + c.position, c.hash, c.time FROM commits AS c JOIN segments AS g ON g.segment = c.segment
WHERE c.segment = ? AND c.position = ?
"""
_COLUMNS = ", ".join(f"c.{name}" for name in COLUMNS.split(", "))
# A hash is looked for in the slim index; only rows that have it are joined.
_HASHED = "SELECT arrival FROM commits INDEXED BY commits_by_arrival WHERE hash BETWEEN ? AND ?"
_MATCHES = f"""
SELECT min(c.arrival), {OWNER}, g.base, {_COLUMNS}
FROM commits AS c
JOIN segments AS g ON g.segment = c.segment
JOIN sessions AS s ON s.session = g.session
WHERE c.arrival IN ({_HASHED}) AND s.family = coalesce(?, s.family)
GROUP BY c.hash LIMIT 100
"""
_OWN_END = """
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

_FAMILY_SEGMENTS = "FROM sessions AS s JOIN segments AS g ON g.session = s.session "
_SEGMENTS = f"""
SELECT g.segment, g.session, s.name IS NOT NULL, g.base, g.parent_segment, g.parent_position,
       (SELECT coalesce(max(c.position), -1) FROM commits AS c WHERE c.segment = g.segment),
       (SELECT max(b.position) FROM branches AS b WHERE b.segment = g.segment)
{_FAMILY_SEGMENTS} WHERE s.family = ?
"""
# Families where a segment ends behind all branches and segments that stand on it, and those with deleted sessions.
_SUSPECTS = f"""
SELECT s.family {_FAMILY_SEGMENTS}
WHERE (SELECT coalesce(max(c.position), -1) FROM commits AS c WHERE c.segment = g.segment) > max(
    (SELECT coalesce(max(b.position), -2) FROM branches AS b WHERE b.segment = g.segment),
    (SELECT coalesce(max(h.parent_position), -2) FROM segments AS h WHERE h.parent_segment = g.segment)
)
UNION SELECT family FROM sessions WHERE name IS NULL ORDER BY 1
"""
_MERGES = f"""
SELECT c.segment, c.position, c.parents {_FAMILY_SEGMENTS}
JOIN commits AS c INDEXED BY merges_by_segment ON c.segment = g.segment AND length(c.parents) > 32 WHERE s.family = ?
"""
_STANDING = f"""
SELECT c.segment, c.position {_FAMILY_SEGMENTS} JOIN commits AS c ON c.segment = g.segment
WHERE s.family = ? AND c.arrival IN (
    SELECT arrival FROM commits INDEXED BY commits_by_arrival WHERE hash = ?
)
"""
_RESPONSE_END = """
SELECT max(n.position) FROM commits AS c
JOIN commits AS n ON n.segment = c.segment AND n.position > c.position AND n.response = c.response AND n.block >= 0
WHERE c.segment = ? AND c.position = ? AND c.response <> ''
"""
_TAIL = """
SELECT count(*), coalesce(sum(length(payload)), 0), max(CASE WHEN time >= ? THEN position END)
FROM commits WHERE segment = ? AND position > ?
"""
_IS_NEEDED = """
SELECT EXISTS (SELECT 1 FROM branches WHERE segment = ? AND position > ?)
OR EXISTS (SELECT 1 FROM segments WHERE parent_segment = ? AND parent_position > ?)
"""
_ARRIVALS = "SELECT arrival FROM commits WHERE segment = ? AND position > ?"
_TRUNCATE = (
    """
    DELETE FROM sightings WHERE head IN (SELECT arrival FROM commits WHERE segment = ? AND position > ?)
    """,
    "DELETE FROM commits WHERE segment = ? AND position > ?",
    """
    DELETE FROM steps WHERE session = (SELECT session FROM segments WHERE segment = ?)
    AND segment = ? AND position > ? AND commits > 0
    """,
    """
    UPDATE steps SET commits = ? + 1 - position WHERE session = (SELECT session FROM segments WHERE segment = ?)
    AND segment = ? AND position + commits > ? + 1 AND commits > 0
    """,
)
_REMOVE = (
    # Steps without commits are remembered as long as their session: they go where it is now, or with it.
    """
    UPDATE steps SET (segment, position) = (
        SELECT b.segment, b.position + 1 FROM sessions AS s
        JOIN branches AS b ON b.session = s.session AND b.name = s.branch WHERE s.session = steps.session
    )
    WHERE segment = ? AND session IN (
        SELECT s.session FROM segments AS g JOIN sessions AS o ON o.session = g.session
        JOIN sessions AS s ON s.family = o.family WHERE g.segment = ?
    )
    """,
    "DELETE FROM segments WHERE segment = ?",
)
_BASIS = "SELECT digest, codec, text FROM bases WHERE digest = ?"
_BASES_OF = f"SELECT substr(payload, 1, 32) FROM commits WHERE segment = ? AND position > ? AND codec = {BASED}"
_BASIS_OF = f"SELECT substr(payload, 1, 32) FROM commits WHERE arrival = ? AND codec = {BASED}"
_UNCOUNT = """
UPDATE summaries SET counted = 0, title = '' WHERE session = (SELECT session FROM segments WHERE segment = ?)
"""
_UNCOUNT_FAMILY = """
UPDATE summaries SET counted = 0, title = '' WHERE session IN (SELECT session FROM sessions WHERE family = ?)
"""
_UNCOUNTED = """
SELECT '', s.family, s.session, s.id FROM sessions AS s JOIN summaries AS u ON u.session = s.session
WHERE s.family = ? AND u.counted < 2
"""
_SUMMARIES = """
SELECT '', s.family, s.session, s.id, u.counted >= 2, u.title, u.models, u.turns, u.tokens, u.reasoning, u.last,
       u.program, u.project, u.directory, u.sources, u.cost
FROM sessions AS s JOIN summaries AS u ON u.session = s.session WHERE s.name IS NOT NULL {} ORDER BY s.session
"""
_OF_IDS = "AND s.id IN (SELECT value FROM json_each(?))"
# Of a file that was not written to since it had an older format.
_UNSUMMED = "SELECT '', family, session, id FROM sessions AS s WHERE name IS NOT NULL {} ORDER BY session"
_KINDS = ", ".join(f"'{kind}'" for kind in sorted(KINDS))
_TALLIED = f"SELECT {COLUMNS} FROM commits WHERE segment = ? AND kind IN ({_KINDS}) ORDER BY position"
_LATEST = """
SELECT coalesce(max(c.time), 0) FROM segments AS g JOIN commits AS c ON c.segment = g.segment WHERE g.session = ?
"""
PUT_TALLY = """
UPDATE summaries SET counted = 2, title = ?, models = ?, turns = ?, tokens = ?, reasoning = ?, last = ?
WHERE session = ?
"""
_PUT_ABOUT = """
UPDATE summaries SET program = ?, project = ?, directory = ?, sources = ?, cost = ? WHERE session = ?
"""
ADD_SUMMARY = """
INSERT INTO summaries (title, models, turns, tokens, reasoning, last, session, program, project, directory, sources,
                       cost, counted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 2)
"""
_LEASE = "SELECT owner, pid, started, boot, host, taken, deadline FROM leases WHERE session = ? AND branch = ?"
_PUT_LEASE = """
INSERT INTO leases (session, branch, owner, pid, started, boot, host, taken, deadline)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET owner = excluded.owner, pid = excluded.pid, started = excluded.started, boot = excluded.boot,
    host = excluded.host, taken = excluded.taken, deadline = excluded.deadline
"""
_DROP_LEASE = "DELETE FROM leases WHERE session = ? AND branch = ? AND owner = ?"
_HASHES = """
SELECT c.arrival, c.hash FROM sessions AS s
JOIN segments AS g ON g.session = s.session
JOIN commits AS c ON c.segment = g.segment
WHERE s.family = ?
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
    "DELETE FROM leases WHERE session = ?",
    "DELETE FROM summaries WHERE session = ?",
    "DELETE FROM steps WHERE session = ? AND commits = 0",
    "UPDATE sessions SET name = NULL, settings = '{}', branch = 'main', purpose = '' WHERE session = ?",
)
# A deleted session is remembered by its id while it has segments, or others descend from it.
_BURY = """
DELETE FROM sessions AS s WHERE s.family = ? AND s.name IS NULL
AND NOT EXISTS (SELECT 1 FROM segments AS g WHERE g.session = s.session)
AND NOT EXISTS (SELECT 1 FROM sessions AS o WHERE o.family = s.family AND o.session <> s.session
                AND (o.family = s.session OR o.parent = s.session))
RETURNING session
"""
_UNSWEPT = "SELECT max(unswept) FROM migrations"

_IS_SIGHTED = "SELECT 1 FROM sightings WHERE head IN (SELECT arrival FROM commits WHERE segment = ?) LIMIT 1"
_SIGHTED = "SELECT head, response FROM sightings WHERE scope = ? AND digest = ? ORDER BY head DESC LIMIT ?"
# The branch: one that ends in the commit's segment, else one that goes on from there in others.
_SEEN = """
SELECT n.id, g.base + c.position, c.hash, r.response, coalesce(
    (SELECT b.name FROM branches AS b
     WHERE b.session = g.session AND b.segment = c.segment AND b.position >= c.position
     ORDER BY b.position, b.name LIMIT 1),
    (WITH RECURSIVE behind (segment) AS (
         SELECT h.segment FROM segments AS h WHERE h.parent_segment = c.segment AND h.parent_position >= c.position
         UNION
         SELECT h.segment FROM behind JOIN segments AS h ON h.parent_segment = behind.segment
     )
     SELECT b.name FROM behind JOIN branches AS b ON b.segment = behind.segment
     WHERE b.session = g.session ORDER BY b.name LIMIT 1),
    '')
FROM commits AS c
JOIN commits AS r ON r.arrival = ?
JOIN segments AS g ON g.segment = c.segment
JOIN sessions AS n ON n.session = g.session AND n.name IS NOT NULL
WHERE c.arrival = ?
"""

_PAGES = 256
"""Pages that a backup copies between two reports."""


class SqliteRows:
    """One transaction on ``db``, which keeps all other writers out: there is nothing else to hold."""

    def __init__(self, db: Connection) -> None:
        self.db = db

    def key(self, session: str) -> Key | None:
        row = self.db.execute(_KEY, (session,)).fetchone()
        return None if row is None else Key(*row)

    def info(self, name: str) -> SessionInfo | None:
        row = self.db.execute(_FIND, (name, name, name)).fetchone()
        return None if row is None else session_info(row)

    def infos(self, most: int | None = None) -> list[SessionInfo]:
        rows = self.db.execute(_LIST) if most is None else self.db.execute(_NEWEST, (most,))
        return [session_info(row) for row in rows.fetchall()]

    def family_sizes(self, before: int | None, ids: Collection[str] | None) -> list[tuple[str, int]]:
        wanted, values = "", list[object]()
        if before is not None:
            wanted, values = wanted + _OLDER, [*values, before]
        if ids is not None:
            wanted, values = wanted + _OF_FAMILIES, [*values, texts(tuple(ids))]
        return self.db.execute(_SIZES.format(wanted), values).fetchall()

    def family_infos(self, roots: Collection[str]) -> list[SessionInfo]:
        rows = self.db.execute(f"{_INFO} {_OF_FAMILIES} ORDER BY s.created, s.id", (texts(tuple(roots)),))
        return [session_info(row) for row in rows.fetchall()]

    def owned(self, program: str, project: str, is_own: bool) -> list[str]:
        if not self._is_there("SELECT 1 FROM sqlite_schema WHERE name = 'summaries'"):
            nobody = not project and (is_own or not program)
            return [info.id for info in self.infos()] if nobody else []
        values = (program, "" if is_own else program, project)
        return [id for (id,) in self.db.execute(_OWNED.format(said=_SAID if program else _SAID_ANY), values).fetchall()]

    def count_sessions(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM sessions WHERE name IS NOT NULL").fetchone()[0])

    def has_id(self, id: str) -> bool:
        return self._is_there("SELECT 1 FROM sessions WHERE id = ?", id)

    def has_name(self, name: str) -> bool:
        return self._is_there("SELECT 1 FROM sessions WHERE name = ?", name)

    def has_step(self, of: Key, id: str) -> bool:
        return self._is_there("SELECT 1 FROM steps WHERE session = ? AND id = ?", of.session, id)

    def add_session(self, id: str, name: str, time: int, parent: Key | None, purpose: str, settings: str) -> Key:
        above = (None, None) if parent is None else (parent.family, parent.session)
        values = (id, name, above[0], time, settings, above[1], purpose)
        found = self.db.execute(ADD_SESSION, values).fetchall()
        if not found:  # whoever makes a session looks for its name first, and all others are kept out since
            raise id_taken(id)
        of = Key(*found[0])
        self.db.execute(ADD_SUMMARY, (*tally_row(Tally(), of.session), *about_row(About())))
        return of

    def write_settings(self, of: Key, text: str) -> bool:
        self.db.execute("UPDATE sessions SET settings = ? WHERE session = ?", (text, of.session))
        return True

    def relabel(self, of: Key, name: str, purpose: str) -> None:
        """Nobody else writes meanwhile: the name is free."""
        self.db.execute("UPDATE sessions SET name = ?, purpose = ? WHERE session = ?", (name, purpose, of.session))

    def hold(self, of: Key) -> tuple[int, str] | None:
        found: tuple[int, str] | None = self.db.execute(_HOLD, (of.session,)).fetchone()
        return found

    def tip(self, of: Key, branch: str, hold: bool = False) -> Tip | None:
        row = self.db.execute(_TIP, (of.session, branch)).fetchone()
        return None if row is None else Tip(*row)

    def branches(self, of: Key) -> list[Branch]:
        rows = self.db.execute(_BRANCHES, (of.session,)).fetchall()
        return [Branch(name, Tip(*tip), time) for name, *tip, time in rows]

    def put_branch(self, of: Key, branch: Branch) -> None:
        self.db.execute(PUT_BRANCH, (of.session, branch.name, *branch.tip.place))

    def delete_branch(self, of: Key, name: str) -> None:
        self.db.execute("DELETE FROM branches WHERE session = ? AND name = ?", (of.session, name))
        self.db.execute("DELETE FROM leases WHERE session = ? AND branch = ?", (of.session, name))

    def switch(self, of: Key, name: str) -> None:
        self.db.execute("UPDATE sessions SET branch = ? WHERE session = ?", (name, of.session))

    def add_segment(self, of: Key, base: int, above: CommitAddress | None) -> int:
        row = self.db.execute(ADD_SEGMENT, (of.session, base, *(above or (None, None)))).fetchall()[0]
        return int(row[0])

    def ranges(self, within: Family, at: CommitAddress, since: int) -> list[Range]:
        found: list[Range] = []
        segment, last = at
        first = since + 1
        missing: int | None = segment
        for number, base, end, above in self.db.execute(_LINE, (last, segment, first)):
            found.append(Range(number, base, max(0, first - base), end))
            missing = above if base > first else None
        if missing is not None:
            raise damaged(f"segment {missing} does not exist")
        return found

    def commits(self, within: Family, ranges: Sequence[Range]) -> Iterator[list[Stored]]:
        bases = Bases(self.bases)
        for segment, _, first, last in ranges:
            yield bases.whole(self.db.execute(_RANGE, (segment, first, last)).fetchall())

    def commit_at(self, within: Family, at: CommitAddress) -> tuple[int, bytes, int] | None:
        found: tuple[int, bytes, int] | None = self.db.execute(_COMMIT, at).fetchone()
        return found

    def place_of(self, of: Key, hash: bytes) -> CommitAddress | None:
        # Mostly it is where one of its branches ends.
        row = self.db.execute(_OWN_END, (of.session, hash)).fetchone()
        row = row or self.db.execute(_PLACES, (hash, hash, of.family, of.session)).fetchone()
        return None if row is None else CommitAddress(*row)

    def matches(self, low: bytes, high: bytes, within: Family | None) -> list[Match]:
        rows = self.db.execute(_MATCHES, (low, high, None if within is None else within[1])).fetchall()
        found = Bases(self.bases).whole([tuple(stored) for _, _, _, *stored in rows])
        return [Match(session, base, commit) for (_, session, base, *_), commit in zip(rows, found, strict=True)]

    def count(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM commits").fetchone()[0])

    def epoch(self) -> int:
        return int(self.db.execute("SELECT changes FROM search_state").fetchone()[0])

    def count_erasure(self) -> None:
        """Nobody else writes from here on, until the transaction ends."""
        self.db.execute("UPDATE search_state SET changes = changes + 1")

    def is_sighted(self, of: Key, segment: int) -> bool:
        return self.db.execute(_IS_SIGHTED, (segment,)).fetchone() is not None

    def seen(self, scope: bytes, digests: Sequence[bytes], limit: int) -> list[Seen]:
        return [
            Seen(digest, session, branch, Head(hash.hex(), seq), response)
            for digest in digests
            for last, first in self.db.execute(_SIGHTED, (scope, digest, limit)).fetchall()
            for session, seq, hash, response, branch in self.db.execute(_SEEN, (first, last)).fetchall()
        ]

    def suspects(self) -> list[Family]:
        return [("", family) for (family,) in self.db.execute(_SUSPECTS)]

    def segments_of_old_steps(self, before: int) -> list[tuple[Family, int]]:
        """None: a file does not say when a step was stored."""
        return []

    def join_steps(self, within: Family, segment: int, before: int, most: int) -> int:
        return 0

    def hold_family(self, within: Family) -> None:
        pass

    def segments(self, within: Family) -> list[Segment]:
        rows = self.db.execute(_SEGMENTS, within[1:]).fetchall()
        return [
            Segment(
                segment, session, is_there, base, None if above is None else CommitAddress(above, at), last, reached
            )
            for segment, session, is_there, base, above, at, last, reached in rows
        ]

    def merges(self, within: Family) -> list[tuple[CommitAddress, bytes]]:
        rows = self.db.execute(_MERGES, within[1:])
        return [(CommitAddress(segment, position), parents) for segment, position, parents in rows]

    def standing(self, within: Family, hashes: Sequence[str]) -> dict[str, list[CommitAddress]]:
        return {
            hash: [CommitAddress(*row) for row in self.db.execute(_STANDING, (within[1], bytes.fromhex(hash)))]
            for hash in hashes
        }

    def response_end(self, within: Family, at: tuple[int, int]) -> int:
        end = self.db.execute(_RESPONSE_END, at).fetchone()[0]
        return at[1] if end is None else int(end)

    def tail(self, within: Family, cut: Cut, older_than: int | None) -> Tail:
        return Tail(*self.db.execute(_TAIL, (older_than, cut.segment, cut.after)).fetchone())

    def is_needed(self, within: Family, cut: Cut) -> bool:
        kept = cut.segment, -2 if cut.last is None else cut.last
        return bool(self.db.execute(_IS_NEEDED, (*kept, *kept)).fetchone()[0])

    def summaries(self, ids: Collection[str] | None = None) -> list[tuple[Key, Tally | None, About]]:
        wanted, values = ("", ()) if ids is None else (_OF_IDS, (texts(tuple(ids)),))
        if not self._is_there("SELECT 1 FROM sqlite_schema WHERE name = 'summaries'"):
            rows = self.db.execute(_UNSUMMED.format(wanted), values).fetchall()
            return [(Key(*row), None, About()) for row in rows]
        found = []
        for row in self.db.execute(_SUMMARIES.format(wanted), values).fetchall():
            program, project, directory, sources, cost = row[11:]
            about = About(program, project, directory, names(sources), cost)
            found.append((Key(*row[:4]), tally_of(row[5:11]) if row[4] else None, about))
        return found

    def tallied(self, of: Key) -> Iterator[list[Stored]]:
        for (segment,) in self.db.execute(
            "SELECT segment FROM segments WHERE session = ? ORDER BY segment", (of.session,)
        ).fetchall():
            yield self.db.execute(_TALLIED, (segment,)).fetchall()

    def latest(self, of: Key) -> int:
        return int(self.db.execute(_LATEST, (of.session,)).fetchone()[0])

    def uncounted(self, within: Family) -> list[Key]:
        return [Key(*row) for row in self.db.execute(_UNCOUNTED, within[1:]).fetchall()]

    def hold_uncounted(self, of: Key) -> bool:
        return self._is_there("SELECT 1 FROM summaries WHERE session = ? AND counted < 2", of.session)

    def put_tally(self, of: Key, tally: Tally) -> None:
        self.db.execute(PUT_TALLY, tally_row(tally, of.session))

    def put_about(self, of: Key, about: About) -> bool:
        self.db.execute(_PUT_ABOUT, (*about_row(about), of.session))
        return True

    def remove(self, within: Family, cut: Cut) -> None:
        segment, after = behind = cut.segment, cut.after
        self.db.execute(_UNCOUNT, (segment,))
        self._release(self.db.execute(_BASES_OF, behind).fetchall())
        values = (behind, behind, (segment, *behind), (after, segment, *behind))
        with changing(self.db, [arrival for (arrival,) in self.db.execute(_ARRIVALS, behind)]):
            for sql, parameters in zip(_TRUNCATE, values, strict=True):
                self.db.execute(sql, parameters)
        if cut.last is None:
            self.db.execute(_REMOVE[0], (segment, segment))
            self.db.execute(_REMOVE[1], (segment,))

    def lease(self, of: Key, branch: str, now: int) -> tuple[int, Lease | None]:
        try:
            row = self.db.execute(_LEASE, (of.session, branch)).fetchone()
        except sqlite3.OperationalError:
            if self._is_there("SELECT 1 FROM sqlite_schema WHERE name = 'leases'"):
                raise
            row = None  # a log that was not written to since it had an older format
        return now, lease_of(row, now)

    def put_lease(self, of: Key, branch: str, lease: Lease, instead_of: Lease | None) -> bool:
        self.db.execute(_PUT_LEASE, (of.session, branch, *lease.owner, lease.taken, lease.deadline))
        return True

    def drop_lease(self, of: Key, branch: str, owner: Owner) -> None:
        self.db.execute(_DROP_LEASE, (of.session, branch, owner.id))

    def erase(self, of: Key, tombstones: Mapping[str, tuple[int, bytes]], *, unsees: bool) -> Collection[str]:
        arrivals: dict[str, list[int]] = {}
        for arrival, hash in self.db.execute(_HASHES, (of.family,)):
            if hash.hex() in tombstones:
                arrivals.setdefault(hash.hex(), []).append(arrival)
        if unsees:
            self.db.execute(_UNSEE.format("family"), (of.family,))
        self.db.execute(_UNCOUNT_FAMILY, (of.family,))
        with changing(self.db, [arrival for found in arrivals.values() for arrival in found]):
            for hash, found in arrivals.items():
                for arrival in found:
                    self._release(self.db.execute(_BASIS_OF, (arrival,)).fetchall())
                self.db.executemany(_ERASE, [(*tombstones[hash], arrival) for arrival in found])
        return arrivals

    def bases(self, digests: Sequence[bytes]) -> Iterator[tuple[bytes, int, bytes]]:
        """Digest, codec and text of what requests share."""
        for digest in digests:
            yield from self.db.execute(_BASIS, (digest,))

    def _release(self, digests: Sequence[tuple[bytes]]) -> None:
        """Forget that requests that go use these bases, and those that none uses any more."""
        for row in digests:
            self.db.execute("UPDATE bases SET uses = uses - 1 WHERE digest = ?", row)
        if digests:
            self.db.execute("DELETE FROM bases WHERE uses <= 0")

    def scrub(self) -> None:
        scrub(self.db)

    def forget_session(self, of: Key) -> None:
        for sql in _FORGET:
            self.db.execute(sql, (of.session,))

    def bury(self, within: Family) -> None:
        while self.db.execute(_BURY, within[1:]).fetchall():
            pass

    def _is_there(self, sql: str, *values: Any) -> bool:
        return self.db.execute(sql, values).fetchone() is not None


def tally_of(row: Sequence[Any]) -> Tally:
    """A tally from title, models, turns, tokens, reasoning, last."""
    title, models, *counts = row
    return Tally(title, names(models), *counts)


def tally_row(tally: Tally, session: int) -> tuple[Any, ...]:
    """The values of ``PUT_TALLY``."""
    return tally.title, texts(tally.models), tally.turns, tally.tokens, tally.reasoning, tally.last, session


def about_row(about: About) -> tuple[Any, ...]:
    """What programs say of a session, as its summary has it."""
    return about.program, about.project, about.directory, texts(about.sources), about.cost


def texts(names: tuple[str, ...]) -> str:
    """Names as a column holds them: a JSON array."""
    return canonical.encode(names).decode()


def names(text: str) -> tuple[str, ...]:
    """The names that a column holds."""
    return canonical.decode(text, tuple[str, ...])


class SqliteDatabase:
    """The log in ``file``."""

    def __init__(self, file: LogFile) -> None:
        self.file = file

    def read(self, work: Callable[Concatenate[Rows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns, all of it seeing the log as it was at one moment."""
        with self.file.read() as db:
            return work(SqliteRows(db), *args, **kwargs)

    def peek(self, work: Callable[Concatenate[Rows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``work``, which makes one query, and return its result."""
        with self.file.read(is_one_query=True) as db:
            return work(SqliteRows(db), *args, **kwargs)

    def write(self, work: Callable[Concatenate[Rows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns, in one transaction."""
        with self.file.write() as db:
            return work(SqliteRows(db), *args, **kwargs)

    def note(self, work: Callable[Concatenate[Rows, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``write``, without waiting for the disk."""
        with self.file.write(durably=False) as db:
            return work(SqliteRows(db), *args, **kwargs)

    def is_writable(self) -> bool:
        """Tell whether a write would neither fail nor bring the file to another format first."""
        return self.file.is_writable()

    def problems(self, progress: Progress | None = None) -> Iterator[Problem]:
        """What ``fsck`` finds, on a connection of its own: the caller takes its time."""
        from thinkback.stores import sqlite_fsck  # where it is needed: a millisecond of every start

        with closing(self.file.connection()) as db, naming_errors(self.file.path):
            if self.file.is_cut_short(db):
                yield Problem("file", "its size is not a whole number of pages: its end is missing")
            db.execute("BEGIN")
            yield from sqlite_fsck.fsck(db, self.file.schema, progress)

    def sweep(self) -> None:
        """Bring what was overwritten into the database, also what an old format left in unused space."""
        with self.file.writer() as db, naming_errors(self.file.path):
            if db.execute(_UNSWEPT).fetchone()[0]:
                db.execute("VACUUM")
                db.execute("UPDATE migrations SET unswept = 0")
        self.file.empty_journal()

    def backup(self, path: str, progress: Progress | None = None) -> None:
        """A whole copy of the log as of now, as private as the log."""
        if self.file.in_memory:
            self.file.refuse_closed()
            raise StoreError(
                "the log is in memory and has no file to copy",
                details={"path": path},
                next_actions=("export what is to be kept, or open a log at a path",),
            )
        with (
            closing(self.file.connection()) as log,
            new_file(path),
            naming_errors(path),
            closing(sqlite3.connect(path)) as copy,
        ):
            if progress is None:
                log.backup(copy)
                return
            # one snapshot to the end: what others write meanwhile would begin the copy again
            log.execute("BEGIN")
            log.execute("SELECT count(*) FROM sqlite_master").fetchone()
            log.backup(copy, pages=_PAGES, progress=lambda _, rest, of: progress(of - rest, of, "pages"))

    def close(self) -> None:
        """Close every connection. Waits for an append under way."""
        self.file.close()
