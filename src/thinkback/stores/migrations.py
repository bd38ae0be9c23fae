"""Brings a SQLite log to the newest format: plain SQL files, applied in order, each in one transaction.

A migration is two files: ``NNNN_name.sql`` changes the schema, ``NNNN_name.check.sql`` is a query whose rows are
broken promises. Its version, name and checksum are recorded in the transaction that applies it. A migration that
was ever released is never edited. A new log gets all of them in one transaction: nobody finds it between two formats,
and takes it for an old one.
"""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from thinkback.errors import FormatVersionError, StoreError
from thinkback.log.progress import Meter, Progress
from thinkback.stores.sqlite_open import Connection, transaction

APPLICATION_ID = 0x7468_6B62  # "thkb": marks the file as a log of thinkback

# What the migration that a log is read without needs.
_ROOM, _ROOM_OF_SESSION, _SESSIONS_A_SECOND = 256 * 1024, 128, 100_000

_RECORD = "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL) STRICT"
# One statement, so that a program that makes the log meanwhile is seen wholly or not at all.
_FORMAT = """
SELECT application_id, user_version, EXISTS (SELECT 1 FROM sqlite_schema)
FROM pragma_application_id, pragma_user_version
"""


class Schema(NamedTuple):
    """A directory of migrations and the names of those to apply, oldest first.

    ``what`` they make; ``mark`` is the application id of such a file, ``space`` PostgreSQL's schema for it. A log of
    the format ``readable`` or a later one is read as it stands, and brought up when it is written to; 0: none is.
    """

    directory: Path
    names: tuple[str, ...]
    what: str = "log of thinkback"
    mark: int = APPLICATION_ID
    space: str = "thinkback"
    readable: int = 0

    def reads(self, version: int) -> bool:
        """Whether a log of that format is read as it stands."""
        return version == len(self.names) or 0 < self.readable <= version < len(self.names)

    def of(self, version: int) -> Schema:
        """The schema that a log of a format that is read as it stands should have."""
        return self._replace(names=self.names[:version]) if self.reads(version) else self


NEWEST = Schema(
    Path(__file__).with_name("sqlite_schema"),
    ("0001_log", "0002_versions", "0003_search", "0004_sightings", "0005_sessions"),
    readable=4,
)
FORMAT = len(NEWEST.names)
"""Of a file, as each step says: programs of an older one say none."""


def migrate(connection: Connection, path: str, schema: Schema = NEWEST, progress: Progress | None = None) -> None:
    """Bring the file up to ``schema``. Raises ``FormatVersionError`` when the file is newer than it.

    ``progress`` counts the steps of bringing an older file up; a new file reports none.
    """
    version = _version(connection, path, schema)
    if version > len(schema.names):
        raise too_new(path, version, schema)
    if version == 0:
        with transaction(connection):
            if _version(connection, path, schema) == 0:
                for number in range(1, len(schema.names) + 1):
                    _apply(connection, path, schema, number, Meter(None, 0, "steps"))
        version = _version(connection, path, schema)
    numbers = range(version + 1, len(schema.names) + 1)
    with counted(schema, numbers, progress) as meter:
        for number in numbers:
            with transaction(connection):
                if _version(connection, path, schema) < number:  # another process may have been first
                    _apply(connection, path, schema, number, meter)
            meter.add()


@contextmanager
def counted(schema: Schema, numbers: Sequence[int], progress: Progress | None) -> Iterator[Meter]:
    """Counts the steps of the migrations ``numbers``: their statements, and for each its check and its commit.

    However they end, the last report leaves nothing to do.
    """
    steps = sum(len(list(statements(script(schema, number)))) + 2 for number in numbers)
    meter = Meter(progress if numbers else None, steps, "steps")
    try:
        yield meter
    finally:
        meter.end()


def script(schema: Schema, number: int) -> str:
    """The SQL of a migration."""
    return (schema.directory / f"{schema.names[number - 1]}.sql").read_text("utf-8")


def version_of(connection: Connection, path: str, schema: Schema = NEWEST) -> int:
    """The format of the file, 0 for an empty one. Raises as ``migrate``."""
    version = _version(connection, path, schema)
    if version > len(schema.names):
        raise too_new(path, version, schema)
    return version


def announce(path: str, size: int, sessions: int, free: int | None, schema: Schema = NEWEST) -> None:
    """Say that a log is about to be brought to the newest format. Raises ``StoreError`` where there is no room for it.

    ``size`` and ``free`` (``None``: not known) are bytes of the log and of its disk.
    """
    needed = 2 * (_ROOM + _ROOM_OF_SESSION * sessions)  # once in the journal, once in the file
    if free is not None and free < needed:
        raise StoreError(
            f"the log {path} is to be brought to format {len(schema.names)}, which takes {_megabytes(needed)} of disk; "
            f"{_megabytes(free)} are free",
            details={"path": path, "needed": needed, "free": free},
            next_actions=("nothing was changed: free some space and try again", "the log can be read as it is"),
        )
    seconds = max(1, sessions // _SESSIONS_A_SECOND)
    warnings.warn(
        f"the log {path} ({_megabytes(size)}, sessions: {sessions}) is being brought to format {len(schema.names)}, "
        f"which takes about {seconds} s; earlier versions of thinkback cannot use it afterwards",
        stacklevel=2,
    )


def _megabytes(size: int) -> str:
    return f"{max(1, round(size / 1e6))} MB"


def check(connection: Connection, schema: Schema = NEWEST) -> Iterator[str]:
    """What is wrong with the recorded migrations and with what they promise."""
    rows = connection.execute("SELECT version, name, checksum FROM migrations").fetchall()
    yield from unlike({row[0]: row[1:] for row in rows}, schema)
    for name in schema.names:
        yield from _broken(connection, schema, name)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != len(schema.names):
        yield f"user_version is {version}, expected {len(schema.names)}"


def _version(connection: Connection, path: str, schema: Schema) -> int:
    """The format of the file, 0 for an empty one. Refuses another program's database."""
    application, version, used = connection.execute(_FORMAT).fetchone()
    if application == schema.mark:
        return int(version)
    if version or used:
        raise StoreError(
            f"{path} is a SQLite database of another program, not a {schema.what}",
            details={"path": path},
            next_actions=("check the path, or name one where no file is yet to begin anew",),
        )
    return 0


def _apply(connection: Connection, path: str, schema: Schema, number: int, meter: Meter) -> None:
    name = schema.names[number - 1]
    if number == 1:
        connection.execute(_RECORD)
    for statement in meter.over(statements(script(schema, number))):
        connection.execute(statement)
    broken = list(_broken(connection, schema, name))
    meter.add()
    if broken:
        raise failed_check(path, name, broken)
    row = (number, name, checksum(schema, name))
    connection.execute("INSERT INTO migrations (version, name, checksum) VALUES (?, ?, ?)", row)
    connection.execute(f"PRAGMA application_id = {schema.mark}")
    connection.execute(f"PRAGMA user_version = {number}")


def statements(script: str) -> Iterator[str]:
    """The statements of a SQL script, one by one (``executescript`` would end the transaction)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _broken(connection: Connection, schema: Schema, name: str) -> Iterator[str]:
    for statement in statements((schema.directory / f"{name}.check.sql").read_text("utf-8")):
        yield from (str(row[0]) for row in connection.execute(statement))


def checksum(schema: Schema, name: str) -> str:
    """What is recorded of a migration besides its name."""
    return hashlib.sha256((schema.directory / f"{name}.sql").read_bytes()).hexdigest()


def unlike(recorded: Mapping[int, Sequence[str]], schema: Schema) -> Iterator[str]:
    """How the recorded migrations (version to name and checksum) differ from those of ``schema``."""
    for number, name in enumerate(schema.names, 1):
        found = recorded.get(number)
        if found is None:
            yield f"migration {number} is not recorded"
        elif tuple(found) != (name, checksum(schema, name)):
            yield f"migration {number} is recorded as {found[0]} {found[1]}, which is not the one of this thinkback"
    known = range(1, len(schema.names) + 1)
    yield from (f"migration {number} is recorded but not known" for number in recorded if number not in known)


def too_new(path: str, version: int, schema: Schema) -> FormatVersionError:
    """The error for a log of a later format."""
    return FormatVersionError(
        f"the log {path} has format {version}, this thinkback reads up to {len(schema.names)}",
        details={"path": path, "format": version, "newest": len(schema.names)},
        next_actions=("upgrade thinkback", "or open a copy of the log from before it was upgraded"),
    )


def failed_check(path: str, name: str, broken: Sequence[str]) -> StoreError:
    """The error for a migration that did not keep its promises and was undone."""
    return StoreError(
        f"migration {name} of the log {path} failed its check: {'; '.join(broken)}",
        details={"path": path, "migration": name},
        next_actions=("the log is as it was before: report this, and go on with the version used so far",),
    )
