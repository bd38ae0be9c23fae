"""``fsck`` of a SQLite log: reads all of it, changes nothing, and goes on after whatever is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress

from thinkback.log.progress import Meter, Progress
from thinkback.log.protocol import Problem
from thinkback.stores import migrations
from thinkback.stores.fsck import Row, audit, audit_steps, basis_problems, row_of, summary_problems
from thinkback.stores.rows import BASED, COLUMNS, Bases
from thinkback.stores.sqlite_open import Connection
from thinkback.stores.sqlite_rows import SqliteRows

_SEGMENTS = """
SELECT g.segment, g.base, g.parent_segment, g.parent_position, c.hash, p.base + g.parent_position
FROM segments AS g
LEFT JOIN segments AS p ON p.segment = g.parent_segment
LEFT JOIN commits AS c ON c.segment = g.parent_segment AND c.position = g.parent_position
ORDER BY g.segment
"""
# Text comes as bytes: damaged text must be looked at, not raise.
_ROWS = "SELECT {} FROM commits WHERE segment = ? ORDER BY position".format(
    COLUMNS.replace("kind", "CAST(kind AS BLOB)").replace("response", "CAST(response AS BLOB)")
)
_REFS = """
SELECT CAST(b.name AS BLOB), s.id, b.segment, b.position FROM branches AS b
LEFT JOIN sessions AS s ON s.session = b.session
WHERE NOT (EXISTS (SELECT 1 FROM commits AS c WHERE c.segment = b.segment AND c.position = b.position)
           OR b.position = -1 AND EXISTS (SELECT 1 FROM segments AS g WHERE g.segment = b.segment
                                          AND g.parent_segment IS NULL))
"""
_HEADS = """
SELECT id, CAST(branch AS BLOB) FROM sessions AS s WHERE name IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM branches AS b WHERE b.session = s.session AND b.name = s.branch)
"""
# Whatever stands on something stands in the same family.
_STRANGERS = """
SELECT 'session ' || s.id, 'its parent' FROM sessions AS s JOIN sessions AS p ON p.session = s.parent
WHERE p.family <> s.family
UNION ALL
SELECT 'session ' || s.id, 'the root of its family' FROM sessions AS s JOIN sessions AS r ON r.session = s.family
WHERE r.family <> s.family
UNION ALL
SELECT 'segment ' || g.segment, 'its parent' FROM segments AS g JOIN sessions AS s ON s.session = g.session
JOIN segments AS p ON p.segment = g.parent_segment JOIN sessions AS o ON o.session = p.session
WHERE o.family <> s.family
UNION ALL
SELECT 'a branch of session ' || s.id, 'segment ' || b.segment FROM branches AS b
JOIN sessions AS s ON s.session = b.session
JOIN segments AS g ON g.segment = b.segment JOIN sessions AS o ON o.session = g.session
WHERE o.family <> s.family
"""
_GHOSTS = """
SELECT s.id, count(*) FROM sessions AS s JOIN branches AS b ON b.session = s.session WHERE s.name IS NULL GROUP BY s.id
"""
_STEPS = """
SELECT CAST(id AS BLOB), segment, position, commits FROM steps WHERE commits > 0 ORDER BY segment, position
"""
_SIGHTINGS = """
SELECT hex(s.digest) FROM sightings AS s
LEFT JOIN commits AS c ON c.arrival = s.head
LEFT JOIN commits AS r ON r.arrival = s.response AND r.segment = c.segment AND r.position <= c.position
WHERE r.kind IS NOT 'response'
"""
_BASES = "SELECT digest, codec, text, uses FROM bases ORDER BY digest"
_USES = f"SELECT substr(payload, 1, 32), count(*) FROM commits WHERE codec = {BASED} GROUP BY 1"
# What FTS5 would find only when it is asked for words.
_WORDS = """
SELECT 'search_words_config', 'has no version'
WHERE NOT EXISTS (SELECT 1 FROM search_words_config WHERE k = 'version')
UNION ALL
SELECT 'search_words_idx', 'has rows of another shape'
WHERE EXISTS (SELECT 1 FROM search_words_idx WHERE typeof(segid) <> 'integer' OR typeof(pgno) <> 'integer')
"""
_ENDS = "SELECT segment, max(position) + 1 FROM commits GROUP BY segment"
_ORPHANS = "SELECT DISTINCT segment FROM commits WHERE segment NOT IN (SELECT segment FROM segments)"


def fsck(db: Connection, schema: migrations.Schema, progress: Progress | None = None) -> Iterator[Problem]:
    """Every disagreement in the file. Never raises for damage: it is what this is for."""
    yield from _guarded("file", _file_problems(db))
    (version,) = db.execute("PRAGMA user_version").fetchone()
    promised = schema.of(version)
    yield from _guarded("migrations", (Problem("migrations", what) for what in migrations.check(db, promised)))
    total = 0
    with suppress(sqlite3.Error):  # a table that is not there has been named
        total = db.execute("SELECT count(*) FROM commits").fetchone()[0] if progress else 0
    meter = Meter(progress, total, "commits")
    yield from _guarded("segments", _segment_problems(db, meter))
    yield from _guarded("branches", _ref_problems(db))
    yield from _guarded("steps", _step_problems(db))
    yield from _guarded("sightings", _sighting_problems(db))
    yield from _guarded("search", _search_problems(db))
    if version == len(schema.names):
        yield from _guarded("bases", _basis_problems(db))
    yield from _guarded("summaries", summary_problems(SqliteRows(db)))
    meter.end()


def _guarded(where: str, problems: Iterator[Problem]) -> Iterator[Problem]:
    try:
        yield from problems
    except (sqlite3.Error, AttributeError, TypeError, ValueError) as error:  # damage gives values of any type
        yield Problem(where, f"cannot be read to its end: {error}")


def _file_problems(db: Connection) -> Iterator[Problem]:
    # Not quick_check: what may be removed is looked up in indexes.
    for (what,) in db.execute("PRAGMA integrity_check"):
        if what != "ok":
            yield Problem("file", what)
    for table, row, *_ in db.execute("PRAGMA foreign_key_check"):
        yield Problem(f"{table}, row {row}", "names a row that does not exist")


def _segment_problems(db: Connection, meter: Meter) -> Iterator[Problem]:
    for segment, base, above, position, hash, seq in db.execute(_SEGMENTS).fetchall():
        name = f"segment {segment}"
        if above is not None and hash is None:
            yield Problem(name, f"its parent, segment {above} position {position}, does not exist")
        elif base != (0 if above is None else seq + 1):
            yield Problem(name, f"it begins at seq {base}, its parent has {-1 if above is None else seq}")
        parent = "" if hash is None else hash.hex()
        yield from _guarded(name, audit(name, parent, meter.over(_rows(db, segment))))
    for (segment,) in db.execute(_ORPHANS):
        yield Problem(f"segment {segment}", "has commits but is not a segment of any session")


def _rows(db: Connection, segment: int) -> Iterator[Row]:
    bases = Bases(SqliteRows(db).bases)
    for stored in db.execute(_ROWS, (segment,)):
        (row,) = bases.whole([stored])
        yield row_of(row, row[3].decode("utf-8", "surrogateescape"), row[6].decode("utf-8", "surrogateescape"))


def _ref_problems(db: Connection) -> Iterator[Problem]:
    for name, session, segment, position in db.execute(_REFS):
        where = f"branch {name.decode('utf-8', 'replace')} of session {session}"
        yield Problem(where, f"points at segment {segment} position {position}, where no commit is")
    for session, branch in db.execute(_HEADS):
        yield Problem(
            f"session {session}", f"is to open on branch {branch.decode('utf-8', 'replace')}, which is not there"
        )
    for session, count in db.execute(_GHOSTS):
        yield Problem(f"session {session}", f"was deleted and has branches: {count}")
    for where, what in db.execute(_STRANGERS):
        yield Problem(where, f"stands on another family's: {what}")


def _sighting_problems(db: Connection) -> Iterator[Problem]:
    for (digest,) in db.execute(_SIGHTINGS):
        yield Problem(f"sighting {digest.lower()}", "leads to no response")


def _search_problems(db: Connection) -> Iterator[Problem]:
    for row in db.execute(_WORDS):
        yield Problem(*row)


def _basis_problems(db: Connection) -> Iterator[Problem]:
    yield from basis_problems(db.execute(_BASES), dict(db.execute(_USES).fetchall()))


def _step_problems(db: Connection) -> Iterator[Problem]:
    steps = ((id.decode("utf-8", "replace"), *run) for id, *run in db.execute(_STEPS))
    yield from audit_steps(steps, dict(db.execute(_ENDS).fetchall()))
