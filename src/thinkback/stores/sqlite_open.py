"""A SQLite file as thinkback opens it: made private, set to WAL, and its errors given names and advice.

Must not: know tables.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol
from urllib.parse import quote

from thinkback.errors import CorruptLogError, FileTakenError, StoreError
from thinkback.log.protocol import Durability

BUSY_SECONDS = 10.0
WAL_TRIES = 500


class Cursor(Protocol):
    """The part of a cursor that the store uses."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """The part of ``sqlite3.Connection`` that the store uses."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor: ...

    def close(self) -> None: ...


Connect = Callable[[str], Connection]

_creating = threading.Lock()


def connect(path: str) -> sqlite3.Connection:
    """A connection in autocommit mode, usable from any thread, one at a time."""
    _make_private(path)
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def connect_memory(path: str) -> sqlite3.Connection:
    """A database of its own that ends with the connection; whatever file has the name ``path`` is left alone."""
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def is_read_only(path: str) -> bool:
    """Whether there is a file at ``path`` that this user may not write, or beside which no other file can be made."""
    if not os.path.exists(path):
        return False
    return not all(_may(place, os.W_OK) for place in (path, os.path.dirname(os.path.abspath(path))))


def _may(place: str, mode: int) -> bool:
    return os.access(place, mode, effective_ids=os.access in os.supports_effective_ids)


def connect_read_only(path: str) -> sqlite3.Connection:
    """A connection to a file that nobody changes: nothing is made beside it."""
    address = f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)


def configure(connection: Connection, durability: Durability) -> None:
    """Set a writing connection up. WAL is remembered by the file, the rest by the connection."""
    for last in (False,) * WAL_TRIES + (True,):
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            break
        except sqlite3.OperationalError as error:
            # Programs that open a new file at once are in each other's way here, and SQLite does not wait for them.
            if last or _code(error) != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(BUSY_SECONDS / WAL_TRIES)
    connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'full' else 'NORMAL'}")
    # Always, not only to erase: SQLite leaves copies behind where it moves rows from page to page.
    connection.execute("PRAGMA secure_delete = ON").fetchall()


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """A write transaction: committed at the end, undone by any exception."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has already undone it
            connection.execute("ROLLBACK")
        raise


@contextmanager
def naming_errors(path: str) -> Iterator[None]:
    """Raise what SQLite raises as a ``StoreError`` that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise named(error, path) from error
    except UnicodeDecodeError as error:  # damaged text, which SQLite quotes in its message
        raise named(sqlite3.DatabaseError(str(error)), path, sqlite3.SQLITE_CORRUPT) from error


def named(error: sqlite3.Error, path: str, code: int = 0) -> StoreError:
    """The ``StoreError`` for ``error``, whose own code counts unless one is given."""
    code = code or _code(error)
    cls, what, action = _NAMES.get(code, _UNNAMED)
    if code == sqlite3.SQLITE_CANTOPEN and os.path.exists(path) and not _may(path, os.R_OK):
        what, action = _UNREADABLE
        error = sqlite3.OperationalError("Permission denied")  # SQLite does not say why
    return cls(f"the log {path} {what} ({error})", details={"path": path, "code": code}, next_actions=(action,))


_UNNAMED: tuple[type[StoreError], str, str] = (
    StoreError,
    "could not be used",
    "nothing was stored; see the cause",
)
_UNREADABLE = "may not be read", "give this user read permission for the file, or name another (--db)"
_NAMES: dict[int, tuple[type[StoreError], str, str]] = {
    sqlite3.SQLITE_BUSY: (
        StoreError,
        "is locked by another process",
        "nothing was stored: end the program that holds it, or try again",
    ),
    sqlite3.SQLITE_FULL: (
        StoreError,
        "does not fit on its disk",
        "nothing of this step was stored: free some space and try again",
    ),
    sqlite3.SQLITE_READONLY: (
        StoreError,
        "may only be read",
        "give this user write permission for the file and its directory, or open a copy",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreError,
        "cannot be opened",
        "check that it is a file, that its directory exists and that this user may write there, or name another (--db)",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreError,
        "could not be read or written by the disk",
        "check the disk, then run `thinkback fsck`; what was acknowledged before is unharmed as far as the disk is",
    ),
    sqlite3.SQLITE_TOOBIG: (
        StoreError,
        "cannot hold a payload that large",
        "nothing of this step was stored: SQLite holds up to 1 GB in one place",
    ),
    sqlite3.SQLITE_CONSTRAINT: (
        CorruptLogError,
        "holds something else where this was to go",
        "nothing of this was stored: run `thinkback fsck`",
    ),
    sqlite3.SQLITE_NOTADB: (
        CorruptLogError,
        "is not a SQLite file, or its first page is damaged",
        "check the path; if it was a log, restore it from a copy",
    ),
    sqlite3.SQLITE_CORRUPT: (
        CorruptLogError,
        "is damaged",
        "run `thinkback fsck` to see how far, then restore it from a copy",
    ),
}


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 for an error of the Python module itself."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


@contextmanager
def new_file(path: str) -> Iterator[None]:
    """An empty, private file to copy a log into, removed again if that fails. Raises ``FileTakenError``."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise FileTakenError(
            f"{path} exists already", details={"path": path}, next_actions=("name a file that is not there yet",)
        ) from None
    except OSError as error:
        raise StoreError(
            f"the copy {path} cannot be made ({error.strerror})",
            details={"path": path},
            next_actions=("check that its directory exists and that this user may write there",),
        ) from error
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def _make_private(path: str) -> None:
    """Make the file with mode 0600 if it is not there; SQLite gives -wal and -shm the mode of the database.

    Never opens a file that exists: closing it would drop the locks of this process's other connections.
    """
    if os.path.exists(path):
        return
    try:
        with _creating:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreError(
            f"the log {path} cannot be made ({error.strerror})",
            details={"path": path},
            next_actions=(
                "check that its directory exists and that this user may write there, or name another (--db)",
            ),
        ) from error
