"""The office in one SQLite file, for the gateway processes of one machine.

Promises: each call is one transaction; any number of processes may use the file at once. Must not: know what a key
may do or what is sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from thinkback.errors import StoreError
from thinkback.stores import Durability
from thinkback.stores.errors import check_text
from thinkback.stores.migrations import Schema
from thinkback.stores.office.protocol import (
    LABELLED,
    Answered,
    Claim,
    Claimed,
    KeyRow,
    Otherwise,
    Slot,
    Spent,
    UnderWay,
    Use,
    concerns,
    short,
)
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_open import Connect, connect

NEWEST = Schema(
    Path(__file__).with_name("sqlite_schema"),
    ("0001_office",),
    what="file of a gateway",
    mark=0x7468_6B67,  # "thkg"
)

_KEY = "SELECT id, digest, ending, tenant, name, terms, created, expires, revoked FROM keys"
_ADD_KEY = """
INSERT INTO keys (id, digest, ending, tenant, name, terms, created, expires, revoked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING RETURNING 1
"""
_ADD_USE = """
INSERT INTO spending (key, period, requests, input, output, reasoning) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key, period) DO UPDATE SET requests = requests + excluded.requests, input = input + excluded.input,
    output = output + excluded.output, reasoning = reasoning + excluded.reasoning
RETURNING requests, input, output, reasoning
"""
# What has run out is taken over, by one of those who ask.
_CLAIM = """
INSERT INTO replays (tenant, slot, body, owner, until, answer) VALUES (?, ?, ?, ?, ?, NULL)
ON CONFLICT (tenant, slot) DO UPDATE
SET body = excluded.body, owner = excluded.owner, until = excluded.until, answer = NULL WHERE replays.until <= ?
RETURNING 1
"""
_HELD = "SELECT body, until, answer FROM replays WHERE tenant = ? AND slot = ?"
_OWN = "WHERE tenant = ? AND slot = ? AND owner = ? AND answer IS NULL"
_PUT = """
INSERT INTO carriers (tenant, scope, response, sealed, until) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, scope, response) DO UPDATE SET sealed = excluded.sealed, until = excluded.until
"""
_ANSWERS = "SELECT slot, substr(answer, 1, ?) FROM replays WHERE tenant = ? AND answer IS NOT NULL"
_DROP_ANSWER = "DELETE FROM replays WHERE tenant = ? AND slot = ? RETURNING 1"
_DROP_CARRIERS = "DELETE FROM carriers WHERE tenant = ? AND response = ? RETURNING 1"
_GET = "SELECT sealed FROM carriers WHERE tenant = ? AND scope = ? AND response = ? AND until > ?"


class SqliteOffice:
    """The office in the file ``path``, made where needed. ``connect`` opens connections (tests pass their own)."""

    def __init__(
        self, path: str, durability: Durability = "full", connect: Connect = connect, schema: Schema = NEWEST
    ) -> None:
        self._file = LogFile(path, durability, connect, schema)
        self.keys = _Keys(self._file)
        self.spending = _Spending(self._file)
        self.replays = _Replays(self._file)
        self.carriers = _Carriers(self._file)

    def purge(self, now: int) -> int:
        """Remove answers and carriers that have run out."""
        with self._file.write() as db:
            return sum(
                len(db.execute(f"DELETE FROM {table} WHERE until <= ? RETURNING 1", (now,)).fetchall())
                for table in ("replays", "carriers")
            )

    def forget(self, tenant: str, responses: Iterable[str]) -> int:
        """Remove the answers and carriers of responses."""
        wanted = {short(response) for response in responses}
        with self._file.write() as db:
            kept = db.execute(_ANSWERS, (LABELLED, tenant)).fetchall()
            slots = [slot for slot, answer in kept if concerns(answer, wanted)]
            gone = sum(len(db.execute(_DROP_ANSWER, (tenant, slot)).fetchall()) for slot in slots)
            gone += sum(len(db.execute(_DROP_CARRIERS, (tenant, response)).fetchall()) for response in wanted)
        self._file.empty_journal()
        return gone

    def close(self) -> None:
        """Close every connection."""
        self._file.close()


class _Keys:
    def __init__(self, file: LogFile) -> None:
        self._file = file

    def create(self, row: KeyRow) -> None:
        check_key(row)
        values = msgspec.structs.astuple(row)
        with self._file.write() as db:
            if db.execute(_ADD_KEY, values).fetchone() is None:
                raise key_taken(row.id)

    def find(self, digest: bytes) -> KeyRow | None:
        with self._file.read() as db:
            found = db.execute(f"{_KEY} WHERE digest = ?", (digest,)).fetchone()
        return None if found is None else KeyRow(*found)

    def list(self) -> list[KeyRow]:
        with self._file.read() as db:
            return [KeyRow(*row) for row in db.execute(f"{_KEY} ORDER BY made")]

    def update(self, id: str, terms: bytes, expires: int | None) -> bool:
        sql = "UPDATE keys SET terms = ?, expires = ? WHERE id = ? RETURNING 1"
        with self._file.write() as db:
            return db.execute(sql, (terms, expires, id)).fetchone() is not None

    def revoke(self, id: str, time: int) -> bool:
        sql = "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL RETURNING 1"
        with self._file.write() as db:
            return db.execute(sql, (time, id)).fetchone() is not None


class _Spending:
    def __init__(self, file: LogFile) -> None:
        self._file = file

    def add(self, spent: Sequence[Spent]) -> list[Spent]:
        with self._file.write() as db:
            return [
                Spent(row.key, row.period, Use(*db.execute(_ADD_USE, (row.key, row.period, *row.use)).fetchone()))
                for row in spent
            ]

    def read(self, key: str) -> dict[str, Use]:
        sql = "SELECT period, requests, input, output, reasoning FROM spending WHERE key = ?"
        with self._file.read() as db:
            return {row[0]: Use(*row[1:]) for row in db.execute(sql, (key,))}

    def forget(self, before: str) -> int:
        sql = "DELETE FROM spending WHERE length(period) = 10 AND period < ? RETURNING 1"
        with self._file.write() as db:
            return len(db.execute(sql, (before,)).fetchall())


class _Replays:
    def __init__(self, file: LogFile) -> None:
        self._file = file

    def claim(self, slot: Slot, body: bytes, owner: str, now: int, until: int) -> Claim:
        with self._file.write() as db:
            if db.execute(_CLAIM, (*slot, body, owner, until, now)).fetchone():
                return Claimed()
            return held(body, *db.execute(_HELD, slot).fetchone())

    def renew(self, slot: Slot, owner: str, until: int) -> bool:
        return self._change(f"UPDATE replays SET until = ? {_OWN} RETURNING 1", until, *slot, owner)

    def finish(self, slot: Slot, owner: str, sealed: bytes, until: int) -> bool:
        return self._change(f"UPDATE replays SET answer = ?, until = ? {_OWN} RETURNING 1", sealed, until, *slot, owner)

    def release(self, slot: Slot, owner: str) -> None:
        self._change(f"DELETE FROM replays {_OWN} RETURNING 1", *slot, owner)

    def _change(self, sql: str, *values: object) -> bool:
        with self._file.write() as db:
            return db.execute(sql, values).fetchone() is not None


class _Carriers:
    def __init__(self, file: LogFile) -> None:
        self._file = file

    def put(self, tenant: str, scope: bytes, sealed: Mapping[str, bytes], until: int) -> None:
        rows = [(tenant, scope, short(response), blob, until) for response, blob in sealed.items()]
        with self._file.write() as db:
            db.executemany(_PUT, rows)

    def get(self, tenant: str, scope: bytes, responses: Iterable[str], now: int) -> dict[str, bytes]:
        found = {}
        with self._file.read() as db:
            for response in responses:
                row = db.execute(_GET, (tenant, scope, short(response), now)).fetchone()
                if row is not None:
                    found[response] = row[0]
        return found


def held(body: bytes, kept: bytes, until: int, answer: bytes | None) -> Claim:
    """What a slot that is taken says to a request with the digest ``body``."""
    if kept != body:
        return Otherwise()
    return UnderWay(until) if answer is None else Answered(answer)


def check_key(row: KeyRow) -> None:
    """Raise ``StoreError`` for a key with text that no database keeps."""
    for what, text in (("tenant", row.tenant), ("name of the key", row.name)):
        check_text(what, text)
        if "\0" in text:
            raise StoreError(f"the {what} {text!r} cannot be stored: it holds a NUL")


def key_taken(id: str) -> StoreError:
    """The error for a new key under the id, or with the secret, of another one."""
    return StoreError(f"the key {id} is there already", details={"key": id}, next_actions=("make it again",))
