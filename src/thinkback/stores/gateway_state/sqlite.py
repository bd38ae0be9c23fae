"""The state of the gateway processes of one machine, in one SQLite file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thinkback.log.protocol import Durability
from thinkback.stores.gateway_state.state import GatewayState, Statement
from thinkback.stores.migrations import Schema
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_open import Connect, connect

NEWEST = Schema(
    Path(__file__).with_name("sqlite_schema"),
    ("0001_office",),
    what="file of a gateway",
    mark=0x7468_6B67,  # "thkg"
)


class SqliteTables:
    """The tables in ``file``."""

    oldest_first = "made"
    loosely = "1"
    clock = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"

    def __init__(self, file: LogFile) -> None:
        self._file = file

    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query gives."""
        with self._file.read() as db:
            return db.execute(sql.format(""), values).fetchall()

    def write(self, *statements: Statement) -> list[list[tuple[Any, ...]]]:
        """What each of these statements gives, all in one transaction."""
        with self._file.write() as db:
            return [db.execute(sql.format(""), values).fetchall() for sql, values in statements]

    def sweep(self) -> None:
        """Bring what was removed into the database."""
        self._file.empty_journal()

    def close(self) -> None:
        """Close every connection."""
        self._file.close()


def open_sqlite(
    path: str, durability: Durability = "full", connect: Connect = connect, schema: Schema = NEWEST
) -> GatewayState:
    """The state in the file ``path``, made where needed. ``connect`` opens connections (tests pass their own)."""
    return GatewayState(SqliteTables(LogFile(path, durability, connect, schema)))
