"""A tenant's log copied into a SQLite file, as it was at one moment: ``thinkback.open`` reads it wherever it is taken.

Everything is in it but the search index, which is made from the log. Commits come in the order of their families, so
what SQLite calls their arrival is not the order they were stored in. A whole database is copied by the server's tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from thinkback.log.progress import Meter, Progress
from thinkback.stores import migrations, sqlite_open
from thinkback.stores.postgres.connections import SNAPSHOT, Connection, transaction
from thinkback.stores.postgres.fsck import commits_of
from thinkback.stores.postgres.text import COLUMNS, given
from thinkback.stores.rows import COLUMNS as FILE_COLUMNS
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_rows import SqliteRows, texts
from thinkback.stores.summaries import settle

BATCH = 1000

_SESSIONS = """
SELECT family, session, id, name, root, parent, purpose, branch, created, settings FROM thinkback.sessions
WHERE tenant = %s ORDER BY made, family, session
"""
_SEGMENTS = """
SELECT segment, session, base, parent_segment, parent_position FROM thinkback.segments
WHERE tenant = %s AND family = %s ORDER BY segment
"""
_BRANCHES = "SELECT session, name, segment, position FROM thinkback.branches WHERE tenant = %s AND family = %s"
_STEPS = "SELECT session, id, segment, position, commits FROM thinkback.steps WHERE tenant = %s AND family = %s"
_COMMITS = f"""
SELECT c.segment, {COLUMNS} FROM thinkback.commits AS c WHERE c.tenant = %s AND c.family = %s
ORDER BY c.segment, c.position
"""

_ADD_SESSION = """
INSERT INTO sessions (session, id, name, family, created, settings, branch, parent, purpose)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ADD_SEGMENT = (
    "INSERT INTO segments (session, base, parent_segment, parent_position) VALUES (?, ?, ?, ?) RETURNING segment"
)
_ADD_BRANCH = "INSERT INTO branches (session, name, segment, position) VALUES (?, ?, ?, ?)"
_ADD_STEP = "INSERT INTO steps (session, id, segment, position, commits, format) VALUES (?, ?, ?, ?, ?, ?)"
_ADD_SUMMARY = "INSERT INTO summaries VALUES (?, 0, '', '[]', 0, 0, 0, 0, ?, ?, ?, ?, ?)"
_BASES = "SELECT digest, codec, text, uses FROM thinkback.bases WHERE tenant = %s"
_ADD_BASIS = "INSERT INTO bases (digest, codec, text, uses) VALUES (?, ?, ?, ?)"
_SUMMARIES = """
SELECT family, session, program, project, directory, sources, cost FROM thinkback.summaries WHERE tenant = %s
"""
_ADD_COMMIT = f"INSERT INTO commits (segment, {FILE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

Numbers: TypeAlias = dict[tuple[int, int], int]


def copy_to_file(db: Connection, tenant: str, path: str, progress: Progress | None = None) -> None:
    """The copy. Raises ``StoreError`` if there is a file at ``path``, and leaves none behind if it fails."""
    with sqlite_open.new_file(path):
        file = LogFile(path, "full", sqlite_open.connect, migrations.NEWEST)
        try:
            with file.write() as copy, transaction(db, SNAPSHOT):
                db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                meter = Meter(progress, commits_of(db, tenant) if progress else 0, "commits")
                sessions = _copy_sessions(db, copy, tenant)
                for family in dict.fromkeys(family for family, _ in sessions):
                    _copy_family(db, copy, (tenant, family), sessions, meter)
                _copy_bases(db, copy, tenant)
                for of, _, _ in SqliteRows(copy).summaries():
                    settle(SqliteRows(copy), of)
                meter.end()
        finally:
            file.close()


def _copy_sessions(db: Connection, copy: sqlite_open.Connection, tenant: str) -> Numbers:
    """The sessions; what they are called in the file. The root of a family and a parent come before what they made."""
    numbers: Numbers = {}
    ids: dict[str, int] = {}
    for number, row in enumerate(db.execute(_SESSIONS, (tenant,)).fetchall(), 1):
        family, session, id, name, root, parent, purpose, branch, created, settings = row
        numbers[family, session] = ids[id] = number
        text = (given(id), None if name is None else given(name))
        rest = (settings, given(branch), ids.get(parent), given(purpose))
        copy.execute(_ADD_SESSION, (number, *text, ids.get(root, number), created, *rest))
    for family, session, program, project, directory, sources, cost in db.execute(_SUMMARIES, (tenant,)).fetchall():
        said = (given(program), given(project), given(directory), texts(tuple(map(given, sources))), cost)
        copy.execute(_ADD_SUMMARY, (numbers[family, session], *said))
    return numbers


def _copy_bases(db: Connection, copy: sqlite_open.Connection, tenant: str) -> None:
    copy.executemany(_ADD_BASIS, db.execute(_BASES, (tenant,), binary=True))


def _copy_family(
    db: Connection, copy: sqlite_open.Connection, of: tuple[str, int], sessions: Numbers, meter: Meter
) -> None:
    segments: dict[int | None, int | None] = {None: None}
    for segment, session, base, above, position in db.execute(_SEGMENTS, of).fetchall():
        row = (sessions[of[1], session], base, segments[above], position)
        ((segments[segment],),) = copy.execute(_ADD_SEGMENT, row).fetchall()
    homes: dict[int, int | None] = {}
    for session, name, segment, position in db.execute(_BRANCHES, of).fetchall():
        homes[session] = segments[segment]
        copy.execute(_ADD_BRANCH, (sessions[of[1], session], given(name), segments[segment], position))
    with db.cursor("commits", binary=True) as cursor:
        cursor.itersize = BATCH
        cursor.execute(_COMMITS, of)
        copy.executemany(_ADD_COMMIT, _rows(meter.over(cursor), segments))
    for session, id, segment, position, commits in db.execute(_STEPS, of).fetchall():
        # A step without commits may have outlived its segment.
        at = segments[segment] if commits else segments.get(segment, homes.get(session))
        copy.execute(_ADD_STEP, (sessions[of[1], session], given(id), at, position, commits, migrations.FORMAT))


def _rows(rows: Iterable[tuple[Any, ...]], segments: dict[int | None, int | None]) -> Iterator[tuple[Any, ...]]:
    for segment, *row in rows:
        yield (segments[segment], *row[:6], given(row[6]), *row[7:])
