"""Search in a SQLite log: an FTS5 index of words, where filters are words that no text can have.

Promises: an index that is damaged is made again. Must not: know what a payload means.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from heapq import heappop, heappush
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from thinkback.errors import CorruptLogError, StoreError
from thinkback.log import searching
from thinkback.log.protocol import BareHit, Hit, Query
from thinkback.log.searching import Phrases, Placed
from thinkback.model import canonical
from thinkback.stores.history import key
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_index import COMMITS, STATE, ZONE, add, empty, entry_of, placed_in, prioritise, to_index
from thinkback.stores.sqlite_open import Connection
from thinkback.stores.sqlite_rows import OWNER, SqliteRows
from thinkback.stores.sqlite_words import match_expression

# With more labels than these, asking the index for each costs more than looking at what it gives.
MOST_LABELS = 500
MOST_STRETCHES = 32
"""Stretches of the log that are asked one by one."""
_EARLIEST, _LATEST = -(2**63), 2**63 - 1
_END = """
SELECT coalesce(max(arrival), 0) FROM (
    SELECT arrival FROM commits INDEXED BY commits_by_arrival WHERE arrival > ? ORDER BY arrival LIMIT ?
)
"""
_COUNT = "SELECT count(*) FROM commits INDEXED BY commits_by_arrival WHERE arrival > ? AND arrival <= ?"
_NEW = f"{COMMITS} WHERE arrival > ? AND kind NOT IN ({', '.join(repr(k) for k in sorted(searching.UNREAD))})"
_OWNERS = f"""
SELECT g.segment, {OWNER} FROM segments AS g JOIN sessions AS s ON s.session = g.session
WHERE g.segment IN (SELECT value FROM json_each(?))
"""
_INDEXED = "search_entries AS e CROSS JOIN commits AS c ON c.arrival = e.arrival"
_SAID = "search_words AS w CROSS JOIN commits AS c ON c.arrival = w.rowid WHERE w.search_words MATCH ?"
_SAYING = f"""
SELECT {OWNER} FROM (SELECT DISTINCT c.segment AS segment FROM {{}}) AS m
CROSS JOIN segments AS g ON g.segment = m.segment CROSS JOIN sessions AS s ON s.session = g.session
"""
_MODELS = "SELECT label, models FROM search_labels WHERE label IN (SELECT value FROM json_each(?))"
# A name in JSON is in the JSON of a list as it is, or not at all.
_LABELS = """
SELECT label FROM search_labels
WHERE (? = '[]' OR kind IN (SELECT value FROM json_each(?))) AND instr(models, ?) AND instr(tools, ?)
"""
_ZONES = "SELECT zone, last FROM search_times WHERE last >= ? AND first < ? AND first <= ? ORDER BY zone DESC"
_TIME = "SELECT time FROM commits WHERE arrival = (SELECT max(arrival) FROM search_entries WHERE arrival <= ?)"
# How far the branches of a session reach into each segment.
_REACHED = """
WITH RECURSIVE reached (segment, position) AS (
    SELECT segment, position FROM branches WHERE session = ?
    UNION
    SELECT g.parent_segment, g.parent_position FROM reached AS r JOIN segments AS g ON g.segment = r.segment
    WHERE g.parent_segment IS NOT NULL
)
SELECT segment, max(position) FROM reached GROUP BY segment
"""
# The segments of those who own what is in them: by their ids, and of deleted sessions by whose these are now.
_OWNED = f"""
WITH asked (id) AS (SELECT value FROM json_each(?))
SELECT g.segment FROM sessions AS s JOIN segments AS g ON g.session = s.session
WHERE s.id IN asked AND s.name IS NOT NULL
UNION ALL
SELECT g.segment FROM sessions AS s JOIN segments AS g ON g.session = s.session
WHERE s.name IS NULL AND {OWNER} IN asked
"""


_Row: TypeAlias = tuple[int, int, int, int, int]
"""Negative time, negative arrival, segment, label, position."""


_MOST_BYTES = 8_000_000
"""Stored bytes of a portion, beyond which the commits that follow wait for the next one: all of it is in memory."""


class _Portion(NamedTuple):
    """A piece of the log: so many ``commits`` up to the arrival ``until``; ``placed`` are those that are to be read."""

    placed: list[Placed]
    segments: dict[int, int]
    until: int
    commits: int


class _Match(NamedTuple):
    """What the index finds, and what is known of it without its payload."""

    arrival: int
    segment: int
    label: int
    time: int


class _Stretch(NamedTuple):
    """Zones from ``low`` to ``high``, of them those in ``lasts``, with the latest time in each; ``latest`` is that of
    all. ``is_ordered``: each zone's is no later than that of the zone after it.
    """

    low: int
    high: int
    latest: int
    lasts: dict[int, int]
    is_ordered: bool = True


class _Zones(NamedTuple):
    """The stretches of the whole log as they were in a ``state`` of the index."""

    state: tuple[int, int, int]
    stretches: list[_Stretch]


class SqliteSearch:
    """The index of one log."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._zones = _Zones((-1, -1, -1), [])

    def fill(self, limit: int = 5000) -> int:
        """Take in ``limit`` commits and what belongs to the last of them; writers wait only while words are added."""
        with self._mending():
            return self._fill(limit)

    def find(self, query: Query) -> list[Hit]:
        """The commits that ``query`` describes, newest first. Raises ``NotFoundError`` for an unknown session."""
        wanted = searching.asked(query)
        with self._mending(), self._file.read() as db:
            found = self._found(db, query, wanted)
            owners = _owners(db, found)
            return [_hit(db, match, owners, wanted) for match in found]

    def find_bare(self, query: Query) -> list[BareHit]:
        """The session, model and time of what ``find`` gives. Raises ``NotFoundError`` for an unknown session."""
        with self._mending(), self._file.read() as db:
            found = self._found(db, query, searching.asked(query))
            owners = _owners(db, found)
            labels = db.execute(_MODELS, (json.dumps([*{match.label for match in found}]),))
            models = {label: searching.first(canonical.decode(names, tuple[str, ...])) for label, names in labels}
            return [BareHit(owners[match.segment], models[match.label], match.time) for match in found]

    def find_owners(self, text: str, *, prefix: bool = False) -> set[str]:
        """The sessions, by id, in which ``find`` has hits of ``text``, however many those are."""
        query = Query(text, prefix=prefix)
        wanted = searching.asked(query)
        with self._mending(), self._file.read() as db:
            if searching.is_hopeless(query, wanted) or db.execute(STATE).fetchone()[0] != searching.FORM:
                return set()
            match = match_expression(query, wanted, (), None, None)
            rows = db.execute(_SAYING.format(_SAID), (match,)) if match else db.execute(_SAYING.format(_INDEXED))
            return {owner for (owner,) in rows}

    def rebuild(self) -> None:
        """Empty the index."""
        with self._file.write_index() as db:
            empty(db)

    def _found(self, db: Connection, query: Query, wanted: Phrases) -> list[_Match]:
        """Find what ``query`` describes, newest first."""
        reached: dict[int, int] | None = None
        if query.session:
            reached = dict(db.execute(_REACHED, (key(SqliteRows(db), query.session).session,)).fetchall())
        state = db.execute(STATE).fetchone()
        if searching.is_hopeless(query, wanted) or state[0] != searching.FORM:
            return []
        page = _page(db, query)
        if query.since is None and query.until is None and page is None:
            # A log of many commits has thousands of zones: they are read again only after the index changed.
            if self._zones.state != state:
                self._zones = _Zones(state, _stretches(db, query, page))
            stretches = self._zones.stretches
        else:
            stretches = _stretches(db, query, page)
        with closing(_matches(db, query, wanted, reached, page, stretches)) as matches:
            return list(islice(matches, max(0, query.limit)))

    def _fill(self, limit: int) -> int:
        while True:
            with self._file.read() as db:
                state = db.execute(STATE).fetchone()
                piece = _piece(db, state[1], limit)
            if state[0] != searching.FORM:
                self.rebuild()
                continue
            if piece.commits == 0:
                return 0
            reading = searching.read(piece.placed)
            new = [to_index(entry, piece.segments[entry.arrival]) for entry in reading.entries]
            with self._file.write_index() as db:
                # Whoever filled or erased meanwhile made this piece worthless.
                if db.execute(STATE).fetchone() == state:
                    add(db, new)
                    for said in reading.said:
                        prioritise(db, said)
                    db.execute("UPDATE search_state SET arrival = ?", (piece.until,))
                    return piece.commits

    @contextmanager
    def _mending(self) -> Iterator[None]:
        """Empty an index that turns out to be damaged: the log has all that was in it."""
        try:
            yield
        except CorruptLogError as error:
            if getattr(error.__cause__, "sqlite_errorcode", 0) != sqlite3.SQLITE_CORRUPT_VTAB:
                raise
            self.rebuild()
            raise StoreError(
                f"the search index in {self._file.path} was damaged and is empty now",
                details=error.details,
                next_actions=("search again: it is made again from the log", "run `thinkback fsck` for the rest"),
            ) from error


def _piece(db: Connection, since: int, limit: int) -> _Portion:
    """The next ``limit`` commits after ``since``, or fewer of them where they are large, and those that must be read
    with the last.
    """
    (until,) = db.execute(_END, (since, max(0, limit))).fetchone()
    rows: list[tuple[Any, ...]] = []
    size = 0
    if until:
        for row in db.execute(f"{_NEW} ORDER BY arrival", (since,)):
            arrival, _, _, kind, response, *_ = row
            if arrival > until or size > _MOST_BYTES:
                if not searching.belongs_to(rows[-1][4] if rows else "", kind, response):
                    until = rows[-1][0] if size > _MOST_BYTES else until
                    break
                until = max(arrival, until)
            rows.append(row)
            size += sum(len(value) for value in row if isinstance(value, bytes))
    segments, placed = placed_in(rows)
    (count,) = db.execute(_COUNT, (since, until)).fetchone()
    return _Portion(placed, segments, until, count)


def _matches(
    db: Connection,
    query: Query,
    wanted: Phrases,
    reached: dict[int, int] | None,
    page: tuple[int, int] | None,
    stretches: Iterable[_Stretch],
) -> Generator[_Match]:
    """Yield what ``query`` describes as far as somebody asks for it, newest first."""
    kinds = [kind for (kind,) in db.execute("SELECT DISTINCT kind FROM search_labels")]
    labels = _labels(db, query)
    is_few = labels is None or len(labels) <= MOST_LABELS
    segments: Iterable[int] | None = reached
    conditions = [(text, value) for text, value in _conditions(query) if value is not None]
    if query.owners is not None:
        owners = canonical.encode(query.owners).decode()
        owned: set[int] | None = None
        if len(query.owners) <= MOST_LABELS:
            owned = {segment for (segment,) in db.execute(_OWNED, (owners,))}
        if owned is None or len(owned) > MOST_LABELS:
            conditions.append((f"c.segment IN ({_OWNED})", owners))
        else:
            segments = owned if reached is None else owned & {*reached}
    match = match_expression(query, wanted, kinds, segments, labels if is_few else None)
    if match is None:
        return
    if not is_few:
        conditions.append(("e.label IN (SELECT value FROM json_each(?))", canonical.encode(labels).decode()))
    if match:
        source, key = "search_words AS w CROSS JOIN search_entries AS e ON e.arrival = w.rowid", "w.rowid"
        conditions.append(("w.search_words MATCH ?", match))
    else:
        source, key = "search_entries AS e", "e.arrival"
    if page is not None:
        conditions.append((f"(c.time, {key}) < (?, ?)", page))
    values = [part for _, value in conditions for part in (value if isinstance(value, tuple) else (value,))]
    # A row is its own place in the heap: the latest first, of equal times the one that was stored last.
    sql = f"""
    SELECT -c.time, -{key}, c.segment, e.label, c.position
    FROM {source} CROSS JOIN commits AS c ON c.arrival = e.arrival
    WHERE {" AND ".join(text for text, _ in conditions)} {"AND" if conditions else ""} {key} BETWEEN ? AND ?
    ORDER BY {key} DESC
    """
    waiting: list[_Row] = []
    for stretch in stretches:
        while waiting and -waiting[0][0] > stretch.latest:
            yield _match(heappop(waiting))
        end = -(stretch.high + 1) * ZONE
        for row in db.execute(sql, (*values, stretch.low * ZONE, stretch.high * ZONE + ZONE - 1)):
            if row[1] > end:
                zone = -row[1] // ZONE
                latest = stretch.lasts.get(zone)
                if latest is None:  # read before
                    continue
                end = -zone * ZONE
                while waiting and -waiting[0][0] > (latest if stretch.is_ordered else stretch.latest):
                    yield _match(heappop(waiting))
            if reached is None or row[4] <= reached[row[2]]:
                heappush(waiting, row)
    while waiting:
        yield _match(heappop(waiting))


def _match(row: _Row) -> _Match:
    return _Match(-row[1], row[2], row[3], -row[0])


def _stretches(db: Connection, query: Query, page: tuple[int, int] | None) -> list[_Stretch]:
    """Where the hits can be, the stretch with the latest first. A log whose commits were stored as they were said has
    one; many are read as one at the end.
    """
    since = _EARLIEST if query.since is None else query.since
    until = _LATEST if query.until is None else query.until
    zones = db.execute(_ZONES, (since, until, _LATEST if page is None else page[0])).fetchall()
    zones.sort(key=itemgetter(1), reverse=True)
    starts = [at for at in range(len(zones)) if at == 0 or zones[at][0] != zones[at - 1][0] - 1]
    found: list[_Stretch] = []
    for start, end in zip(starts[:MOST_STRETCHES], [*starts[1:], len(zones)], strict=False):
        found.append(_Stretch(zones[end - 1][0], zones[start][0], zones[start][1], dict(zones[start:end])))
    if len(starts) > MOST_STRETCHES:
        rest = dict(zones[starts[MOST_STRETCHES] :])
        found.append(_Stretch(min(rest), max(rest), zones[starts[MOST_STRETCHES]][1], rest, is_ordered=False))
    return found


def _conditions(query: Query) -> list[tuple[str, object]]:
    """What is looked at in each entry that the index gives."""
    return [
        ("e.priority = ?", query.priority),
        ("e.tokens >= ?", query.min_tokens),
        ("e.tokens <= ?", query.max_tokens),
        ("c.time >= ?", query.since),
        ("c.time < ?", query.until),
    ]


def _labels(db: Connection, query: Query) -> list[int] | None:
    """The labels of the kinds, the model and the tool; ``None`` where neither model nor tool is asked for."""
    if not (query.model or query.tool):
        return None
    model, tool = (canonical.string(name).decode() if name else "" for name in (query.model, query.tool))
    kinds = canonical.encode(query.kinds).decode()
    rows = db.execute(_LABELS, (kinds, kinds, model, tool))
    return [label for (label,) in rows]


def _page(db: Connection, query: Query) -> tuple[int, int] | None:
    """The time and arrival of the last hit of the page before."""
    if query.before is None:
        return None
    found = db.execute(_TIME, (query.before,)).fetchone()
    return (_EARLIEST if found is None else found[0]), query.before


def _owners(db: Connection, found: Iterable[_Match]) -> dict[int, str]:
    """The sessions by their segments."""
    return dict(db.execute(_OWNERS, (json.dumps([*{match.segment for match in found}]),)).fetchall())


def _hit(db: Connection, match: _Match, owners: dict[int, str], wanted: Phrases) -> Hit:
    found = entry_of(db, match.arrival)
    assert found is not None
    return searching.hit(owners[match.segment], found[0], wanted)
