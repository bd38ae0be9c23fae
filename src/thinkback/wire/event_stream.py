"""The binary event stream of AWS (``application/vnd.amazon.eventstream``): messages with headers and checksums.

A message is its length, the length of its headers and their CRC32, headers, payload, and the CRC32 of all that, big
endian (smithy.io, "Amazon Event Stream specification"; limits as in botocore's ``eventstream.py``). What comes out
is JSON, as botocore documents its events:

- an event: ``{"<event type>": <payload>}``;
- an exception: ``{"__exception__": "<exception type>", "body": <payload>}``;
- an error, which has no payload: ``{"__exception__": "<code>", "body": {"message": "<message>"}}``.

Promises: equal payloads whole, byte by byte and at any cut; a message is given out only if both checksums are right;
nothing is held but the message that is not yet complete. Bytes that are no such message end the stream: ``fault``
says why, and nothing more comes out. Must not: decode payloads, raise for what came over the wire.

``ChunkFramer`` gives out what InvokeModel streams: each message holds one event of the model's own dialect, in base64,
and an exception becomes an error event of that dialect.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any
from zlib import crc32

import msgspec

from thinkback.model import canonical

EXCEPTION = "__exception__"

_PRELUDE = struct.Struct(">III")
_CHECKSUM = struct.Struct(">I")
_AROUND = _PRELUDE.size + _CHECKSUM.size
_LONGEST_HEADERS = 128 * 1024
_LONGEST = 24 * 1024**2 + _LONGEST_HEADERS + _AROUND
# Size of a header value by its type; 6 and 7 (bytes, string) say their length themselves.
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES, _STRING = 6, 7
_COLON = ord(":")
# A stream has about ten sorts of headers and a few hundred lengths.
_MOST_REMEMBERED = 64
_MOST_LENGTHS = 1024


class EventStreamFramer:
    """Bytes in, the JSON of complete messages out; ``fault`` is empty unless the stream is corrupt."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._needed = _PRELUDE.size
        self._sizes: dict[bytes, tuple[int, int]] = {}
        self._begins: dict[bytes, bytes] = {}
        self.fault = ""

    def feed(self, data: bytes) -> list[bytes]:
        if self.fault:
            return []
        held = self._held
        held += data
        if len(held) < self._needed:
            return []
        buffer = bytes(held)
        payloads, end = self._messages(buffer)
        self._held = bytearray(buffer[end:])
        return payloads

    def close(self) -> list[bytes]:
        """A message that was cut off is lost: without its checksum nothing in it can be trusted."""
        self._held.clear()
        return []

    def _messages(self, buffer: bytes) -> tuple[list[bytes], int]:
        """The payloads of the complete messages, and where they end."""
        payloads: list[bytes] = []
        at, size, sizes, number_at = 0, len(buffer), self._sizes, _CHECKSUM.unpack_from
        head, begin, is_event = b"", b"", False
        self._needed = _PRELUDE.size
        while size - at >= 12:
            known = sizes.get(buffer[at : at + 12]) or self._measure(buffer[at : at + 12])
            if known is None:
                break
            total, headers = known
            end = at + total
            if end > size:
                self._needed = total
                break
            if crc32(buffer[at : end - 4]) != number_at(buffer, end - 4)[0]:
                self.fault = "an event does not fit its checksum"
                break
            payload_at = at + 12 + headers
            # Neighbours mostly have the same headers.
            if not begin or headers != len(head) or not buffer.startswith(head, at + 12):
                head = buffer[at + 12 : payload_at]
                begin = self._begins.get(head) or self._begin(head)
                if self.fault:
                    break
                is_event = begin[-1] == _COLON
            payloads.append(begin + (buffer[payload_at : end - 4] or b"{}") + b"}" if is_event else begin + b"}")
            at = end
        return payloads, at

    def _measure(self, prelude: bytes) -> tuple[int, int] | None:
        """The length of a message and of its headers; remembered, since most lengths come again."""
        total, headers, checksum = _PRELUDE.unpack(prelude)
        if crc32(prelude[:8]) != checksum:
            self.fault = "the head of an event does not fit its checksum"
            return None
        if headers > total - _AROUND or total > _LONGEST or headers > _LONGEST_HEADERS:
            self.fault = "an event has a length that events cannot have"
            return None
        if len(self._sizes) < _MOST_LENGTHS:
            self._sizes[prelude] = total, headers
        return total, headers

    def _begin(self, head: bytes) -> bytes:
        """The JSON before the payload of messages with these headers; remembered, since they repeat."""
        try:
            begin = _opening(_strings(head))
        except (ValueError, IndexError):
            self.fault = "an event has headers that cannot be read"
            return b""
        if len(self._begins) < _MOST_REMEMBERED:
            self._begins[head] = begin
        return begin


def _opening(headers: dict[str, str]) -> bytes:
    """The JSON before the payload; it ends in a colon unless it needs none. Raises ``ValueError``."""
    match headers.get(":message-type"):
        case "event":
            return b"{%b:" % canonical.string(headers.get(":event-type", ""))
        case "exception":
            return b'{"%b":%b,"body":' % (EXCEPTION.encode(), canonical.string(headers.get(":exception-type", "")))
        case "error":
            code, text = headers.get(":error-code", ""), headers.get(":error-message", "")
            return canonical.encode({EXCEPTION: code, "body": {"message": text}})[:-1]
        case _:
            raise ValueError


def _strings(headers: bytes) -> dict[str, str]:
    """The headers that are strings. Raises ``ValueError`` or ``IndexError`` when they break off or cannot be read."""
    found: dict[str, str] = {}
    at = 0
    while at < len(headers):
        start = at + 1
        name = headers[start : start + headers[at]]
        start += headers[at]
        kind = headers[start]
        start += 1
        if kind in (_BYTES, _STRING):
            size = headers[start] << 8 | headers[start + 1]
            start += 2
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise ValueError
        at = start + size
        if at > len(headers):
            raise ValueError
        if kind == _STRING:
            found[name.decode()] = headers[start:at].decode()
    return found


class _Chunk(msgspec.Struct):
    bytes: str = ""


class _Event(msgspec.Struct):
    chunk: _Chunk | None = None


class ChunkFramer:
    """Bytes in, the payloads of the inner events out; ``fault`` as ``EventStreamFramer`` has it."""

    def __init__(self) -> None:
        self._outer = EventStreamFramer()
        self.fault = ""

    def feed(self, data: bytes) -> list[bytes]:
        found = [self._inner(payload) for payload in self._outer.feed(data)]
        self.fault = self.fault or self._outer.fault
        return found

    def close(self) -> list[bytes]:
        return self._outer.close()

    def _inner(self, payload: bytes) -> bytes:
        try:
            event: _Event = canonical.decode(payload, _Event)
            if event.chunk is not None:
                return base64.b64decode(event.chunk.bytes, validate=True)
        except (msgspec.DecodeError, binascii.Error):
            self.fault = "an event holds no event of the model"
            return b""
        return _error(canonical.decode(payload))


def _error(body: Any) -> bytes:
    """An exception of the service, as the dialect inside would say it; any other event says nothing."""
    if not isinstance(body, dict) or EXCEPTION not in body:
        return b""
    said = body.get("body")
    message = said.get("message") if isinstance(said, dict) else None
    error = {"type": str(body[EXCEPTION]), "message": message if isinstance(message, str) else str(body[EXCEPTION])}
    return canonical.encode({"type": "error", "error": error})
