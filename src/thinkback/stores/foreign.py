"""Tables of a SQLite file that another program writes to, and that may be hostile.

Promises: the file and what stands beside it are only read, as bytes: SQLite gets a private copy, because a reader of a
live database writes to its shared memory. Nothing that the file says runs: no view, no computed column, no trigger.
Must not: know what the tables mean.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from thinkback.errors import StoreError

_TRIES = 5
_LARGEST = 64 * 1024 * 1024
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})


def tables(path: str, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """All rows of those of the tables that are there, by the names of their columns.

    Raises ``OSError``, and ``StoreError`` where it is no database, is damaged, or changes all the time.
    """
    with _private_copy(path) as connection:
        return _rows(connection, names)


def table_names(path: str) -> set[str]:
    """The tables that are there. Raises as ``tables``."""
    with _private_copy(path) as connection:
        return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@contextmanager
def _private_copy(path: str) -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory(prefix="thinkback-") as place:
        copy = os.path.join(place, "copy.db")
        _copy(path, copy)
        try:
            with closing(sqlite3.connect(copy)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise StoreError(
                f"{path} cannot be read as a database: {error}", next_actions=("check that it is whole",)
            ) from error


def _copy(path: str, copy: str) -> None:
    """The file with what of it stands in its write-ahead log, as of one moment."""
    for _ in range(_TRIES):
        before = _state(path)
        shutil.copyfile(path, copy)
        if before[1]:
            shutil.copyfile(f"{path}-wal", f"{copy}-wal")
        if before == _state(path):
            return
    raise StoreError(f"{path} changed while it was copied", next_actions=("import it again when it rests",))


def _state(path: str) -> tuple[tuple[int, int], tuple[int, int] | None]:
    found = os.stat(path)
    try:
        log = os.stat(f"{path}-wal")
    except FileNotFoundError:
        return (found.st_mtime_ns, found.st_size), None
    return (found.st_mtime_ns, found.st_size), (log.st_mtime_ns, log.st_size)


def _rows(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.row_factory = sqlite3.Row
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    columns = {name: _columns(connection, name) for name in names if name in there}
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY)
    return {
        name: [dict(row) for row in connection.execute(f"SELECT {', '.join(own)} FROM {_quoted(name)}")]
        for name, own in columns.items()
    }


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns that are stored; those that are computed are left out."""
    found = connection.execute(f"PRAGMA table_xinfo({_quoted(table)})")
    return [_quoted(row["name"]) for row in found if row["hidden"] == 0]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
