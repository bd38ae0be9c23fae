"""A gateway's state in a database, for any number of gateway processes: each query is written once.

Promises: each call is one transaction. Must not: know what a key may do or what is sealed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from thinkback.errors import StoreError
from thinkback.stores.errors import check_text
from thinkback.stores.gateway_state.records import (
    LABEL,
    Answered,
    Claim,
    Claimed,
    KeyRow,
    Otherwise,
    Slot,
    Spent,
    UnderWay,
    Use,
    short,
)

LOOKS = 20

# ? stands for a value, {} for where the tables are.
_KEY = "SELECT id, digest, ending, tenant, name, terms, created, expires, revoked FROM {}keys"
_ADD_KEY = """
INSERT INTO {}keys (id, digest, ending, tenant, name, terms, created, expires, revoked)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1
"""
_UPDATE_KEY = "UPDATE {}keys SET terms = ?, expires = ? WHERE id = ? RETURNING 1"
_REVOKE = "UPDATE {}keys SET revoked = ? WHERE id = ? AND revoked IS NULL RETURNING 1"
MOST_USED = 10**18
"""No sum grows beyond it, so that none is more than a database can add to."""
_USED = ("requests", "input", "output", "reasoning")
_SUMS = ", ".join(
    f"{name} = CASE WHEN s.{name} > {MOST_USED} - excluded.{name} THEN {MOST_USED} ELSE s.{name} + excluded.{name} END"
    for name in _USED
)
_ADD_USE = f"""
INSERT INTO {{}}spending AS s (key, period, requests, input, output, reasoning) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key, period) DO UPDATE SET {_SUMS}
RETURNING requests, input, output, reasoning
"""
_USES = "SELECT period, requests, input, output, reasoning FROM {}spending WHERE key = ?"
_SUMMARY = """
SELECT key, max(CASE WHEN length(period) = 10 THEN period END),
    sum(CASE WHEN period = ? THEN requests ELSE 0 END), sum(CASE WHEN period = ? THEN input ELSE 0 END),
    sum(CASE WHEN period = ? THEN output ELSE 0 END), sum(CASE WHEN period = ? THEN reasoning ELSE 0 END)
FROM {}spending GROUP BY key
"""
_FORGET_DAYS = "DELETE FROM {}spending WHERE length(period) = 10 AND period < ? RETURNING 1"
# What has run out is taken over, by one of those who ask.
_CLAIM = """
INSERT INTO {}replays AS r (tenant, slot, body, owner, until, answer) VALUES (?, ?, ?, ?, ?, NULL)
ON CONFLICT (tenant, slot) DO UPDATE
SET body = excluded.body, owner = excluded.owner, until = excluded.until, answer = NULL WHERE r.until <= ?
RETURNING 1
"""
_HELD = "SELECT body, until, answer FROM {}replays WHERE tenant = ? AND slot = ?"
_OWN = "WHERE tenant = ? AND slot = ? AND owner = ? AND answer IS NULL RETURNING 1"
_RENEW = "UPDATE {}replays SET until = ? " + _OWN
_FINISH = "UPDATE {}replays SET answer = ?, until = ? " + _OWN
_RELEASE = "DELETE FROM {}replays " + _OWN
_PUT = """
INSERT INTO {}carriers (tenant, scope, response, sealed, until) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, scope, response) DO UPDATE SET sealed = excluded.sealed, until = excluded.until
"""
_GET = "SELECT response, sealed FROM {}carriers WHERE tenant = ? AND scope = ? AND until > ? AND response IN (?)"
# Older answers do not say which response they are of.
_DROP_ANSWERS = f"""
DELETE FROM {{}}replays WHERE tenant = ? AND answer IS NOT NULL
AND (substr(answer, 1, {len(LABEL)}) <> ? OR substr(answer, {len(LABEL) + 1}, 16) IN (?)) RETURNING 1
"""
_DROP_CARRIERS = "DELETE FROM {}carriers WHERE tenant = ? AND response IN (?) RETURNING 1"
# as long as a scope is
_ERASURES = b"tb-erasures-made"
_ERASED = b"tb-erased-answer"
_RETAINED = b"tb-retention-ran"
_FOR_GOOD = 2**62
_ARE_ERASED = "SELECT response FROM {}carriers WHERE tenant = ? AND scope = ? AND response IN (?)"
_ORDERS = "SELECT sealed FROM {}carriers WHERE tenant = ? AND scope = ? AND until > ?"
_PURGE = ("DELETE FROM {}replays WHERE until <= ? RETURNING 1", "DELETE FROM {}carriers WHERE until <= ? RETURNING 1")

# LOOSELY: a power cut may give a minute's requests back, and so nobody waits for the disk.
# A row of a rate is a slot that is taken until the requests that began so far are earned; it runs out as others do.
_TAKE = """
INSERT INTO {}replays AS r (tenant, slot, body, owner, until, answer) VALUES (?, ?, ?, '', NOW + ?, NULL)
ON CONFLICT (tenant, slot) DO UPDATE SET until = CASE WHEN r.until > NOW THEN r.until ELSE NOW END + ?
WHERE r.until + ? <= NOW + 60000000 RETURNING LOOSELY
"""
_EARNED = "SELECT until - 60000000 - NOW FROM {}replays WHERE tenant = ? AND slot = ?"

Statement = tuple[str, Sequence[object]]


class Tables(Protocol):
    """Where a gateway's tables are."""

    oldest_first: str
    """By which column keys come in the order they were made."""
    clock: str
    """The database's own time in microseconds UTC."""
    loosely: str
    """A value by which the transaction of its statement is durable later, where the database can do that."""

    def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query gives."""

    def write(self, *statements: Statement) -> list[list[tuple[Any, ...]]]:
        """What each of these statements gives, all in one transaction; again where the server asks for that."""

    def sweep(self) -> None:
        """Bring what was removed out of the files that hold older bytes, as far as the database can do that."""

    def close(self) -> None:
        """Close every connection. Twice is no error."""


class GatewayState:
    """The state in ``tables``."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.keys = Keys(tables)
        self.spending = Spending(tables)
        self.replays = Replays(tables)
        self.rates = Rates(tables)
        self.carriers = Carriers(tables)
        self.erasures = Erasures(tables)

    def purge(self, now: int) -> int:
        """Remove answers and carriers that have run out."""
        return sum(map(len, self._tables.write(*((sql, (now,)) for sql in _PURGE))))

    def forget(self, tenant: str, responses: Iterable[str]) -> int:
        """Remove the answers and carriers of responses whose content was erased, and the answers of the tenant that
        do not say which response they are of; returns how many. The bytes are in no file afterwards.
        """
        wanted = sorted({short(response) for response in responses})
        gone = self._tables.write(
            (_many(_DROP_ANSWERS, wanted), (tenant, LABEL, *wanted)), (_many(_DROP_CARRIERS, wanted), (tenant, *wanted))
        )
        self._tables.sweep()
        return sum(map(len, gone))

    def close(self) -> None:
        """Close every connection."""
        self._tables.close()


class Keys:
    """Virtual keys."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def create(self, row: KeyRow) -> None:
        """Keep a new key. Raises ``StoreError`` for an id or a secret that is there."""
        _check_key(row)
        if not _changes(self._tables, _ADD_KEY, *msgspec.structs.astuple(row)):
            raise StoreError(
                f"the key {row.id} is there already", details={"key": row.id}, next_actions=("make it again",)
            )

    def find(self, digest: bytes) -> KeyRow | None:
        """The key whose secret has that SHA-256, revoked and expired ones too."""
        found = self._tables.read(f"{_KEY} WHERE digest = ?", digest)
        return KeyRow(*found[0]) if found else None

    def list(self) -> list[KeyRow]:
        """All keys, in the order they were made."""
        return [KeyRow(*row) for row in self._tables.read(f"{_KEY} ORDER BY {self._tables.oldest_first}")]

    def update(self, id: str, terms: bytes, expires: int | None) -> bool:
        """Change what its holder may do; ``False`` if there is none of that id."""
        return _changes(self._tables, _UPDATE_KEY, terms, expires, id)

    def revoke(self, id: str, time: int) -> bool:
        """Let nobody in with it any more; ``False`` if there is none of that id, or it was revoked before."""
        return _changes(self._tables, _REVOKE, time, id)


class Spending:
    """What keys used, by period."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, spent: Sequence[Spent]) -> list[Spent]:
        """Add to what is there, all in one transaction; returns the sums."""
        ordered = sorted(spent)  # all processes lock rows in one order
        sums = self._tables.write(*((_ADD_USE, (row.key, row.period, *map(_bounded, row.use))) for row in ordered))
        return [Spent(row.key, row.period, Use(*found)) for row, (found,) in zip(ordered, sums, strict=True)]

    def read(self, key: str) -> dict[str, Use]:
        """What a key used, by period."""
        return {row[0]: Use(*row[1:]) for row in self._tables.read(_USES, key)}

    def summary(self, period: str) -> dict[str, tuple[str, Use]]:
        """Of each key the last day that it was used on, and what it used in ``period``."""
        rows = self._tables.read(_SUMMARY, *[period] * 4)
        return {key: (last or "", Use(*map(int, used))) for key, last, *used in rows}

    def forget(self, before: str) -> int:
        """Remove the days (``2026-11-21``) before that one; returns how many rows. Months and totals stay."""
        return len(self._tables.write((_FORGET_DAYS, (before,)))[0])


class Replays:
    """Answers that may be given again. A claim ends by itself when its time is over: its process may be dead."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def claim(self, slot: Slot, body: bytes, owner: str, now: int, until: int) -> Claim:
        """Take the slot for the request with the digest ``body``, or say what it holds. What has run out is free."""
        for _ in range(LOOKS):
            if _changes(self._tables, _CLAIM, *slot, body, owner, until, now):
                return Claimed()
            for kept, end, answer in self._tables.read(_HELD, *slot):
                if kept != body:
                    return Otherwise()
                return UnderWay(end) if answer is None else Answered(answer)
        raise StoreError("an idempotency key is claimed and given up by too many at once")

    def renew(self, slot: Slot, owner: str, until: int) -> bool:
        """Keep a claim for longer; ``False`` if it is somebody else's by now."""
        return _changes(self._tables, _RENEW, until, *slot, owner)

    def finish(self, slot: Slot, owner: str, sealed: bytes, until: int) -> bool:
        """Keep the answer until then; ``False`` if the claim is somebody else's by now, whose answer counts."""
        return _changes(self._tables, _FINISH, sealed, until, *slot, owner)

    def release(self, slot: Slot, owner: str) -> None:
        """Give a claim up without an answer."""
        _changes(self._tables, _RELEASE, *slot, owner)


class Rates:
    """How many requests of a key began, in all processes together, by the clock of the database."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def take(self, tenant: str, key: str, per_minute: int) -> float:
        """Begin one request of a key that may begin so many in any minute; a pause saves up to one minute's.

        Returns 0, or in how many seconds there is one: then none is taken. A second statement finds that out.
        """
        slot, each = hashlib.sha256(b"tb-rate:" + key.encode()).digest()[:16], 60_000_000 // per_minute
        take = _TAKE.replace("NOW", self._tables.clock).replace("LOOSELY", self._tables.loosely)
        if _changes(self._tables, take, tenant, slot, b"", each, each, each):
            return 0.0
        rows = self._tables.read(_EARNED.replace("NOW", self._tables.clock), tenant, slot)
        # others may have been first, and the row may have run out meanwhile
        return max(1.0, float(rows[0][0] + each) if rows else 1.0) / 1_000_000


class Carriers:
    """Sealed carriers of responses whose content is not recorded."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def put(self, tenant: str, scope: bytes, sealed: Mapping[str, bytes], until: int) -> None:
        """Keep them by the ids of their responses, until then."""
        # all processes lock rows in one order
        rows = sorted((tenant, scope, short(response), blob, until) for response, blob in sealed.items())
        self._tables.write(*((_PUT, row) for row in rows))

    def get(self, tenant: str, scope: bytes, responses: Iterable[str], now: int) -> dict[str, bytes]:
        """Those that are there of these responses and have not run out."""
        wanted = {short(response): response for response in responses}
        rows = self._tables.read(_many(_GET, wanted), tenant, scope, now, *wanted)
        return {wanted[response]: sealed for response, sealed in rows}


class Erasures:
    """Orders for what a gateway stores later than it was erased. They stand beside carriers, in a scope of no key's."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, tenant: str, order: bytes, until: int) -> None:
        """Keep an order until then."""
        self._tables.write((_PUT, (tenant, _ERASURES, hashlib.sha256(order).digest()[:16], order, until)))

    def note(self, tenant: str, responses: Iterable[str]) -> None:
        """Remember for good that the content of these responses is erased: clients may hold sealed values of them."""
        # all processes lock rows in one order
        marks = sorted(map(_mark, responses))
        if marks:
            self._tables.write(*((_PUT, (tenant, _ERASED, mark, b"", _FOR_GOOD)) for mark in marks))

    def erased(self, tenant: str, responses: Collection[str]) -> frozenset[str]:
        """Those of ``responses`` whose content was erased."""
        marks = {_mark(response): response for response in responses}
        rows = self._tables.read(_many(_ARE_ERASED, marks), tenant, _ERASED, *marks)
        return frozenset(marks[mark] for (mark,) in rows)

    def note_retention(self, tenant: str, progress: bytes) -> None:
        """Remember how far the retention of a tenant's log is."""
        self._tables.write((_PUT, (tenant, _RETAINED, _RETAINED, progress, _FOR_GOOD)))

    def retention(self, tenant: str) -> bytes | None:
        """The progress of the retention of a tenant's log; ``None`` where it never ran."""
        rows = self._tables.read(_ORDERS, tenant, _RETAINED, 0)
        return rows[0][0] if rows else None

    def list(self, tenant: str, now: int) -> list[bytes]:
        """Those that have not run out."""
        return [order for (order,) in self._tables.read(_ORDERS, tenant, _ERASURES, now)]


def _bounded(used: int) -> int:
    return min(max(used, 0), MOST_USED)


def _mark(response: str) -> bytes:
    """16 bytes for a response that was erased, which are found nowhere else."""
    return hashlib.sha256(b"erased\n" + response.encode("utf-8", "surrogatepass")).digest()[:16]


def _changes(tables: Tables, sql: str, *values: object) -> bool:
    """Whether a statement changes a row."""
    return bool(tables.write((sql, values))[0])


def _many(sql: str, values: Collection[object]) -> str:
    """A statement with a mark for each of ``values`` where it has one in parentheses; none fits what is no value."""
    return sql.replace("IN (?)", f"IN ({', '.join('?' * len(values)) or 'NULL'})")


def _check_key(row: KeyRow) -> None:
    """Raise ``StoreError`` for a key with text that no database keeps."""
    for what, text in (("tenant", row.tenant), ("name of the key", row.name)):
        check_text(what, text)
        if "\0" in text:
            raise StoreError(f"the {what} {text!r} cannot be stored: it holds a NUL")
