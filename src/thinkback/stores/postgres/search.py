"""Search in a PostgreSQL log: filling the index from what was stored since, and finding in it.

Promises: what is searched for is never read as syntax; nothing that was stored is left out, whatever order transactions
end in; one caller fills at a time and appends never wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from thinkback.log import searching
from thinkback.log.protocol import BareHit, Hit, Query
from thinkback.log.searching import IndexEntry, Phrases, Placed
from thinkback.model import canonical
from thinkback.model.commits import Annotation, Commit
from thinkback.model.curation import ABOUT
from thinkback.stores.database import Family, Stored
from thinkback.stores.history import key
from thinkback.stores.postgres import index
from thinkback.stores.postgres.connections import Connection
from thinkback.stores.postgres.index import Indexed
from thinkback.stores.postgres.log import Log
from thinkback.stores.postgres.rows import OWNER, PostgresRows
from thinkback.stores.postgres.text import COLUMNS, SHORT, commits_of, given, raw, stored

_NEXT = """
SELECT stored, family, segment, position, commits FROM thinkback.unsearched WHERE tenant = %s
ORDER BY stored, family, segment, position LIMIT %s
"""
_TAKEN = """
DELETE FROM thinkback.unsearched WHERE tenant = %s AND stored = %s AND family = %s AND segment = %s AND position = %s
"""
_RANGE = f"""
SELECT {COLUMNS} FROM thinkback.commits AS c
WHERE tenant = %s AND family = %s AND segment = %s AND position BETWEEN %s AND %s
  AND kind NOT IN ({", ".join(repr(kind) for kind in sorted(searching.UNREAD))}) ORDER BY position
"""
_HASHED = f"""
SELECT {COLUMNS} FROM thinkback.commits AS c
WHERE tenant = %s AND family = %s AND substring(hash FROM 1 FOR 6) = %s AND hash = %s LIMIT 1
"""
_POSITION, _TIME = 0, 5  # in a row of COLUMNS
_ADVANCE = "UPDATE thinkback.searched SET arrival = %s WHERE tenant = %s"
_FORM = "SELECT form FROM thinkback.searched WHERE tenant = %s"
# How far the branches of a session reach into each segment.
_REACHED = """
WITH RECURSIVE reached (segment, position) AS (
    SELECT segment, position FROM thinkback.branches
    WHERE tenant = %(tenant)s AND family = %(family)s AND session = %(session)s
    UNION
    SELECT g.parent_segment, g.parent_position FROM reached AS r JOIN thinkback.segments AS g
      ON g.tenant = %(tenant)s AND g.family = %(family)s AND g.segment = r.segment
    WHERE g.parent_segment IS NOT NULL
)
SELECT segment, max(position) FROM reached GROUP BY segment
"""
# What those own who are asked for: found by their ids, and once for a query, not for each entry.
_OWNED = f"""
AND (family, segment) IN (
    SELECT g.family, g.segment FROM thinkback.keys AS k
    JOIN thinkback.sessions AS s ON s.tenant = k.tenant AND s.family = k.family
    JOIN thinkback.segments AS g ON g.tenant = s.tenant AND g.family = s.family AND g.session = s.session
    WHERE k.tenant = %s AND NOT k.is_name AND k.key = ANY(%s) AND {OWNER} = k.key
)
"""
_FIND = f"""
SELECT e.arrival, e.family, e.segment, e.tokens, e.names, e.unsure, {OWNER}, {COLUMNS} FROM (
    SELECT tenant, family, segment, position, arrival, time, tokens, names, words @@ %s::tsquery AS unsure
    FROM thinkback.entries WHERE tenant = %s AND words @@ %s::tsquery {{}} ORDER BY time DESC, arrival DESC LIMIT %s
) AS e
JOIN thinkback.commits AS c
  ON c.tenant = e.tenant AND c.family = e.family AND c.segment = e.segment AND c.position = e.position
JOIN thinkback.segments AS g ON g.tenant = c.tenant AND g.family = c.family AND g.segment = c.segment
JOIN thinkback.sessions AS s ON s.tenant = c.tenant AND s.family = c.family AND s.session = g.session
ORDER BY e.time DESC, e.arrival DESC
"""
_MOMENT = """
SELECT time, %s::bigint FROM thinkback.entries WHERE tenant = %s AND arrival <= %s ORDER BY arrival DESC LIMIT 1
"""


_OWNERS = f"""
SELECT DISTINCT {OWNER} FROM (
    SELECT DISTINCT family, segment FROM thinkback.entries
    WHERE tenant = %s AND words @@ %s::tsquery AND NOT words @@ %s::tsquery
) AS e
JOIN thinkback.segments AS g ON g.tenant = %s AND g.family = e.family AND g.segment = e.segment
JOIN thinkback.sessions AS s ON s.tenant = g.tenant AND s.family = g.family AND s.session = g.session
"""
_PORTION = 1000
"""Entries that are read at first where all that there are may be."""


class _Run(NamedTuple):
    """What one step stored."""

    stored: object
    family: int
    segment: int
    position: int
    commits: int


class _Match(NamedTuple):
    """What the index gives, and its commit as it is ``stored``. ``is_unsure``: its words are not in the index, its text
    says whether they fit.
    """

    arrival: int
    family: int
    segment: int
    tokens: int
    names: str
    is_unsure: bool
    session: str
    stored: Stored

    def shown(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The model and the tool that a hit shows."""
        return canonical.decode(self.names, tuple[tuple[str, ...], tuple[str, ...]])

    def entry(self) -> IndexEntry:
        """Its entry, made from the payload."""
        (commit,), (models, tools) = commits_of([self.stored], 0), self.shown()
        text = searching.readable(commit.value) or ""
        return IndexEntry(
            self.arrival, commit.hash, commit.kind, commit.time, commit.response, text, models, tools, self.tokens
        )


class PostgresSearch:
    """The index of one log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def fill(self, limit: int = 5000) -> int:
        """Take in steps until they have ``limit`` commits."""

        return self._log.write(_fill, limit) if limit > 0 else 0

    def find(self, query: Query) -> list[Hit]:
        """The commits that ``query`` describes, newest first. Raises ``NotFoundError`` for an unknown session."""
        return self._log.read(_find, query)

    def find_bare(self, query: Query) -> list[BareHit]:
        """The session, model and time of what ``find`` gives. Raises ``NotFoundError`` for an unknown session."""
        return self._log.read(_find_bare, query)

    def find_owners(self, text: str, *, prefix: bool = False) -> set[str]:
        """The sessions, by id, in which ``find`` has hits of ``text``, however many those are."""
        return self._log.read(_find_owners, Query(text, prefix=prefix, limit=_PORTION))

    def rebuild(self) -> None:
        """Empty the index."""

        self._log.write(_empty)


def _empty(rows: PostgresRows) -> None:
    index.hold(rows.db, rows.tenant)
    index.empty(rows.db, rows.tenant)


def _fill(rows: PostgresRows, limit: int) -> int:
    db, tenant = rows.db, rows.tenant
    arrival = index.hold(db, tenant)
    runs = list(_next(db, tenant, limit))
    places: list[tuple[int, int, int]] = []
    for run in runs:
        places += ((run.family, run.segment, run.position + at) for at in range(run.commits))
    commits = _stored(db, tenant, runs)
    placed = [Placed(at, place[0], commits[place]) for at, place in enumerate(places, arrival + 1) if place in commits]
    reading = searching.read([*_above(db, tenant, placed), *placed])
    new = [(places[entry.arrival - arrival - 1], entry) for entry in reading.entries if entry.arrival > arrival]
    index.add(db, (Indexed((tenant, place[0]), place[1:], entry) for place, entry in new))
    for said in (said for said in reading.said if said.arrival > arrival):
        index.prioritise(db, (tenant, places[said.arrival - arrival - 1][0]), said)
    db.cursor().executemany(_TAKEN, [(tenant, *run[:4]) for run in runs])
    db.execute(_ADVANCE, (arrival + len(places), tenant))
    return len(places)


def _next(db: Connection, tenant: str, limit: int) -> Iterator[_Run]:
    """The steps that were stored first of those that are not in the index."""
    found = 0
    for row in db.execute(_NEXT, (tenant, limit)).fetchall():
        if found >= limit:
            break
        run = _Run(*row)
        found += run.commits
        yield run


def _stored(db: Connection, tenant: str, runs: list[_Run]) -> dict[tuple[int, int, int], Commit]:
    """The commits of these steps that say something, by (family, segment, position). Their ``seq`` is not set."""
    ranges: dict[tuple[int, int], list[int]] = {}
    joined: list[tuple[int, int, list[int]]] = []
    for run in runs:
        ends = ranges.get((run.family, run.segment))
        if ends is None or ends[1] + 1 != run.position:
            ends = ranges[run.family, run.segment] = [run.position, run.position]
            joined.append((run.family, run.segment, ends))
        ends[1] = run.position + run.commits - 1
    with db.pipeline():
        cursors = [
            db.execute(_RANGE, (tenant, family, segment, *ends), binary=True) for family, segment, ends in joined
        ]
    found: dict[tuple[int, int, int], Commit] = {}
    for (family, segment, _), cursor in zip(joined, cursors, strict=True):
        rows = cursor.fetchall()
        for row, commit in zip(rows, commits_of(rows, 0), strict=True):
            found[family, segment, row[0]] = commit
    return found


def _above(db: Connection, tenant: str, placed: list[Placed]) -> Iterator[Placed]:
    """Annotations and the like from earlier pieces that an annotation without a target looks past."""
    known = {(at.family, at.commit.hash): at.commit for at in placed}
    for _, family, commit in placed:
        above = commit
        if not isinstance(commit.value, Annotation) or commit.value.target:
            continue
        while above.parents:
            nearest = known.get((family, above.parents[0]))
            if nearest is None:
                hash = raw(above.parents[0])
                rows = db.execute(_HASHED, (tenant, family, hash[:SHORT], hash), binary=True).fetchall()
                if not rows or rows[0][3] not in ABOUT:
                    break
                (nearest,) = commits_of(rows, 0)
                known[family, nearest.hash] = nearest
                yield Placed(0, family, nearest)
            elif nearest.kind not in ABOUT:
                break
            above = nearest


def _find(rows: PostgresRows, query: Query) -> list[Hit]:
    wanted = searching.asked(query)
    return [searching.hit(given(match.session), match.entry(), wanted) for match in _found(rows, query, wanted)]


def _find_bare(rows: PostgresRows, query: Query) -> list[BareHit]:
    return [
        BareHit(given(match.session), searching.first(match.shown()[0]), match.stored[_TIME])
        for match in _found(rows, query, searching.asked(query))
    ]


def _find_owners(rows: PostgresRows, query: Query) -> set[str]:
    """Sessions with hits: by the index alone, and by the texts where that does not know."""
    db, tenant, wanted = rows.db, rows.tenant, searching.asked(query)
    if searching.is_hopeless(query, wanted) or db.execute(_FORM, (tenant,)).fetchone() != (searching.FORM,):
        return set()
    are_joined, unsure = any(len(phrase) > 1 for phrase in wanted), f"'{index.ANY}'"
    found: set[str] = set()
    if not are_joined:
        values = (tenant, index.question((tenant,), query, wanted), unsure, tenant)
        found = {given(id) for (id,) in db.execute(_OWNERS, values, prepare=False)}
    for match in _entries(db, (tenant,), query, wanted, "" if are_joined else unsure):
        session = given(match.session)
        if session not in found and searching.holds(searching.joined(match.entry().text), wanted):
            found.add(session)
    return found


def _found(rows: PostgresRows, query: Query, wanted: Phrases) -> list[_Match]:
    """What ``query`` describes, newest first."""
    db, tenant = rows.db, rows.tenant
    reached: dict[int, int] | None = None
    within: Family | tuple[str] = (tenant,)
    if query.session:
        of = key(rows, query.session)
        reached, within = dict(db.execute(_REACHED, of._asdict()).fetchall()), of[:2]
    if searching.is_hopeless(query, wanted) or db.execute(_FORM, (tenant,)).fetchone() != (searching.FORM,):
        return []
    are_joined = any(len(phrase) > 1 for phrase in wanted)
    found: list[_Match] = []
    for match in _entries(db, within, query, wanted):
        if len(found) >= query.limit:
            break
        if reached is not None and reached.get(match.segment, -1) < match.stored[_POSITION]:
            continue
        if (match.is_unsure or are_joined) and not searching.holds(searching.joined(match.entry().text), wanted):
            continue
        found.append(match)
    return found


def _entries(
    db: Connection, of: Family | tuple[str], query: Query, wanted: Phrases, among: str = ""
) -> Iterator[_Match]:
    """What the index finds, newest first, page by page as far as somebody asks for them; ``among`` the entries that
    another ``tsquery`` finds, too.
    """
    conditions: list[tuple[str, object]] = [
        ("AND family = %s", of[1] if len(of) > 1 else None),
        ("AND time >= %s", query.since),
        ("AND time < %s", query.until),
        ("AND tokens >= %s", query.min_tokens),
        ("AND tokens <= %s", query.max_tokens),
    ]
    given_ones: list[tuple[str, list[object]]] = [(sql, [value]) for sql, value in conditions if value is not None]
    if among:
        given_ones.append(("AND words @@ %s::tsquery", [among]))
    if query.owners is not None:
        given_ones.append((_OWNED, [of[0], [*map(stored, query.owners)]]))
    asked = index.question(of, query, wanted)
    page, size = None, max(0, query.limit)
    if query.before is not None:
        page = db.execute(_MOMENT, (query.before, of[0], query.before)).fetchone()
        size = 0 if page is None else size
    while size:
        older: list[tuple[str, list[object]]] = [] if page is None else [("AND (time, arrival) < (%s, %s)", [*page])]
        bounds = [*given_ones, *older]
        sql = _FIND.format(" ".join(text for text, _ in bounds))
        values = (f"'{index.ANY}'", of[0], asked, *(value for _, values in bounds for value in values), size)
        # Never prepared: which index is the better one depends on how often these words are said.
        rows = db.execute(sql, values, binary=True, prepare=False).fetchall()
        for row in rows:
            yield _Match._make((*row[:7], row[7:]))
        if len(rows) < size:
            return
        page, size = (rows[-1][7 + _TIME], rows[-1][0]), size * 4
