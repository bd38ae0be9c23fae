"""What an office keeps, as records, and what can be asked of it. Calls are whole operations, sync on purpose.

Times are microseconds UTC from the caller's clock: gateways that share an office must agree on the time to within a
few seconds. What is sealed is opaque here. All offices pass one conformance suite.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import msgspec


class KeyRow(msgspec.Struct, frozen=True):
    """A virtual key. ``digest`` is the SHA-256 of its secret, ``ending`` the last letters of it; the rest of the
    secret is nowhere. ``terms`` is what its holder may do, as JSON that is not looked into here.
    """

    id: str
    digest: bytes
    ending: str
    tenant: str
    name: str
    terms: bytes
    created: int
    expires: int | None = None
    revoked: int | None = None


class Use(NamedTuple):
    """What was used: requests, and tokens as providers reported them; ``reasoning`` is a part of ``output``."""

    requests: int = 0
    input: int = 0
    output: int = 0
    reasoning: int = 0

    def plus(self, other: Use) -> Use:
        """Both together."""
        return Use(
            self.requests + other.requests,
            self.input + other.input,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


class Spent(NamedTuple):
    """What a key used in a period: ``2026-11-21``, ``2026-11`` or ``total``."""

    key: str
    period: str
    use: Use


class Slot(NamedTuple):
    """One idempotency key of one virtual key: 16 bytes that stand for both, inside a tenant."""

    tenant: str
    id: bytes


class Claimed(NamedTuple):
    """It is the caller's to answer."""


class UnderWay(NamedTuple):
    """Another one is answering it, and keeps the claim ``until`` then unless it says more."""

    until: int


class Answered(NamedTuple):
    """It was answered: ``sealed``."""

    sealed: bytes


class Otherwise(NamedTuple):
    """It stands for another body."""


Claim: TypeAlias = Claimed | UnderWay | Answered | Otherwise


class Keys(Protocol):
    """Virtual keys."""

    def create(self, row: KeyRow) -> None:
        """Keep a new key. Raises ``StoreError`` for an id or a secret that is there."""
        ...

    def find(self, digest: bytes) -> KeyRow | None:
        """The key whose secret has that SHA-256, revoked and expired ones too."""
        ...

    def list(self) -> list[KeyRow]:
        """All keys, in the order they were made."""
        ...

    def update(self, id: str, terms: bytes, expires: int | None) -> bool:
        """Change what its holder may do; ``False`` if there is none of that id."""
        ...

    def revoke(self, id: str, time: int) -> bool:
        """Let nobody in with it any more; ``False`` if there is none of that id, or it was revoked before."""
        ...


class Spending(Protocol):
    """What keys used, by period."""

    def add(self, spent: Sequence[Spent]) -> list[Spent]:
        """Add to what is there, all in one transaction; returns the sums."""
        ...

    def read(self, key: str) -> dict[str, Use]:
        """What a key used, by period."""
        ...

    def forget(self, before: str) -> int:
        """Remove the days (``2026-11-21``) before that one; returns how many rows. Months and totals stay."""
        ...


class Replays(Protocol):
    """Answers that may be given again. A claim ends by itself when its time is over: its process may be dead."""

    def claim(self, slot: Slot, body: bytes, owner: str, now: int, until: int) -> Claim:
        """Take the slot for the request with the digest ``body``, or say what it holds. What has run out is free."""
        ...

    def renew(self, slot: Slot, owner: str, until: int) -> bool:
        """Keep a claim for longer; ``False`` if it is somebody else's by now."""
        ...

    def finish(self, slot: Slot, owner: str, sealed: bytes, until: int) -> bool:
        """Keep the answer until then; ``False`` if the claim is somebody else's by now, whose answer counts."""
        ...

    def release(self, slot: Slot, owner: str) -> None:
        """Give a claim up without an answer."""
        ...


class Carriers(Protocol):
    """Sealed carriers of responses whose content is not recorded."""

    def put(self, tenant: str, scope: bytes, sealed: Mapping[str, bytes], until: int) -> None:
        """Keep them by the ids of their responses, until then."""
        ...

    def get(self, tenant: str, scope: bytes, responses: Iterable[str], now: int) -> dict[str, bytes]:
        """Those that are there of these responses and have not run out."""
        ...


class Office(Protocol):
    """All of it."""

    @property
    def keys(self) -> Keys: ...

    @property
    def spending(self) -> Spending: ...

    @property
    def replays(self) -> Replays: ...

    @property
    def carriers(self) -> Carriers: ...

    def purge(self, now: int) -> int:
        """Remove answers and carriers that have run out; returns how many."""
        ...

    def forget(self, tenant: str, responses: Iterable[str]) -> int:
        """Remove the answers and carriers of responses whose content was erased, and the answers of the tenant that
        do not say which response they are of; returns how many. The bytes are in no file of the office afterwards.
        """
        ...

    def close(self) -> None:
        """Close every connection; later calls raise ``StoreError``. Twice is no error."""
        ...


_LABEL = b"tb-of:"

LABELLED = len(_LABEL) + 16
"""Bytes of an answer that tell what ``concerns`` looks at."""


def labelled(sealed: bytes, response: str) -> bytes:
    """A sealed answer that says which response it is of, so that it can be found without being opened."""
    return _LABEL + short(response) + sealed


def without_label(answer: bytes) -> bytes:
    """The sealed answer."""
    return answer[LABELLED:] if answer.startswith(_LABEL) else answer


def concerns(answer: bytes, responses: Collection[bytes]) -> bool:
    """Whether an answer may be of one of the responses (as ``short`` has them): older ones do not say."""
    return not answer.startswith(_LABEL) or answer[len(_LABEL) : LABELLED] in responses


def short(response: str) -> bytes:
    """16 bytes for the id of a response, which a provider may make of whatever it likes."""
    return hashlib.sha256(response.encode("utf-8", "surrogatepass")).digest()[:16]
