"""Sealing: what leaves the gateway's hands, or lies on its disk, and may be read by nobody else.

A token is ``tb1.`` and base64url of: 4 bytes that name the secret, 12 random bytes, and what AES-256-GCM makes of a
byte that says whether the rest is compressed, and the rest. Each purpose and each scope has a key of its own, derived
from the configured secret (HKDF, RFC 5869): a token opens only for the purpose and in the scope it was made for, and
the 2**32 values that random nonces allow under one key count for one virtual key and end user, not for the gateway.

Promises: ``open`` never raises, and takes neither more text nor more memory than ``LARGEST`` allows; no secret is in
a representation or an error. Must not: know what is sealed.
"""

from __future__ import annotations

import binascii
import hmac
import os
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from thinkback.errors import CredentialError, MissingPackageError, StoreError, install_hint

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Purpose: TypeAlias = Literal["payload", "carriers", "idempotency", "spool"]
"""What is sealed: values that clients echo, or what the gateway keeps itself."""

PREFIX = "tb1."
LARGEST = 64 << 20
"""Bytes that may be sealed at once."""
SHORTEST_SECRET = 32
_COMPRESSED_FROM = 200
_ID, _NONCE, _TAG = 4, 12, 16
_PLAIN, _ZLIB = b"\0", b"\1"
_LONGEST_TEXT = len(PREFIX) + (_ID + _NONCE + 1 + LARGEST + _TAG) * 4 // 3 + 4
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_+/", b"+/\0\0")


class _Secret(NamedTuple):
    """One configured secret, as one purpose uses it."""

    id: bytes
    root: bytes


class Sealer:
    """Seals with the secret ``current``; opens what it or one of ``previous`` sealed for the same ``purpose``.

    Raises ``CredentialError`` for a secret that is too short, ``MissingPackageError`` without ``cryptography``.
    """

    def __init__(self, current: bytes, previous: Sequence[bytes] = (), purpose: Purpose = "payload") -> None:
        secrets = (current, *previous)
        for secret in secrets:
            if len(secret) < SHORTEST_SECRET:
                raise too_short(len(secret))
        self._cipher = _load()
        self._given = secrets
        self._domain = b"thinkback gateway 1 " + purpose.encode()
        self._secrets = [_derived(secret, self._domain) for secret in secrets]

    def __repr__(self) -> str:
        return f"<Sealer: {len(self._secrets)} secrets>"

    def of(self, purpose: Purpose) -> Sealer:
        """A sealer with the same secrets for another purpose: neither opens what the other sealed."""
        return Sealer(self._given[0], self._given[1:], purpose)

    def seal(self, data: bytes, scope: bytes) -> str:
        """``data`` as a token that opens in ``scope``. Raises ``StoreError`` for more than ``LARGEST`` bytes."""
        text = binascii.b2a_base64(self.seal_bytes(data, scope), newline=False)
        return PREFIX + text.translate(_TO_URL).rstrip(b"=").decode()

    def open(self, token: str, scope: bytes) -> bytes | None:
        """What was sealed, or ``None`` for anything that is not a token made for ``scope`` with a secret of ours."""
        if not token.startswith(PREFIX) or len(token) > _LONGEST_TEXT:
            return None
        sealed = _decoded(token[len(PREFIX) :])
        return None if sealed is None else self.open_bytes(sealed, scope)

    def seal_bytes(self, data: bytes, scope: bytes) -> bytes:
        """The same without the text around it, for what is stored."""
        if len(data) > LARGEST:
            raise StoreError(
                f"{len(data)} bytes are too many to be sealed at once: at most {LARGEST} can be",
                details={"bytes": len(data), "largest": LARGEST},
            )
        secret, nonce = self._secrets[0], os.urandom(_NONCE)
        plain = _packed(data)
        return secret.id + nonce + self._keyed(secret, scope).encrypt(nonce, plain, self._tied(secret, scope))

    def open_bytes(self, sealed: bytes, scope: bytes) -> bytes | None:
        """What ``seal_bytes`` sealed, or ``None``."""
        id, nonce, rest = sealed[:_ID], sealed[_ID : _ID + _NONCE], sealed[_ID + _NONCE :]
        if not _TAG < len(rest) <= 1 + LARGEST + _TAG:
            return None
        from cryptography.exceptions import InvalidTag

        for secret in self._secrets:
            if secret.id == id:
                try:
                    return _unpacked(self._keyed(secret, scope).decrypt(nonce, rest, self._tied(secret, scope)))
                except InvalidTag:
                    pass  # the next one may have the same four bytes
        return None

    def _keyed(self, secret: _Secret, scope: bytes) -> AESGCM:
        return self._cipher(_expanded(secret.root, b"key" + scope))

    def _tied(self, secret: _Secret, scope: bytes) -> bytes:
        return self._domain + secret.id + scope


def _load() -> type[AESGCM]:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingPackageError(
            "the gateway seals what clients keep for it with the package cryptography, which is not installed",
            details={"package": "cryptography", "extra": "gateway"},
            next_actions=(install_hint("gateway"),),
        ) from None
    return AESGCM


def _derived(secret: bytes, domain: bytes) -> _Secret:
    root = hmac.digest(domain, secret, "sha256")  # HKDF-Extract
    return _Secret(_expanded(root, b"id")[:_ID], root)


def _expanded(root: bytes, info: bytes) -> bytes:
    """HKDF-Expand to its first block, which is all that is needed."""
    return hmac.digest(root, info + b"\1", "sha256")


def _packed(data: bytes) -> bytes:
    if len(data) > _COMPRESSED_FROM:
        smaller = zlib.compress(data, 1)
        if len(smaller) < len(data):
            return _ZLIB + smaller
    return _PLAIN + data


def _unpacked(plain: bytes) -> bytes | None:
    kind, data = plain[:1], plain[1:]
    if kind == _PLAIN:
        return data
    reader = zlib.decompressobj()
    try:
        opened = reader.decompress(data, LARGEST + 1)
    except zlib.error:
        return None
    return opened if kind == _ZLIB and reader.eof and len(opened) <= LARGEST else None


def _decoded(text: str) -> bytes | None:
    """base64url without padding, in its one form: a text that is changed anywhere is another text."""
    try:
        data = text.encode("ascii").translate(_FROM_URL)
        raw = binascii.a2b_base64(data + b"=" * (-len(data) % 4), strict_mode=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return raw if binascii.b2a_base64(raw, newline=False).rstrip(b"=") == data else None


def too_short(length: int) -> CredentialError:
    """The error for a secret that could be guessed."""
    return CredentialError(
        f"a secret of the gateway has {length} bytes, which is too short: it needs at least {SHORTEST_SECRET}",
        details={"bytes": length, "shortest": SHORTEST_SECRET},
        next_actions=("make one with `python -c 'import secrets; print(secrets.token_urlsafe(48))'`",),
    )
