"""One open SQLite log: the connection that writes, the pool that reads, and who may use them when.

Promises: one caller writes at a time; readers of a file never wait for it, readers of a log in memory take turns with
it on its only connection; what SQLite raises comes out as a ``StoreError``; nothing counts as written that went into a
file which has lost its name. Must not: know tables.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from thinkback.errors import StoreError
from thinkback.log.progress import Progress
from thinkback.log.protocol import Durability
from thinkback.stores import migrations
from thinkback.stores.sqlite_open import (
    Connect,
    Connection,
    configure,
    connect,
    connect_memory,
    connect_read_only,
    is_read_only,
    named,
    naming_errors,
    transaction,
)

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

IDLE_READERS = 8
MEMORY = ":memory:"


class LogFile:
    """The file ``path``, made and brought to ``schema`` where needed; one that may only be read is left as it is.

    ``":memory:"`` is no file but a log that ends with the process. ``path`` is how errors name it. ``progress`` counts
    the steps by which an older file is brought to ``schema``.
    """

    def __init__(
        self,
        path: str,
        durability: Durability,
        connects: Connect,
        schema: migrations.Schema,
        progress: Progress | None = None,
    ) -> None:
        self.in_memory = path == MEMORY
        self.path, self.schema, self._connect = path, schema, connects
        self._progress = progress
        self._idle: list[Connection] = []
        self._closed = False
        self._durability = durability
        self._lock = threading.Lock()
        self._at = path
        self._copy: TemporaryDirectory[str] | None = None
        self._read_only = not self.in_memory and is_read_only(path)
        self._is_old = False
        self._identity: tuple[int, int] | None = None
        self._writer: Connection
        if self.in_memory:
            self.path, self._connect = "in memory", connect_memory
        with naming_errors(self.path):
            if not self._read_only:
                self._open(durability)
                if self.in_memory:  # ends with whoever holds it, closed or not
                    weakref.finalize(self, self._writer.close)
            elif _is_whole(path, schema):
                self._connect = connect_read_only
                self._writer = connect_read_only(path)
            else:
                self._connect = connect
                self._go_on_in_copy()

    def _open(self, durability: Durability) -> None:
        self._writer = self._connect(self._at)
        try:
            configure(self._writer, durability)
            self._is_old = self._stands_as_it_is()
            if not self._is_old:
                migrations.migrate(self._writer, self.path, self.schema, self._progress)
            self._identity = (
                None if self.in_memory else _identity(self._at)
            )  # once it is open for writing: some file systems copy it then
        except BaseException:
            self._writer.close()
            raise

    def _stands_as_it_is(self) -> bool:
        """Whether the file has an older format that is read as it stands, until it is written to.

        One without sessions is not: it may be a file that is being made.
        """
        version = migrations.version_of(self._writer, self.path, self.schema)
        if version == len(self.schema.names) or not self.schema.reads(version):
            return False
        return self._writer.execute("SELECT 1 FROM sessions LIMIT 1").fetchone() is not None

    def _renew(self) -> None:
        """Bring a file of an older format up before it is written to, with word of that."""
        if not self._is_old:
            return
        if self._stands_as_it_is():  # another program may have been first
            from shutil import disk_usage

            (size,) = self._writer.execute(
                "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            ).fetchone()
            (sessions,) = self._writer.execute("SELECT count(*) FROM sessions").fetchone()
            free = disk_usage(os.path.dirname(os.path.abspath(self._at))).free
            migrations.announce(self.path, size, sessions, free, self.schema)
            migrations.migrate(self._writer, self.path, self.schema, self._progress)
        self._is_old = False

    def _go_on_in_copy(self) -> None:
        """Use a copy in a temporary directory, of the newest format: nothing is written where the file is."""
        # Imported where it is needed: two milliseconds of every start.
        import shutil
        import tempfile

        self._copy = tempfile.TemporaryDirectory(prefix="thinkback-")
        self._at = os.path.join(self._copy.name, "log.db")
        self._connect = connect
        try:
            for ending in ("", "-wal"):
                if os.path.exists(self.path + ending):
                    shutil.copyfile(self.path + ending, self._at + ending)
            self._open("normal")
        except OSError as error:
            raise StoreError(
                f"the log {self.path} may only be read, and the copy to read it from cannot be made ({error.strerror})",
                details={"path": self.path},
                next_actions=("name a directory with room in TMPDIR, or copy the log to where it may be written",),
            ) from error

    @contextmanager
    def writer(self) -> Iterator[Connection]:
        """The writing connection, for this caller alone and in no transaction; errors come as SQLite raises them."""
        with self._lock:
            self.refuse_closed()
            yield self._writer

    @contextmanager
    def changer(self) -> Iterator[Connection]:
        """The same for whoever changes the log: from here on it has the newest format.

        Raises ``StoreError`` afterwards where the file was removed or replaced: what was written is in none that has
        the log's name.
        """
        with self.writer() as connection, self._naming_replaced():
            self._renew()
            yield connection
            self._refuse_replaced()

    @contextmanager
    def _naming_replaced(self) -> Iterator[None]:
        """Say so where SQLite fails over a file that has taken the place of the log's."""
        try:
            yield
        except sqlite3.Error:
            self._refuse_replaced()
            raise

    def _refuse_replaced(self) -> None:
        """Raise ``StoreError`` where the file has lost its name: what is written ends with the process."""
        if self._identity is not None and _identity(self._at) != self._identity:
            raise StoreError(
                f"the log {self.path} was deleted or replaced while it was open",
                details={"path": self.path},
                next_actions=("nothing of this is stored: open the log again, and repeat it",),
            )

    def is_writable(self) -> bool:
        """Tell whether a write would neither fail nor bring the file to another format first."""
        return not (self._read_only or self._is_old)

    @contextmanager
    def write(self, durably: bool = True) -> Iterator[Connection]:
        """The writing connection in a transaction. Raises ``StoreError`` for a log that may only be read.

        Without ``durably`` a power cut may take it, and only it, back: what was written before is unharmed.
        """
        if self._read_only:
            raise named(sqlite3.OperationalError("it is read-only here"), self.path, sqlite3.SQLITE_READONLY)
        with naming_errors(self.path), self.changer() as connection:
            if durably or self._durability == "normal" or self.in_memory:
                with transaction(connection):
                    yield connection
                return
            connection.execute("PRAGMA synchronous = NORMAL")
            try:
                with transaction(connection):
                    yield connection
            finally:
                connection.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def write_index(self) -> Iterator[Connection]:
        """The same for what is made from the log again at any time; of a log that may only be read, in a copy."""
        if self._read_only and self._copy is None:
            with self._lock, naming_errors(self.path):
                self._writer.close()
                self._close_idle()
                self._go_on_in_copy()
        with self.writer() as connection, naming_errors(self.path), transaction(connection):
            yield connection

    @contextmanager
    def read(self, *, is_one_query: bool = False) -> Iterator[Connection]:
        """A connection that sees the log as it is at its first statement, whatever is written meanwhile; where it
        ``is_one_query``, without a transaction, whose two statements cost more than the query.

        In memory it is the writing one: the caller reads all it wants before it lets go, and calls no other method.
        """
        if self.in_memory:
            with self.writer() as only, naming_errors(self.path):
                yield only
            return
        self.refuse_closed()
        with naming_errors(self.path), self._naming_replaced():
            try:
                connection = self._idle.pop()
            except IndexError:
                self._refuse_replaced()
                connection = self._connect(self._at)
            try:
                if not is_one_query:
                    connection.execute("BEGIN")
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if len(self._idle) < IDLE_READERS:
                    self._idle.append(connection)
                else:
                    connection.close()
                if self._closed:  # while this call read
                    self._close_idle()

    def connection(self) -> sqlite3.Connection:
        """A connection of the caller's own to what is read: the file, or the copy of one that may only be read.

        Of a log in memory it is a copy of all there is.
        """
        if self.in_memory:
            with self.read() as db:
                assert isinstance(db, sqlite3.Connection)
                copy = connect_memory(self._at)
                try:
                    db.backup(copy)
                except BaseException:
                    copy.close()
                    raise
            return copy
        self.refuse_closed()
        in_place = self._read_only and self._copy is None
        with naming_errors(self.path):
            return connect_read_only(self._at) if in_place else connect(self._at)

    def is_cut_short(self, db: Connection) -> bool:
        """Whether the file ends within a page: SQLite takes what is missing for zeros.

        After a power cut it may, where the write-ahead log has the page.
        """
        (page,) = db.execute("PRAGMA page_size").fetchone()
        return not self.in_memory and os.path.getsize(self._at) % page > 0 and not _has_journal(self._at)

    def empty_journal(self) -> None:
        """Bring what was overwritten into the database, and empty the write-ahead log, which holds the old bytes."""
        with self.writer() as db, naming_errors(self.path):
            ((busy, _, _),) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            path = self.path
            raise StoreError(
                f"what was erased from the log {path} is still in {path}-wal, which another program is reading",
                details={"path": path},
                next_actions=(
                    "end that program: the rest is removed once all have closed the log, or with the next erasure",
                ),
            )

    def close(self) -> None:
        """Close every connection; later calls raise ``StoreError``. Waits for the one who writes."""
        with self._lock:
            self._closed = True
            self._writer.close()
        self._close_idle()
        if self._copy is not None:
            self._copy.cleanup()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def refuse_closed(self) -> None:
        """Raise ``StoreError`` after ``close``."""
        if self._closed:
            action = "open a new one" if self.in_memory else "open it again"
            raise StoreError(f"the log {self.path} was closed", details={"path": self.path}, next_actions=(action,))


def _identity(path: str) -> tuple[int, int] | None:
    """Identify the file at ``path``, if there is one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_whole(path: str, schema: migrations.Schema) -> bool:
    """Whether the file can be read as it stands: of a format for that, with nothing in its write-ahead log."""
    if _has_journal(path):
        return False
    with closing(connect_read_only(path)) as db:
        return schema.reads(migrations.version_of(db, path, schema))


def _has_journal(path: str) -> bool:
    """Whether something stands in the file's write-ahead log."""
    try:
        return os.path.getsize(f"{path}-wal") > 0
    except OSError:
        return False
