"""One open SQLite log: the connection that writes, the pool that reads, and who may use them when.

Promises: one caller writes at a time; readers never wait for it; what SQLite raises comes out as a ``StoreError``.
Must not: know tables.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from thinkback.errors import StoreError
from thinkback.stores import Durability, migrations
from thinkback.stores.sqlite_open import Connect, Connection, configure, naming_errors, transaction

IDLE_READERS = 8


class LogFile:
    """The file ``path``, made and brought to ``schema`` where needed."""

    def __init__(self, path: str, durability: Durability, connect: Connect, schema: migrations.Schema) -> None:
        self.path, self.schema, self._connect = path, schema, connect
        self._idle: list[Connection] = []
        self._closed = False
        self._lock = threading.Lock()
        with naming_errors(path):
            self._writer = connect(path)
            try:
                configure(self._writer, durability)
                migrations.migrate(self._writer, path, schema)
            except BaseException:
                self._writer.close()
                raise

    @contextmanager
    def writer(self) -> Iterator[Connection]:
        """The writing connection, for this caller alone and in no transaction; errors come as SQLite raises them."""
        with self._lock:
            self.refuse_closed()
            yield self._writer

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The writing connection in a transaction."""
        with self.writer() as connection, naming_errors(self.path), transaction(connection):
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees the log as it is at its first statement, whatever is written meanwhile."""
        self.refuse_closed()
        with naming_errors(self.path):
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect(self.path)
            try:
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

    def close(self) -> None:
        """Close every connection; later calls raise ``StoreError``. Waits for the one who writes."""
        with self._lock:
            self._closed = True
            self._writer.close()
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def refuse_closed(self) -> None:
        """Raise ``StoreError`` after ``close``."""
        if self._closed:
            raise StoreError(
                f"the log {self.path} was closed", details={"path": self.path}, next_actions=("open it again",)
            )
