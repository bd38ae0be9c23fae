"""Brings a PostgreSQL log to the newest format: the files of ``postgres_schema``, each in one transaction.

A new log gets all of them in one: nobody finds it between two formats, and takes it for an old one.
As with SQLite, a migration is ``NNNN_name.sql`` and ``NNNN_name.check.sql``, recorded with its checksum. Programs that
open a new log at once take turns, by the table of the migrations or, until there is one, by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from psycopg import errors

from thinkback.log.progress import Meter, Progress
from thinkback.stores.migrations import (
    Schema,
    announce,
    checksum,
    counted,
    failed_check,
    script,
    statements,
    too_new,
    unlike,
)
from thinkback.stores.postgres.connections import Connection, transaction

NEWEST = Schema(
    Path(__file__).parents[1] / "postgres_schema",
    ("0001_log", "0002_sightings", "0003_sessions", "0004_erasures", "0005_sums"),
    readable=2,
)
FORMAT = len(NEWEST.names)
"""Of a database, as each session and step says: programs of an older one say none."""

_BEGIN = """
CREATE SCHEMA {space};
CREATE TABLE {space}.migrations (version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL);
"""
_THERE_ALREADY = (errors.UniqueViolation, errors.DuplicateSchema, errors.DuplicateTable)


def version(db: Connection, schema: Schema = NEWEST) -> int:
    """The format of what is there, 0 where there is none."""
    return _version(db, schema) or 0


def stands_as_it_is(db: Connection, shown: str, schema: Schema = NEWEST) -> bool:
    """Whether the database has an older format that is read as it stands, until it is written to."""
    found = version(db, schema)
    if found > len(schema.names):
        raise too_new(shown, found, schema)
    return found < len(schema.names) and schema.reads(found)


def migrate(db: Connection, shown: str, schema: Schema = NEWEST, progress: Progress | None = None) -> None:
    """Bring the database up to ``schema``. Raises ``FormatVersionError`` when it is newer than that."""
    found = _version(db, schema)
    if found is None:
        try:
            with transaction(db):
                db.execute(_BEGIN.format(space=schema.space))
                for number in range(1, len(schema.names) + 1):
                    _apply(db, shown, schema, number, Meter(None, 0, "steps"))
            return
        except _THERE_ALREADY:  # another process was first
            found = _version(db, schema) or 0
    if found > len(schema.names):
        raise too_new(shown, found, schema)
    numbers = range(found + 1, len(schema.names) + 1)
    with counted(schema, numbers, progress) as meter:
        for number in numbers:
            with transaction(db):
                db.execute(f"LOCK TABLE {schema.space}.migrations IN EXCLUSIVE MODE")
                if (_version(db, schema) or 0) < number:
                    _apply(db, shown, schema, number, meter)
            meter.add()


def open_format(db: Connection, shown: str, schema: Schema = NEWEST, progress: Progress | None = None) -> bool:
    """Make a log where there is none, or bring it up where it cannot be read; whether it stands as it is."""
    is_old = stands_as_it_is(db, shown, schema)
    if not is_old:
        migrate(db, shown, schema, progress)
    return is_old


def renew(db: Connection, shown: str, schema: Schema = NEWEST, progress: Progress | None = None) -> None:
    """Bring a log up that is about to be written to, with word of that. The server's disk is not known."""
    if stands_as_it_is(db, shown, schema):
        row = db.execute(
            "SELECT pg_database_size(current_database()), (SELECT count(*) FROM thinkback.sessions)"
        ).fetchone()
        size, sessions = row or (0, 0)
        announce(shown, size, sessions, None, schema)
        migrate(db, shown, schema, progress)


def check(db: Connection, schema: Schema = NEWEST) -> Iterator[str]:
    """What is wrong with the recorded migrations and with what they promise."""
    schema = schema.of(_version(db, schema) or 0)
    rows = db.execute(f"SELECT version, name, checksum FROM {schema.space}.migrations").fetchall()
    yield from unlike({row[0]: row[1:] for row in rows}, schema)
    for name in schema.names:
        yield from _broken(db, schema, name)


def _version(db: Connection, schema: Schema) -> int | None:
    """The format of what is there, ``None`` where there is none."""
    row = db.execute(f"SELECT to_regclass('{schema.space}.migrations')").fetchone()
    if row == (None,):
        return None
    row = db.execute(f"SELECT coalesce(max(version), 0) FROM {schema.space}.migrations").fetchone()
    return None if row is None else int(row[0])


def _apply(db: Connection, shown: str, schema: Schema, number: int, meter: Meter) -> None:
    name = schema.names[number - 1]
    for statement in meter.over(statements(script(schema, number))):
        db.execute(statement.encode())
    broken = list(_broken(db, schema, name))
    meter.add()
    if broken:
        raise failed_check(shown, name, broken)
    row = (number, name, checksum(schema, name))
    db.execute(f"INSERT INTO {schema.space}.migrations (version, name, checksum) VALUES (%s, %s, %s)", row)


def _broken(db: Connection, schema: Schema, name: str) -> Iterator[str]:
    cursor = db.execute((schema.directory / f"{name}.check.sql").read_bytes())
    while True:
        yield from (str(row[0]) for row in cursor)
        if not cursor.nextset():
            return
