"""AWS's binary event stream, the writing side: a prelude, typed headers, a payload, and two checksums per message."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from ..jsons import compact

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7
_JSON = {":content-type": "application/json"}
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def event(name: str, payload: Mapping[str, object], number: int = 0) -> bytes:
    """One event; ``number`` varies the padding that hides the length of what is inside."""
    padded = {**payload, "p": _PADDING[: 2 + number * 7 % (len(_PADDING) - 2)]}
    return message({":event-type": name, ":message-type": "event"}, padded)


def exception(name: str, text: str) -> bytes:
    """An error in the middle of a stream."""
    return message({":exception-type": name, ":message-type": "exception"}, {"message": text})


def message(headers: Mapping[str, str], payload: Mapping[str, object]) -> bytes:
    """One message with a JSON payload."""
    return frame({**headers, **_JSON}, compact(payload).encode())


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message as bytes."""
    block = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(block) + len(payload), len(block))
    head = prelude + struct.pack("!I", zlib.crc32(prelude))
    body = head + block + payload
    return body + struct.pack("!I", zlib.crc32(body))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack("!B", len(key)) + key + struct.pack("!BH", _STRING, len(text)) + text


MALFORMED = frame({":event-type": "contentBlockDelta", ":message-type": "event", **_JSON}, b'{"contentBlockIndex":0,')
"""An event whose frame is sound and whose JSON is broken off."""
