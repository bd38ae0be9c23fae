"""Canonical bytes and hashes: the one place that turns values into the bytes that are stored and hashed.

Promises: the same value gives the same bytes; a lone surrogate (models do send them) survives encode and decode.
Must not: know what a payload means.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="deterministic")
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def encode(value: object) -> bytes:
    """JSON bytes of ``value``: struct fields in declared order, mapping keys sorted, no white space."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, order="deterministic")
        return json.dumps(plain, separators=(",", ":")).encode("ascii")


def decode(data: bytes | bytearray | memoryview | str, type: type[T] | Any = Any) -> T:
    """The value of JSON ``data``. Raises ``msgspec.DecodeError`` (``ValidationError``) when it is not one.

    msgspec refuses lone surrogates; the standard library reads them, so it gets a second try.
    """
    decoder = _decoders.get(type)
    if decoder is None:
        decoder = _decoders[type] = msgspec.json.Decoder(type)
    try:
        return decoder.decode(data)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.convert(_loads(data), type)  # type: ignore[no-any-return]


def string(text: str) -> bytes:
    """JSON bytes of one string, lone surrogates as ``\\udXXX`` escapes."""
    try:
        return _encoder.encode(text)
    except UnicodeEncodeError:
        return json.dumps(text).encode("ascii")


def digest(data: bytes) -> str:
    """Hex SHA-256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def _loads(data: bytes | bytearray | memoryview | str) -> Any:
    text = data if isinstance(data, str) else bytes(data).decode("utf-8", "surrogatepass")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from None
