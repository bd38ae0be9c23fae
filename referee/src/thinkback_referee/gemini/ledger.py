"""What the models said and under which signatures, so that a signature that comes back can be recognised.

Signatures are bytes on the wire's other side: standard and URL-safe base64 of the same bytes are the same signature.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mint:
    """One signature: for whom it was issued, and which thought it stands for.

    ``call`` names the function on whose call it came; empty: it came on something else. ``text`` is the text beside
    it, None where it is not known or not text. ``account``: the key or project that paid.
    """

    host: str
    model: str
    account: str = ""
    thought: str = ""
    call: str = ""
    text: str | None = None


class Ledger:
    """All signatures issued so far."""

    def __init__(self) -> None:
        self._mints: dict[bytes, Mint] = {}

    def add(self, signature: str, mint: Mint) -> None:
        """Note that the signature was issued."""
        self._mints[octets(signature)] = mint

    def find(self, signature: str) -> Mint | None:
        """What is known of a signature."""
        return self._mints.get(octets(signature))


def octets(signature: str) -> bytes:
    """The bytes behind a signature; its own characters where it is no base64."""
    try:
        return base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return signature.encode()
