"""Brings a PostgreSQL log to the newest format: the files of ``postgres_schema``, each in one transaction.

As with SQLite, a migration is ``NNNN_name.sql`` and ``NNNN_name.check.sql``, recorded with its checksum. Programs that
open a new log at once take turns, by the table of the migrations or, until there is one, by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from psycopg import errors

from thinkback.stores.migrations import Schema, checksum, failed_check, too_new, unlike
from thinkback.stores.postgres.connections import Connection, transaction

NEWEST = Schema(Path(__file__).parents[1] / "postgres_schema", ("0001_log", "0002_sightings", "0003_sessions"))

_BEGIN = """
CREATE SCHEMA {space};
CREATE TABLE {space}.migrations (version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL);
"""
_THERE_ALREADY = (errors.UniqueViolation, errors.DuplicateSchema, errors.DuplicateTable)


def migrate(db: Connection, shown: str, schema: Schema = NEWEST) -> None:
    """Bring the database up to ``schema``. Raises ``FormatVersionError`` when it is newer than that."""
    version = _version(db, schema)
    if version is None:
        try:
            with transaction(db):
                db.execute(_BEGIN.format(space=schema.space))
                _apply(db, shown, schema, 1)
            version = 1
        except _THERE_ALREADY:  # another process was first
            version = _version(db, schema) or 0
    if version > len(schema.names):
        raise too_new(shown, version, schema)
    for number in range(version + 1, len(schema.names) + 1):
        with transaction(db):
            db.execute(f"LOCK TABLE {schema.space}.migrations IN EXCLUSIVE MODE")
            if (_version(db, schema) or 0) < number:
                _apply(db, shown, schema, number)


def check(db: Connection, schema: Schema = NEWEST) -> Iterator[str]:
    """What is wrong with the recorded migrations and with what they promise."""
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


def _apply(db: Connection, shown: str, schema: Schema, number: int) -> None:
    name = schema.names[number - 1]
    db.execute((schema.directory / f"{name}.sql").read_bytes())
    broken = list(_broken(db, schema, name))
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
