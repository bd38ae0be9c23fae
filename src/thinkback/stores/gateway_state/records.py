"""What a gateway keeps beside the logs, as records.

Times are microseconds UTC from the caller's clock: gateways that share a state must agree on the time to within a
few seconds. What is sealed is opaque here.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple, TypeAlias

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


LABEL = b"tb-of:"
"""How an answer begins that says which response it is of, by 16 bytes behind this."""


def labelled(sealed: bytes, response: str) -> bytes:
    """A sealed answer that says which response it is of, so that it can be found without being opened."""
    return LABEL + short(response) + sealed


def without_label(answer: bytes) -> bytes:
    """The sealed answer."""
    return answer[len(LABEL) + 16 :] if answer.startswith(LABEL) else answer


def short(response: str) -> bytes:
    """16 bytes for the id of a response, which a provider may make of whatever it likes."""
    return hashlib.sha256(response.encode("utf-8", "surrogatepass")).digest()[:16]
