"""Connections to one PostgreSQL database: a small pool, made ready for a log, and errors with names and advice.

Promises: at most as many connections as configured; a connection that broke, or was left in the middle of something,
is never given out again; a transaction that the server asks to repeat is repeated; the address's password is in no
error, no text and no representation. Must not: know tables.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeAlias, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from thinkback.errors import CorruptLogError, StoreError
from thinkback.log.protocol import Durability

T = TypeVar("T")
Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

WAIT_SECONDS = 30.0
TRIES = 20
SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""The mode of a transaction that sees the log as it was at its first statement."""

# A server that is gone must be noticed; what the address says itself goes before these.
_DEFAULTS: dict[str, str] = {
    "application_name": "thinkback",
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# A stopped program must not hold others up for ever. "full" asks for no more than the server does by itself, but for
# no less than its own disk. What the address's options say stays.
_PREPARE = """
SELECT CASE WHEN current_setting('lock_timeout') = '0' THEN set_config('lock_timeout', '10s', false) END,
       CASE WHEN current_setting('idle_in_transaction_session_timeout') = '0'
            THEN set_config('idle_in_transaction_session_timeout', '60s', false) END,
       CASE WHEN %s THEN set_config('synchronous_commit', 'off', false)
            WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END
"""
_REPEAT = (errors.SerializationFailure, errors.DeadlockDetected)


class Pool:
    """Up to ``limit`` connections to the database at ``url``; ``shown`` names it without its password."""

    def __init__(self, url: str, durability: Durability, limit: int = 8) -> None:
        self.shown, self._connect = _connector(url, durability)
        self._slots = threading.BoundedSemaphore(limit)
        self._limit = limit
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False
        self._process = os.getpid()

    def run(self, work: Callable[[Connection], T]) -> T:
        """What ``work`` returns; it is called again where the server asks for that."""
        with self.connection() as connection:
            for _ in range(TRIES - 1):
                try:
                    return work(connection)
                except _REPEAT:
                    connection.rollback()
            return work(connection)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in autocommit mode. A transaction that is still open at the end is undone."""
        self._refuse()
        if not self._slots.acquire(timeout=WAIT_SECONDS):
            raise self._busy()
        try:
            with naming_errors(self.shown):
                connection = self._take()
                try:
                    yield connection
                finally:
                    self._give_back(connection)
        finally:
            self._slots.release()

    def close(self) -> None:
        """Close every connection; those in use are closed when they are given back."""
        with self._lock:
            self._closed = True
        self._close_idle()

    def _take(self) -> Connection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection = self._idle.pop()
            if _is_alive(connection):
                return connection
            connection.close()
        return self._connect()

    def _give_back(self, connection: Connection) -> None:
        with suppress(psycopg.Error):
            if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                connection.rollback()
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)
        if self._closed:  # while it was used
            self._close_idle()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _refuse(self) -> None:
        if self._closed:
            raise StoreError(
                f"the log {self.shown} was closed", details={"path": self.shown}, next_actions=("open it again",)
            )
        if self._process != os.getpid():
            raise StoreError(
                f"the log {self.shown} was opened before this process was forked from another",
                details={"path": self.shown},
                next_actions=("open it again in each process: two processes cannot share connections",),
            )

    def _busy(self) -> StoreError:
        return StoreError(
            f"all {self._limit} connections to the log {self.shown} are in use",
            details={"path": self.shown, "connections": self._limit},
            next_actions=("nothing was stored: try again", "or open it with more connections"),
        )


@contextmanager
def naming_errors(shown: str) -> Iterator[None]:
    """Raise what psycopg raises as a ``StoreError`` that says what to do."""
    try:
        yield
    except psycopg.Error as error:
        raise named(error, shown) from error


@contextmanager
def transaction(connection: Connection, mode: str = "") -> Iterator[None]:
    """One transaction, committed at the end and undone by any exception."""
    connection.execute(f"BEGIN {mode}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if not connection.closed:
            with suppress(psycopg.Error):
                connection.rollback()
        raise


def named(error: psycopg.Error, shown: str) -> StoreError:
    """The ``StoreError`` for ``error``."""
    code = error.sqlstate or ("08006" if isinstance(error, psycopg.OperationalError) else "")
    cls, what, action = _NAMES.get(code) or _NAMES.get(code[:2], _UNNAMED)
    said = (error.diag.message_primary or str(error)).strip().partition("\n")[0]
    return cls(f"the log {shown} {what} ({said})", details={"path": shown, "code": code}, next_actions=(action,))


_Name: TypeAlias = tuple[type[StoreError], str, str]
_UNNAMED: _Name = (StoreError, "could not be used", "nothing was stored; see the cause")
_LOST: _Name = (
    StoreError,
    "lost its connection to the server",
    "whether the last step was stored is not known: append the same step again, it is stored at most once",
)
_ACCESS: _Name = (
    StoreError,
    "does not let this user in",
    "check the user and the password of the address, and the server's pg_hba.conf",
)
_NAMES: dict[str, _Name] = {
    "08": _LOST,
    "08001": (
        StoreError,
        "cannot be reached",
        "nothing was stored: check the address, and that the server runs and can be reached from here",
    ),
    "57P01": _LOST,
    "57P02": _LOST,
    "57P05": _LOST,
    "25P03": _LOST,
    "57P03": (
        StoreError,
        "is on a server that starts up, recovers or shuts down",
        "nothing was stored: try again in a moment",
    ),
    "28": _ACCESS,
    "3D000": (StoreError, "is in a database that does not exist", "make it with `createdb`, or check the address"),
    "42501": (
        StoreError,
        "does not give this user the right",
        "grant it what docs/scale.md lists, or open the log once as the owner of the schema",
    ),
    "25006": (StoreError, "may only be read", "write to the primary server, this one is a standby"),
    "53100": (
        StoreError,
        "does not fit on the server's disk",
        "nothing of this step was stored: free some space and try again",
    ),
    "53200": (StoreError, "ran out of memory on the server", "nothing was stored: try again"),
    "53300": (
        StoreError,
        "is on a server without a connection to spare",
        "open the log with fewer connections, or raise the server's max_connections",
    ),
    "54": (StoreError, "cannot hold a payload that large", "nothing of this step was stored: up to 1 GB in one place"),
    "55P03": (
        StoreError,
        "is locked by another process",
        "nothing was stored: end the program that holds it, or try again",
    ),
    "57014": (StoreError, "was too slow for the server's time limit", "nothing was stored: try again"),
    "40": (StoreError, "is written to by too many at once", "nothing was stored: try again"),
    "23": (
        CorruptLogError,
        "holds something else where this was to go",
        "nothing of this was stored: run `thinkback fsck`",
    ),
    "42P01": (CorruptLogError, "lacks a table", "run `thinkback fsck`, then restore it from a copy"),
    "XX": (CorruptLogError, "is damaged", "run `thinkback fsck` to see how far, then restore it from a copy"),
}


def _connector(url: str, durability: Durability) -> tuple[str, Callable[[], Connection]]:
    """The address without its password, and what connects to it. A closure: its representation shows nothing."""
    shown, conninfo = _address(url)

    def connect() -> Connection:
        try:
            connection = psycopg.connect(conninfo, autocommit=True)
        except psycopg.OperationalError as error:
            if error.sqlstate:
                raise
            _unreachable(shown, error)
        try:
            _refuse_encoding(connection, shown)
            connection.execute(_PREPARE, (durability == "normal",))
        except BaseException:
            connection.close()
            raise
        return connection

    return shown, connect


def _address(url: str) -> tuple[str, str]:
    """(the address without password and options, libpq's form of it). Its own parser's errors quote the password."""
    try:
        parts = conninfo_to_dict(url)
        user, host, port, database = (str(parts.get(key) or "") for key in ("user", "host", "port", "dbname"))
        if "@" in host + database or (port and not port.replace(",", "").isdigit()):
            raise ValueError
    except (psycopg.Error, ValueError):
        raise StoreError(
            "the address of the log is not one of PostgreSQL",
            next_actions=(
                "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
                "a password's special characters are written as in any URL: @ is %40, / is %2F, : is %3A",
            ),
        ) from None
    shown = f"postgresql://{user}{'@' if user else ''}{host}{':' if port else ''}{port}/{database}"
    return shown, make_conninfo("", **{**_DEFAULTS, **parts})


def _unreachable(shown: str, error: psycopg.OperationalError) -> NoReturn:
    """libpq gives errors of connecting no code; what it says names host and user, not the password."""
    said = str(error).strip().partition("\n")[0]
    code = next((code for hint, code in _SAID.items() if hint in said), "08001")
    cls, what, action = _NAMES.get(code) or _NAMES[code[:2]]
    raise cls(
        f"the log {shown} {what} ({said})", details={"path": shown, "code": code}, next_actions=(action,)
    ) from error


# Refusals while connecting come as text. The first in it counts: a server that recovers speaks of its database, too.
_SAID = {
    "the database system is": "57P03",
    "not currently accepting connections": "57P03",
    "password": "28P01",
    "pg_hba.conf": "28000",
    "role ": "28000",
    "database ": "3D000",
    "too many clients": "53300",
    "connection slots": "53300",
}


def _refuse_encoding(connection: Connection, shown: str) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"the log {shown} is in a database whose encoding is {encoding}",
            details={"path": shown, "encoding": encoding},
            next_actions=("make a database with the encoding UTF8 for it",),
        )


def _is_alive(connection: Connection) -> bool:
    """Whether the server has said nothing since: an idle connection can be read from only when it has ended."""
    if connection.closed:
        return False
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return not waiting.poll(0)
