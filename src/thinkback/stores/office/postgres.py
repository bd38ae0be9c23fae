"""The office in a PostgreSQL database, beside the logs, for gateway processes on any number of machines.

Promises and limits as those of SQLite's; its tables are in the schema ``thinkback_gateway``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from thinkback.errors import StoreError
from thinkback.stores import Durability
from thinkback.stores.migrations import Schema
from thinkback.stores.office.protocol import LABELLED, Claim, Claimed, KeyRow, Slot, Spent, Use, concerns, short
from thinkback.stores.office.sqlite import check_key, held, key_taken
from thinkback.stores.postgres.connections import Connection, Pool, transaction
from thinkback.stores.postgres.schema import migrate

NEWEST = Schema(
    Path(__file__).with_name("postgres_schema"), ("0001_office",), what="gateway's tables", space="thinkback_gateway"
)
LOOKS = 20

_ANSWERS = """
SELECT slot, substring(answer FROM 1 FOR %s) FROM thinkback_gateway.replays
WHERE tenant = %s AND answer IS NOT NULL ORDER BY slot
"""
_DROP_ANSWERS = "DELETE FROM thinkback_gateway.replays WHERE tenant = %s AND slot = ANY(%s)"
_DROP_CARRIERS = "DELETE FROM thinkback_gateway.carriers WHERE tenant = %s AND response = ANY(%s)"
_KEY = "SELECT id, digest, ending, tenant, name, terms, created, expires, revoked FROM thinkback_gateway.keys"
_ADD_KEY = """
INSERT INTO thinkback_gateway.keys (id, digest, ending, tenant, name, terms, created, expires, revoked)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_ADD_USE = """
INSERT INTO thinkback_gateway.spending AS s (key, period, requests, input, output, reasoning)
VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (key, period) DO UPDATE SET requests = s.requests + excluded.requests, input = s.input + excluded.input,
    output = s.output + excluded.output, reasoning = s.reasoning + excluded.reasoning
RETURNING requests, input, output, reasoning
"""
_USES = "SELECT period, requests, input, output, reasoning FROM thinkback_gateway.spending WHERE key = %s"
_FORGET = "DELETE FROM thinkback_gateway.spending WHERE length(period) = 10 AND period < %s"
# What has run out is taken over, by one of those who ask.
_CLAIM = """
INSERT INTO thinkback_gateway.replays AS r (tenant, slot, body, owner, until, answer)
VALUES (%s, %s, %s, %s, %s, NULL)
ON CONFLICT (tenant, slot) DO UPDATE
SET body = excluded.body, owner = excluded.owner, until = excluded.until, answer = NULL WHERE r.until <= %s
"""
_HELD = "SELECT body, until, answer FROM thinkback_gateway.replays WHERE tenant = %s AND slot = %s"
_OWN = "WHERE tenant = %s AND slot = %s AND owner = %s AND answer IS NULL"
_RENEW = f"UPDATE thinkback_gateway.replays SET until = %s {_OWN}"
_FINISH = f"UPDATE thinkback_gateway.replays SET answer = %s, until = %s {_OWN}"
_RELEASE = f"DELETE FROM thinkback_gateway.replays {_OWN}"
_PUT = """
INSERT INTO thinkback_gateway.carriers (tenant, scope, response, sealed, until) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (tenant, scope, response) DO UPDATE SET sealed = excluded.sealed, until = excluded.until
"""
_GET = """
SELECT response, sealed FROM thinkback_gateway.carriers
WHERE tenant = %s AND scope = %s AND response = ANY(%s) AND until > %s
"""


def is_in(url: str) -> bool:
    """Whether a gateway keeps anything in the database at ``url``."""
    with closing(Pool(url, "full", 1)) as pool:
        return pool.run(lambda db: db.execute("SELECT to_regclass('thinkback_gateway.replays')").fetchone()) != (None,)


class PostgresOffice:
    """The office in the database at ``url``, made where needed. ``connections`` is how many may be open at once."""

    def __init__(
        self, url: str, durability: Durability = "full", connections: int = 4, schema: Schema = NEWEST
    ) -> None:
        self._pool = pool = Pool(url, durability, connections)
        self.keys = _Keys(pool)
        self.spending = _Spending(pool)
        self.replays = _Replays(pool)
        self.carriers = _Carriers(pool)
        try:
            pool.run(lambda db: migrate(db, pool.shown, schema))
        except BaseException:
            self.close()
            raise

    def purge(self, now: int) -> int:
        """Remove answers and carriers that have run out."""
        sql = "DELETE FROM thinkback_gateway.{} WHERE until <= %s"
        return sum(_change(self._pool, sql.format(table), now) for table in ("replays", "carriers"))

    def forget(self, tenant: str, responses: Iterable[str]) -> int:
        """Remove the answers and carriers of responses."""
        wanted = {short(response) for response in responses}

        def forget(db: Connection) -> int:
            with transaction(db):
                kept = db.execute(_ANSWERS, (LABELLED, tenant)).fetchall()
                slots = [slot for slot, answer in kept if concerns(answer, wanted)]
                gone = db.execute(_DROP_ANSWERS, (tenant, slots)).rowcount
                return gone + db.execute(_DROP_CARRIERS, (tenant, list(wanted))).rowcount

        return self._pool.run(forget)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Keys:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def create(self, row: KeyRow) -> None:
        check_key(row)
        values = msgspec.structs.astuple(row)
        if not _change(self._pool, _ADD_KEY, *values):
            raise key_taken(row.id)

    def find(self, digest: bytes) -> KeyRow | None:
        found = self._pool.run(lambda db: db.execute(f"{_KEY} WHERE digest = %s", (digest,)).fetchone())
        return None if found is None else KeyRow(*found)

    def list(self) -> list[KeyRow]:
        rows = self._pool.run(lambda db: db.execute(f"{_KEY} ORDER BY created, id").fetchall())
        return [KeyRow(*row) for row in rows]

    def update(self, id: str, terms: bytes, expires: int | None) -> bool:
        sql = "UPDATE thinkback_gateway.keys SET terms = %s, expires = %s WHERE id = %s"
        return bool(_change(self._pool, sql, terms, expires, id))

    def revoke(self, id: str, time: int) -> bool:
        sql = "UPDATE thinkback_gateway.keys SET revoked = %s WHERE id = %s AND revoked IS NULL"
        return bool(_change(self._pool, sql, time, id))


class _Spending:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def add(self, spent: Sequence[Spent]) -> list[Spent]:
        ordered = sorted(spent)  # all processes lock rows in one order

        def add(db: Connection) -> list[Spent]:
            with transaction(db):
                return [Spent(row.key, row.period, _add_use(db, row)) for row in ordered]

        return self._pool.run(add)

    def read(self, key: str) -> dict[str, Use]:
        rows = self._pool.run(lambda db: db.execute(_USES, (key,)).fetchall())
        return {row[0]: Use(*row[1:]) for row in rows}

    def forget(self, before: str) -> int:
        return _change(self._pool, _FORGET, before)


def _add_use(db: Connection, row: Spent) -> Use:
    sums = db.execute(_ADD_USE, (row.key, row.period, *row.use)).fetchone()
    assert sums is not None
    return Use(*sums)


class _Replays:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def claim(self, slot: Slot, body: bytes, owner: str, now: int, until: int) -> Claim:
        def claim(db: Connection) -> Claim:
            for _ in range(LOOKS):
                if db.execute(_CLAIM, (*slot, body, owner, until, now)).rowcount:
                    return Claimed()
                row = db.execute(_HELD, slot).fetchone()
                if row is not None:  # and not given up in between
                    return held(body, *row)
            raise StoreError("an idempotency key is claimed and given up by too many at once")

        return self._pool.run(claim)

    def renew(self, slot: Slot, owner: str, until: int) -> bool:
        return bool(_change(self._pool, _RENEW, until, *slot, owner))

    def finish(self, slot: Slot, owner: str, sealed: bytes, until: int) -> bool:
        return bool(_change(self._pool, _FINISH, sealed, until, *slot, owner))

    def release(self, slot: Slot, owner: str) -> None:
        _change(self._pool, _RELEASE, *slot, owner)


class _Carriers:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def put(self, tenant: str, scope: bytes, sealed: Mapping[str, bytes], until: int) -> None:
        # all processes lock rows in one order
        rows = sorted((tenant, scope, short(response), blob, until) for response, blob in sealed.items())

        def put(db: Connection) -> None:
            with transaction(db), db.cursor() as cursor:
                cursor.executemany(_PUT, rows)

        self._pool.run(put)

    def get(self, tenant: str, scope: bytes, responses: Iterable[str], now: int) -> dict[str, bytes]:
        wanted = {short(response): response for response in responses}
        rows = self._pool.run(lambda db: db.execute(_GET, (tenant, scope, list(wanted), now)).fetchall())
        return {wanted[row[0]]: row[1] for row in rows}


def _change(pool: Pool, sql: str, *values: object) -> int:
    return pool.run(lambda db: db.execute(sql, values).rowcount)
