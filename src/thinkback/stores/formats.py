"""Logs and gateways' tables as they stand: their formats, and a copy of a file that is in use.

Promises: what is looked at is not made, changed or brought to another format. Must not: read what was said.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import NamedTuple
from urllib.parse import quote

from thinkback.stores.migrations import Schema, version_of
from thinkback.stores.sqlite_open import connect_read_only, naming_errors, new_file


class ServerState(NamedTuple):
    """A PostgreSQL as a gateway finds it. ``log`` and ``gateway`` are formats, 0 where there are no such tables yet.

    ``has_keys``: a gateway's key is there and not revoked. ``time`` is its clock in seconds since 1970. ``is_standby``:
    it may only be read. ``may_create``: this user may make what is not there.
    """

    shown: str
    release: str
    log: int
    gateway: int
    has_keys: bool
    time: float
    is_standby: bool
    may_create: bool


def file_format(path: str, schema: Schema) -> int:
    """The format of the SQLite file ``path``, 0 for an empty one.

    Raises ``StoreError`` for a file that cannot be read or is another program's, ``FormatVersionError`` for a later
    format.
    """
    with naming_errors(path), closing(_reading(path)) as connection:
        return version_of(connection, path, schema)


def tenants_at(url: str) -> list[str]:
    """The tenants with sessions in the PostgreSQL database at ``url``, the first twenty. Raises ``StoreError``."""
    from thinkback.stores.postgres.connections import Pool

    with closing(Pool(url, "full", 1)) as pool:
        return pool.run(lambda db: [name for (name,) in db.execute(_TENANTS).fetchall()])


def all_tenants_at(url: str) -> list[str]:
    """The same, all of them."""
    from thinkback.stores.postgres.connections import Pool

    with closing(Pool(url, "full", 1)) as pool:
        return pool.run(lambda db: [name for (name,) in db.execute(_TENANTS.replace("LIMIT 20", "")).fetchall()])


def has_keys(path: str) -> bool:
    """Whether the gateway's file ``path`` has a key that is not revoked. Raises ``StoreError``."""
    with naming_errors(path), closing(_reading(path)) as connection:
        return connection.execute(_KEY.format("")).fetchone() is not None


def copy_file(path: str, target: str) -> None:
    """Copy the SQLite file ``path`` as of now to ``target``, which must not be there. Others may write meanwhile."""
    with (
        naming_errors(path),
        closing(_reading(path)) as source,
        new_file(target),
        naming_errors(target),
        closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)


def server_state(url: str) -> ServerState:
    """The database at ``url``. Raises ``StoreError`` where it cannot be reached, ``FormatVersionError``."""
    from thinkback.stores.gateway_state.postgres import NEWEST as GATEWAY
    from thinkback.stores.migrations import too_new
    from thinkback.stores.postgres.connections import Connection, Pool
    from thinkback.stores.postgres.schema import NEWEST, version

    def look(db: Connection) -> ServerState:
        log, gateway = version(db, NEWEST), version(db, GATEWAY)
        for found, schema in ((log, NEWEST), (gateway, GATEWAY)):
            if found > len(schema.names):
                raise too_new(pool.shown, found, schema)
        row = db.execute(_STATE).fetchone()
        assert row is not None
        has_keys = bool(gateway) and db.execute(_KEY.format("thinkback_gateway.")).fetchone() is not None
        return ServerState(pool.shown, row[0], log, gateway, has_keys, *row[1:])

    with closing(Pool(url, "full", 1)) as pool:
        return pool.run(look)


_KEY = "SELECT 1 FROM {}keys WHERE revoked IS NULL LIMIT 1"
# each is a step in the index: a tenant may have millions of sessions
_TENANTS = """
WITH RECURSIVE found (tenant) AS (
    (SELECT tenant FROM thinkback.sessions ORDER BY tenant LIMIT 1) UNION ALL
    SELECT (SELECT s.tenant FROM thinkback.sessions AS s WHERE s.tenant > f.tenant ORDER BY s.tenant LIMIT 1)
    FROM found AS f WHERE f.tenant IS NOT NULL
) SELECT tenant FROM found WHERE tenant IS NOT NULL LIMIT 20
"""
_STATE = """
SELECT current_setting('server_version'), extract(epoch FROM clock_timestamp())::float8, pg_is_in_recovery(),
       has_database_privilege(current_database(), 'CREATE')
"""


def _reading(path: str) -> sqlite3.Connection:
    """A connection that changes nothing. What stands in a write-ahead log counts."""
    if not os.path.exists(f"{path}-wal"):
        return connect_read_only(path)
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
