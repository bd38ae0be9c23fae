"""Values that look like the provider's: signatures, redacted data and ids, all derived from a digest."""

from __future__ import annotations

import base64
import hashlib

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_HEADER = 70
_ID_LENGTH = 22


def signature(digest: str, thought: str) -> str:
    """A signature; it grows with the thought, as it carries the thought encrypted."""
    size = _HEADER + len(thought.encode())
    sealed = _field(10, _stream(f"{digest}:header", _HEADER)) + _field(42, _stream(f"{digest}:body", size))
    return base64.b64encode(_field(18, sealed) + b"\x18\x01").decode()


def identifier(prefix: str, digest: str) -> str:
    """An id: the prefix, then characters of which none is mistaken for another."""
    number = int(hashlib.sha256(digest.encode()).hexdigest(), 16)
    made = ""
    for _ in range(_ID_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        made += _ALPHABET[place]
    return prefix + made


def _field(tag: int, data: bytes) -> bytes:
    """A length-delimited field, so that the text begins as real ones do."""
    length, size = len(data), b""
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([tag]) + size + bytes([length]) + data


def _stream(key: str, size: int) -> bytes:
    return hashlib.shake_256(key.encode()).digest(size)
