"""The search index of a SQLite log: its entries, and what becomes of them when commits are erased or removed.

Promises: the text itself is stored in payloads alone; what is erased leaves no word behind (``changing``, then
``scrub``). Must not: know what a payload means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from thinkback.log import searching
from thinkback.log.searching import IndexEntry, Placed, PriorityChange
from thinkback.model import canonical
from thinkback.model.commits import Priority
from thinkback.stores.errors import whole_hash
from thinkback.stores.rows import COLUMNS, from_rows
from thinkback.stores.sqlite_open import Connection
from thinkback.stores.sqlite_words import held, labelled

# Times are kept for so many arrivals together: where time runs forward, a range of it is one of arrivals.
ZONE = 1024
STATE = "SELECT form, arrival, changes FROM search_state"
_COLUMNS = ", ".join(
    ("c.arrival", "c.segment", "s.family", "c.kind", "c.response", *(f"c.{column}" for column in COLUMNS.split(", ")))
)
_FROM = """
FROM commits AS c CROSS JOIN segments AS g ON g.segment = c.segment CROSS JOIN sessions AS s ON s.session = g.session
"""
COMMITS = f"SELECT {_COLUMNS} {_FROM}"
_ONE = f"{COMMITS} WHERE arrival = ?"
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
_ADD_ENTRY = "INSERT INTO search_entries (arrival, label, tokens, priority) VALUES (?, ?, ?, ?)"
_ENTRY = f"""
SELECT l.models, l.tools, e.tokens, e.priority, {_COLUMNS} {_FROM}
JOIN search_entries AS e ON e.arrival = c.arrival JOIN search_labels AS l ON l.label = e.label WHERE c.arrival = ?
"""
_ADD_TIME = """
INSERT INTO search_times (zone, first, last) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)
"""


class Indexed(NamedTuple):
    """An entry, the segment of its commit, and what the index holds of it but for its label."""

    entry: IndexEntry
    segment: int
    words: str


@contextmanager
def changing(db: Connection, arrivals: Iterable[int]) -> Iterator[None]:
    """Around what erases the payloads of commits or removes them, in its transaction.

    The index forgets what these commits said before, and what is known of their responses' other blocks through them;
    afterwards it has what is left.
    """
    form, until, _ = db.execute(STATE).fetchone()
    if form != searching.FORM:
        empty(db)
        yield
        return
    touched = [arrival for arrival in _with_responses(db, arrivals) if arrival <= until]
    before = {arrival: to_index(*found) for arrival in touched if (found := entry_of(db, arrival)) is not None}
    drop(db, before.values())
    yield
    _, left = placed_in([row for arrival in touched for row in db.execute(_ONE, (arrival,)).fetchall()])
    for entry in searching.read(left).entries:
        if entry.arrival in before:
            was = before[entry.arrival]
            add(db, [to_index(msgspec.structs.replace(entry, priority=was.entry.priority), was.segment)])
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


def placed_in(rows: list[tuple[Any, ...]]) -> tuple[dict[int, int], list[Placed]]:
    """Segments by arrival, and commits with theirs, of rows of ``COMMITS``. Their ``seq`` is not set."""
    commits = from_rows((row[5:] for row in rows), 0)
    segments = {row[0]: row[1] for row in rows}
    return segments, [Placed(row[0], row[2], commit) for row, commit in zip(rows, commits, strict=True)]


def entry_of(db: Connection, arrival: int) -> tuple[IndexEntry, int] | None:
    """The entry of a commit, where it has one, and the segment."""
    row = db.execute(_ENTRY, (arrival,)).fetchone()
    if row is None:
        return None
    models, tools, tokens, priority, *stored = row
    segments, ((_, _, commit),) = placed_in([tuple(stored)])
    entry = IndexEntry(
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


def add(db: Connection, new: list[Indexed]) -> None:
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


def drop(db: Connection, old: Iterable[Indexed]) -> None:
    for entry, _, said in old:
        ((label,),) = db.execute(
            "DELETE FROM search_entries WHERE arrival = ? RETURNING label", (entry.arrival,)
        ).fetchall()
        db.execute(_DROP_WORDS, (entry.arrival, labelled(label, said)))


def prioritise(db: Connection, said: PriorityChange) -> None:
    """Give the commit that an annotation speaks of, the nearest before it, what it says."""
    if not whole_hash(said.target):
        return
    family = db.execute(_FAMILY, (said.arrival,)).fetchone()
    for (arrival,) in db.execute(_HASHED, (bytes.fromhex(said.target), said.arrival)):
        if db.execute(_FAMILY, (arrival,)).fetchone() == family:
            break
    else:
        return
    found = entry_of(db, arrival)
    if found is not None:
        entry, segment = found
        ((_, _, commit),) = placed_in([db.execute(_ONE, (arrival,)).fetchone()])[1]
        priority = said.priority or searching.own_priority(commit.value)
        drop(db, [to_index(entry, segment)])
        add(db, [to_index(msgspec.structs.replace(entry, priority=priority), segment)])


def empty(db: Connection) -> None:
    db.execute("INSERT INTO search_words (search_words) VALUES ('delete-all')")
    for table in ("search_entries", "search_labels", "search_times"):
        db.execute(f"DELETE FROM {table}")
    db.execute("UPDATE search_state SET form = ?, arrival = 0, changes = changes + 1", (searching.FORM,))


def to_index(entry: IndexEntry, segment: int) -> Indexed:
    return Indexed(entry, segment, held(entry, segment))
