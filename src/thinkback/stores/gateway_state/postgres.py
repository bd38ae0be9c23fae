"""The state of gateway processes on any number of machines, in a PostgreSQL database, beside the logs.

Its tables are in the schema ``thinkback_gateway``.
"""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from thinkback.log.protocol import Durability
from thinkback.stores.gateway_state.state import GatewayState, Statement
from thinkback.stores.migrations import Schema
from thinkback.stores.postgres.connections import Connection, Pool, transaction
from thinkback.stores.postgres.schema import migrate

NEWEST = Schema(
    Path(__file__).with_name("postgres_schema"), ("0001_office",), what="gateway's tables", space="thinkback_gateway"
)


class PostgresTables:
    """The tables behind ``pool``."""

    oldest_first = "created, id"
    loosely = "set_config('synchronous_commit', 'off', true)"
    clock = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query gives."""
        return self._pool.run(lambda db: db.execute(_sql(sql), values).fetchall())

    def write(self, *statements: Statement) -> list[list[tuple[Any, ...]]]:
        """What each of these statements gives, all in one transaction."""

        def work(db: Connection) -> list[list[tuple[Any, ...]]]:
            with nullcontext() if len(statements) == 1 else transaction(db):
                cursors = [db.execute(_sql(sql), values) for sql, values in statements]
                return [cursor.fetchall() if cursor.description else [] for cursor in cursors]

        return self._pool.run(work)

    def sweep(self) -> None:
        """Nothing: from the server's files it goes when the server vacuums."""

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


def is_in(url: str) -> bool:
    """Whether a gateway keeps anything in the database at ``url``."""
    with closing(Pool(url, "full", 1)) as pool:
        return pool.run(lambda db: db.execute("SELECT to_regclass('thinkback_gateway.replays')").fetchone()) != (None,)


def open_postgres(
    url: str, durability: Durability = "full", connections: int = 4, schema: Schema = NEWEST
) -> GatewayState:
    """The state in the database at ``url``, made where needed. ``connections`` is how many may be open at once."""
    pool = Pool(url, durability, connections)
    try:
        pool.run(lambda db: migrate(db, pool.shown, schema))
    except BaseException:
        pool.close()
        raise
    return GatewayState(PostgresTables(pool))


def _sql(sql: str) -> str:
    """A statement as psycopg takes it."""
    return sql.format("thinkback_gateway.").replace("?", "%s")
