"""The body of a request: read within its limits, unpacked, and fit to be decoded.

Promises: no more than ``limit`` bytes are kept, packed or not; what is returned is UTF-8 and not nested deeper than a
decoder can follow. Raises ``Refused`` for anything else.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.incoming import ClientGone

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Hold = Callable[[int], None]

DEEPEST = 128
"""Levels of nesting; a tool's schema has ten."""
PACKINGS: Mapping[str, int] = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Content encoding to the window bits that zlib knows it by; ``deflate`` may have either of its two headers."""
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b'"[]{}')


async def read_body(
    receive: Receive, headers: Mapping[str, str], limit: int, seconds: float, hold: Hold = lambda size: None
) -> bytes:
    """The body, unpacked. It has ``seconds`` to arrive in; ``ClientGone`` where the client leaves before its end.

    ``hold`` is told of bytes before they are kept: of all at once where their number is known, else as they come.
    """
    said = headers.get("content-length", "")
    length = int(said) if said.isdecimal() else 0
    if length > limit:
        raise too_large(limit)
    unpack = _unpacker(headers.get("content-encoding", ""), limit)
    is_known = length > 0 and isinstance(unpack, _Plain)
    if is_known:
        hold(length)
    try:
        async with asyncio.timeout(seconds):
            body = await _arrive(receive, unpack, limit, _held if is_known else hold)
    except TimeoutError:
        raise Refused(408, "body_timeout", f"the body did not arrive within {seconds:g} seconds") from None
    return body


def check_text(body: bytes) -> None:
    """Refuse what is no text, or is nested too deeply to be JSON that anyone means."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise Refused(400, "invalid_utf8", f"the body is not UTF-8 at byte {error.start}") from None
    if too_deep(body):
        raise Refused(400, "too_deep", f"the body is not valid JSON, or is nested deeper than {DEEPEST} levels")


def too_deep(body: bytes) -> bool:
    """Whether brackets outside texts are nested deeper than ``DEEPEST``, or do not match.

    By passes over the bytes and without recursion. A body with few brackets needs none.
    """
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return False
    if b"\\" in body:
        # pairs of backslashes first: what is left before a quotation mark escapes it
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(body.translate(None, _NOT_BRACKETS).split(b'"')[::2])
    for _ in range(DEEPEST):
        inner = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(inner) == len(brackets):
            break
        brackets = inner
    return bool(brackets)


def too_large(limit: int) -> Refused:
    """The refusal of a body of more than ``limit`` bytes."""
    return Refused(413, "body_too_large", f"the body is larger than {limit} bytes")


class _Plain:
    def add(self, data: bytes) -> bytes:
        return data

    def end(self) -> None:
        return None


class _Packed:
    """Unpacks while bytes arrive, never more than one byte over ``limit``."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._room = limit + 1
        self._zlib: Any = None
        self._bits = PACKINGS[name]

    def add(self, data: bytes) -> bytes:
        if self._zlib is None:
            if not data:
                return b""
            self._zlib = zlib.decompressobj(self._window(data))
        if self._zlib.eof and data:
            raise Refused(400, "bad_encoding", f"something follows the end of the {self._name} body")
        try:
            out: bytes = self._zlib.decompress(data, self._room)
        except zlib.error:
            raise Refused(400, "bad_encoding", f"the body is not {self._name}") from None
        self._room -= len(out)
        if self._room <= 0:
            raise too_large(self._limit)
        if self._zlib.unused_data:
            raise Refused(400, "bad_encoding", f"something follows the end of the {self._name} body")
        return out

    def end(self) -> None:
        if self._zlib is None or not self._zlib.eof:
            raise Refused(400, "bad_encoding", f"the {self._name} body ends too early")

    def _window(self, data: bytes) -> int:
        """``deflate`` is meant to have zlib's header, and often has none."""
        return -15 if self._name == "deflate" and data[0] & 0x0F != 8 else self._bits


def _unpacker(encoding: str, limit: int) -> _Plain | _Packed:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return _Plain()
    if name not in PACKINGS:
        raise Refused(415, "unknown_encoding", "the body's content-encoding is not one of gzip, deflate, identity")
    return _Packed(name, limit)


def _held(size: int) -> None:
    """It was told before."""


async def _arrive(receive: Receive, unpack: _Plain | _Packed, limit: int, hold: Hold) -> bytes:
    parts: list[bytes] = []
    got = size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        data: bytes = message.get("body", b"")
        got += len(data)
        if got > limit:
            raise too_large(limit)
        part = unpack.add(data)
        size += len(part)
        if part:
            hold(len(part))
            parts.append(part)
        if not message.get("more_body", False):
            unpack.end()
            return parts[0] if len(parts) == 1 else b"".join(parts)
