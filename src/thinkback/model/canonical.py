"""Canonical bytes and hashes: the one place that turns values into the bytes that are stored and hashed.

Promises: the same value gives the same bytes; a lone surrogate (models do send them) survives encode and decode.
Must not: know what a payload means.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, TypeVar, overload

import msgspec

T = TypeVar("T")
Json: TypeAlias = bytes | bytearray | memoryview | str

# The codec that would join them takes seconds for a text of many lone ones.
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_encoder = msgspec.json.Encoder(order="deterministic")
_in_order = msgspec.json.Encoder()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def encode(value: object) -> bytes:
    """JSON bytes of ``value``: struct fields in declared order, mapping keys sorted, no white space."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, order="deterministic")
        return json.dumps(plain, separators=(",", ":")).encode("ascii")


def source(value: object) -> str:
    """JSON source text of a value from the wire, mapping keys in the order they came."""
    try:
        return _in_order.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))


@overload
def decode(data: Json) -> Any: ...
@overload
def decode(data: Json, type: type[T]) -> T: ...
@overload
def decode(data: Json, type: Any) -> Any: ...
def decode(data: Json, type: Any = Any) -> Any:
    """The value of JSON ``data``. Raises ``msgspec.DecodeError`` (``ValidationError``) when it is not one.

    msgspec refuses lone surrogates; the standard library reads them, so it gets a second try.
    """
    decoder = _decoders.get(type)
    if decoder is None:
        decoder = _decoders[type] = msgspec.json.Decoder(type)
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeError):
        return convert(_loads(data, _finite, _no_number), type)
    except RecursionError:
        raise msgspec.DecodeError("JSON is nested too deeply") from None


def decode_lenient(data: Json) -> Any:
    """As ``decode``; a number that JSON has not (``NaN``, ``Infinity``) or nobody can read (``1e400``) is ``None``.

    Hosts write such numbers among their counts and probabilities, and an answer is not lost for one.
    """
    try:
        return decode(data)
    except msgspec.DecodeError:
        return _loads(data, _finite_or_none, _none, _int_or_none)


def convert(value: object, type: type[T], *, strict: bool = True) -> T:
    """``value``, as ``decode`` gives it, in the shape of ``type``. Raises ``msgspec.ValidationError``.

    Not ``strict``: numbers and truth values may also be written as text.
    """
    try:
        return msgspec.convert(value, type, strict=strict)
    except UnicodeEncodeError:
        # msgspec cannot say what is wrong with a text that it cannot encode.
        raise msgspec.ValidationError("a lone surrogate stands where another value or key is expected") from None


def string(text: str) -> bytes:
    """JSON bytes of one string, lone surrogates as ``\\udXXX`` escapes."""
    try:
        return _encoder.encode(text)
    except UnicodeEncodeError:
        return json.dumps(text).encode("ascii")


def raw(source_text: str) -> bytes:
    """The bytes of JSON source text as it came; a lone surrogate in it becomes its escape."""
    return source_text.encode("utf-8", "backslashreplace")


def whole(text: str) -> str:
    """``text`` with each surrogate pair that came in two pieces as one character; lone surrogates stay."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _PAIR.sub(_joined, text)
    return text


def _joined(pair: re.Match[str]) -> str:
    high, low = map(ord, pair[0])
    return chr(0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00)


def digest(data: bytes) -> str:
    """Hex SHA-256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def _loads(
    data: Json,
    parse_float: Callable[[str], float | None],
    parse_constant: Callable[[str], None],
    parse_int: Callable[[str], int | None] = int,
) -> Any:
    try:
        text = data if isinstance(data, str) else bytes(data).decode("utf-8", "surrogatepass")
        return json.loads(text, parse_float=parse_float, parse_constant=parse_constant, parse_int=parse_int)
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from None


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _finite_or_none(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _int_or_none(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:  # Python reads no more than some thousand digits
        return None


def _none(text: str) -> None:
    return None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")
