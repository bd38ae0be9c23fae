"""Search in a SQLite log: an FTS5 index of words, where filters are words that no text can have.

Promises: the text itself is stored in payloads alone; what is erased leaves no word behind (``changing``, then
``scrub``); an index that is damaged is made again. Must not: know what a payload means.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from thinkback.errors import CorruptLogError, StoreError
from thinkback.log import searching
from thinkback.log.protocol import Hit, Query
from thinkback.log.searching import Entry, Phrases, Placed, Said
from thinkback.model import canonical
from thinkback.model.commits import Priority
from thinkback.stores import sqlite_places
from thinkback.stores.rows import COLUMNS, from_rows
from thinkback.stores.sealed import whole_hash
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_open import Connection
from thinkback.stores.sqlite_words import asked, held, labelled

# Times are kept for so many arrivals together: where time runs forward, a range of it is one of arrivals.
ZONE = 1024
# With more labels than these, asking the index for each costs more than looking at what it gives.
MOST_LABELS = 500
_EARLIEST, _LATEST = -(2**63), 2**63 - 1

_STATE = "SELECT form, arrival, changes FROM search_state"
_END = """
SELECT coalesce(max(arrival), 0) FROM (
    SELECT arrival FROM commits INDEXED BY commits_by_arrival WHERE arrival > ? ORDER BY arrival LIMIT ?
)
"""
_COUNT = "SELECT count(*) FROM commits INDEXED BY commits_by_arrival WHERE arrival > ? AND arrival <= ?"
_COLUMNS = ", ".join(
    ("c.arrival", "c.segment", "s.family", "c.kind", "c.response", *(f"c.{column}" for column in COLUMNS.split(", ")))
)
_FROM = """
FROM commits AS c CROSS JOIN segments AS g ON g.segment = c.segment CROSS JOIN sessions AS s ON s.session = g.session
"""
_COMMITS = f"SELECT {_COLUMNS} {_FROM}"
_NEW = f"{_COMMITS} WHERE arrival > ? AND kind NOT IN ({', '.join(repr(k) for k in sorted(searching.UNREAD))})"
_ONE = f"{_COMMITS} WHERE arrival = ?"
_PIECES = "SELECT arrival FROM commits WHERE segment = ? AND response IN (SELECT value FROM json_each(?))"
_HASHED = """
SELECT arrival FROM commits INDEXED BY commits_by_arrival WHERE hash = ? AND arrival < ? ORDER BY arrival DESC
"""
_FAMILY = """
SELECT s.family FROM commits AS c JOIN segments AS g ON g.segment = c.segment
JOIN sessions AS s ON s.session = g.session WHERE c.arrival = ?
"""
_ADD_WORDS = "INSERT INTO search_words (rowid, words) VALUES (?, ?)"
_DROP_WORDS = "INSERT INTO search_words (search_words, rowid, words) VALUES ('delete', ?, ?)"
_ADD_LABEL = "INSERT INTO search_labels (kind, models, tools) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_LABEL = "SELECT label FROM search_labels WHERE kind = ? AND models = ? AND tools = ?"
# A name in JSON is in the JSON of a list as it is, or not at all.
_LABELS = """
SELECT label FROM search_labels
WHERE (? = '[]' OR kind IN (SELECT value FROM json_each(?))) AND instr(models, ?) AND instr(tools, ?)
"""
_ADD_ENTRY = "INSERT INTO search_entries (arrival, label, tokens, priority) VALUES (?, ?, ?, ?)"
_ENTRY = f"""
SELECT l.models, l.tools, e.tokens, e.priority, {_COLUMNS} {_FROM}
JOIN search_entries AS e ON e.arrival = c.arrival JOIN search_labels AS l ON l.label = e.label WHERE c.arrival = ?
"""
_ADD_TIME = """
INSERT INTO search_times (zone, first, last) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)
"""
_ZONES = "SELECT min(zone), max(zone) FROM search_times WHERE last >= ? AND first < ?"
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


class _Indexed(NamedTuple):
    """An entry, the segment of its commit, and what the index holds of it but for its label."""

    entry: Entry
    segment: int
    words: str


class _Piece(NamedTuple):
    """A piece of the log: so many ``commits`` up to the arrival ``until``; ``placed`` are those that are to be read."""

    placed: list[Placed]
    segments: dict[int, int]
    until: int
    commits: int


class SqliteSearch:
    """The index of one log."""

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def fill(self, limit: int = 5000) -> int:
        """Take in ``limit`` commits and what belongs to the last of them; writers wait only while words are added."""
        with self._mending():
            return self._fill(limit)

    def find(self, query: Query) -> list[Hit]:
        """The commits that ``query`` describes, newest first. Raises ``NotFoundError`` for an unknown session."""
        with self._mending(), self._file.read() as db:
            return _found(db, query)

    def rebuild(self) -> None:
        """Empty the index."""
        with self._file.write_index() as db:
            _empty(db)

    def _fill(self, limit: int) -> int:
        while True:
            with self._file.read() as db:
                state = db.execute(_STATE).fetchone()
                piece = _piece(db, state[1], limit)
            if state[0] != searching.FORM:
                self.rebuild()
                continue
            if piece.commits == 0:
                return 0
            reading = searching.read(piece.placed)
            new = [_to_index(entry, piece.segments[entry.arrival]) for entry in reading.entries]
            with self._file.write_index() as db:
                # Whoever filled or erased meanwhile made this piece worthless.
                if db.execute(_STATE).fetchone() == state:
                    _add(db, new)
                    for said in reading.said:
                        _prioritise(db, said)
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


@contextmanager
def changing(db: Connection, arrivals: Iterable[int]) -> Iterator[None]:
    """Around what erases the payloads of commits or removes them, in its transaction.

    The index forgets what these commits said before, and what is known of their responses' other blocks through them;
    afterwards it has what is left.
    """
    form, until, _ = db.execute(_STATE).fetchone()
    if form != searching.FORM:
        _empty(db)
        yield
        return
    touched = [arrival for arrival in _with_responses(db, arrivals) if arrival <= until]
    before = {arrival: _to_index(*found) for arrival in touched if (found := _entry(db, arrival)) is not None}
    _drop(db, before.values())
    yield
    _, left = _placed([row for arrival in touched for row in db.execute(_ONE, (arrival,)).fetchall()])
    for entry in searching.read(left).entries:
        if entry.arrival in before:
            was = before[entry.arrival]
            _add(db, [_to_index(msgspec.structs.replace(entry, priority=was.entry.priority), was.segment)])
    # The numbers of commits that were removed from the end are given to others.
    db.execute(
        "UPDATE search_state SET changes = changes + 1, dropped = dropped OR ?, "
        "arrival = min(arrival, (SELECT coalesce(max(arrival), 0) FROM commits))",
        (bool(before),),
    )


def scrub(db: Connection) -> None:
    """Write the index anew without what ``changing`` took out of it: until then the words are still in the file."""
    if db.execute("SELECT dropped FROM search_state").fetchone()[0]:
        db.execute("INSERT INTO search_words (search_words) VALUES ('optimize')")
        db.execute("DELETE FROM search_labels WHERE label NOT IN (SELECT label FROM search_entries)")
        db.execute("UPDATE search_state SET dropped = 0")


def _with_responses(db: Connection, arrivals: Iterable[int]) -> list[int]:
    """These commits and all others of their responses, in order."""
    found: set[int] = set()
    responses: dict[int, set[str]] = {}
    for arrival in arrivals:
        for _, segment, _, _, response, *_ in db.execute(_ONE, (arrival,)).fetchall():
            found.add(arrival)
            if response:
                responses.setdefault(segment, set()).add(response)
    for segment, ids in responses.items():
        found.update(row[0] for row in db.execute(_PIECES, (segment, canonical.encode(sorted(ids)).decode())))
    return sorted(found)


def _piece(db: Connection, since: int, limit: int) -> _Piece:
    """The next ``limit`` commits after ``since``, and those that must be read with the last."""
    (until,) = db.execute(_END, (since, max(0, limit))).fetchone()
    rows: list[tuple[Any, ...]] = []
    if until:
        for row in db.execute(f"{_NEW} ORDER BY arrival", (since,)):
            arrival, _, _, kind, response, *_ = row
            if arrival > until:
                if not searching.belongs_to(rows[-1][4] if rows else "", kind, response):
                    break
                until = arrival
            rows.append(row)
    segments, placed = _placed(rows)
    (count,) = db.execute(_COUNT, (since, until)).fetchone()
    return _Piece(placed, segments, until, count)


def _placed(rows: list[tuple[Any, ...]]) -> tuple[dict[int, int], list[Placed]]:
    """Segments by arrival, and commits with theirs, of rows of ``_COMMITS``. Their ``seq`` is not set."""
    commits = from_rows((row[5:] for row in rows), 0)
    segments = {row[0]: row[1] for row in rows}
    return segments, [Placed(row[0], row[2], commit) for row, commit in zip(rows, commits, strict=True)]


def _entry(db: Connection, arrival: int) -> tuple[Entry, int] | None:
    """The entry of a commit, where it has one, and the segment."""
    row = db.execute(_ENTRY, (arrival,)).fetchone()
    if row is None:
        return None
    models, tools, tokens, priority, *stored = row
    segments, ((_, _, commit),) = _placed([tuple(stored)])
    entry = Entry(
        arrival,
        commit.hash,
        commit.kind,
        commit.time,
        commit.response,
        searching.readable(commit.value) or "",
        canonical.decode(models, tuple[str, ...]),
        canonical.decode(tools, tuple[str, ...]),
        tokens,
        Priority(priority),
    )
    return entry, segments[arrival]


def _add(db: Connection, new: list[_Indexed]) -> None:
    labels: dict[tuple[str, str, str], int] = {}
    rows: list[tuple[int, int, int, str]] = []
    words: list[tuple[int, str]] = []
    times: dict[int, tuple[int, int]] = {}
    for entry, _, said in new:
        names = entry.kind, canonical.encode(entry.models).decode(), canonical.encode(entry.tools).decode()
        if names not in labels:
            db.execute(_ADD_LABEL, names)
            (labels[names],) = db.execute(_LABEL, names).fetchone()
        rows.append((entry.arrival, labels[names], entry.tokens, entry.priority))
        words.append((entry.arrival, labelled(labels[names], said)))
        first, last = times.get(entry.arrival // ZONE, (entry.time, entry.time))
        times[entry.arrival // ZONE] = min(first, entry.time), max(last, entry.time)
    db.executemany(_ADD_ENTRY, rows)
    db.executemany(_ADD_WORDS, words)
    db.executemany(_ADD_TIME, [(zone, time, time) for zone, span in times.items() for time in span])


def _drop(db: Connection, old: Iterable[_Indexed]) -> None:
    for entry, _, said in old:
        ((label,),) = db.execute(
            "DELETE FROM search_entries WHERE arrival = ? RETURNING label", (entry.arrival,)
        ).fetchall()
        db.execute(_DROP_WORDS, (entry.arrival, labelled(label, said)))


def _prioritise(db: Connection, said: Said) -> None:
    """Give the commit that an annotation speaks of, the nearest before it, what it says."""
    if not whole_hash(said.target):
        return
    family = db.execute(_FAMILY, (said.arrival,)).fetchone()
    for (arrival,) in db.execute(_HASHED, (bytes.fromhex(said.target), said.arrival)):
        if db.execute(_FAMILY, (arrival,)).fetchone() == family:
            break
    else:
        return
    found = _entry(db, arrival)
    if found is not None:
        entry, segment = found
        ((_, _, commit),) = _placed([db.execute(_ONE, (arrival,)).fetchone()])[1]
        priority = said.priority or searching.own_priority(commit.value)
        _drop(db, [_to_index(entry, segment)])
        _add(db, [_to_index(msgspec.structs.replace(entry, priority=priority), segment)])


def _empty(db: Connection) -> None:
    db.execute("INSERT INTO search_words (search_words) VALUES ('delete-all')")
    for table in ("search_entries", "search_labels", "search_times"):
        db.execute(f"DELETE FROM {table}")
    db.execute("UPDATE search_state SET form = ?, arrival = 0, changes = changes + 1", (searching.FORM,))


def _found(db: Connection, query: Query) -> list[Hit]:
    reached: dict[int, int] | None = None
    if query.session:
        reached = dict(db.execute(_REACHED, (sqlite_places.key(db, query.session).session,)).fetchall())
    if searching.is_hopeless(query) or db.execute(_STATE).fetchone()[0] != searching.FORM:
        return []
    wanted = searching.phrases(query.text)
    with closing(_arrivals(db, query, wanted, reached)) as arrivals:
        found = list(islice(arrivals, max(0, query.limit)))
    return [_hit(db, arrival, wanted) for arrival in found]


def _arrivals(db: Connection, query: Query, wanted: Phrases, reached: dict[int, int] | None) -> Generator[int]:
    """The arrivals of what ``query`` describes, newest first, as far as somebody asks for them."""
    kinds = [kind for (kind,) in db.execute("SELECT DISTINCT kind FROM search_labels")]
    labels = _labels(db, query)
    is_few = labels is None or len(labels) <= MOST_LABELS
    match, bounds = asked(query, wanted, kinds, reached, labels if is_few else None), _bounds(db, query)
    if match is None or bounds is None:
        return
    conditions = [(text, value) for text, value in _conditions(query) if value is not None]
    if not is_few:
        conditions.append(("e.label IN (SELECT value FROM json_each(?))", canonical.encode(labels).decode()))
    if match:
        source, key = "search_words AS w CROSS JOIN search_entries AS e ON e.arrival = w.rowid", "w.rowid"
        conditions.append(("w.search_words MATCH ?", match))
    else:
        source, key = "search_entries AS e", "e.arrival"
    conditions += [(f"{key} >= ?", bounds[0]), (f"{key} <= ?", bounds[1])]
    sql = f"""
    SELECT {key}, c.segment, c.position FROM {source} CROSS JOIN commits AS c ON c.arrival = e.arrival
    WHERE {" AND ".join(text for text, _ in conditions)} ORDER BY {key} DESC
    """
    for arrival, segment, position in db.execute(sql, [value for _, value in conditions]):
        if reached is None or position <= reached[segment]:
            yield arrival


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


def _bounds(db: Connection, query: Query) -> tuple[int, int] | None:
    """The first and last arrival that can fit."""
    first, last = 0, _LATEST
    if query.since is not None or query.until is not None:
        since = _EARLIEST if query.since is None else query.since
        low, high = db.execute(_ZONES, (since, _LATEST if query.until is None else query.until)).fetchone()
        if low is None:
            return None
        first, last = low * ZONE, high * ZONE + ZONE - 1
    return first, last if query.before is None else min(last, query.before - 1)


def _to_index(entry: Entry, segment: int) -> _Indexed:
    return _Indexed(entry, segment, held(entry, segment))


def _hit(db: Connection, arrival: int, wanted: Phrases) -> Hit:
    found = _entry(db, arrival)
    assert found is not None
    return searching.hit(sqlite_places.owner(db, arrival), found[0], wanted)
