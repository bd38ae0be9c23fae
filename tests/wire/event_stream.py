"""The binary event stream of AWS, written: for tests of what reads it."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

CONTENT_TYPE = "application/vnd.amazon.eventstream"


def message(headers: Mapping[str, str], payload: bytes = b"") -> bytes:
    """One message whose headers are strings."""
    return packed(b"".join(header(name, 7, text(value)) for name, value in headers.items()), payload)


def event(type: str, payload: Any) -> bytes:
    """An event with JSON for a payload."""
    headers = {":event-type": type, ":content-type": "application/json", ":message-type": "event"}
    return message(headers, _json(payload))


def exception(type: str, payload: Any) -> bytes:
    """An exception, which ends a stream."""
    headers = {":exception-type": type, ":content-type": "application/json", ":message-type": "exception"}
    return message(headers, _json(payload))


def error(code: str, words: str) -> bytes:
    """An error, which has no payload."""
    return message({":error-code": code, ":error-message": words, ":message-type": "error"})


def frame(recorded: Mapping[str, Any]) -> bytes:
    """A message that a recording has decoded."""
    write = exception if recorded["message_type"] == "exception" else event
    return write(recorded["type"], recorded["payload"])


def header(name: str, kind: int, value: bytes) -> bytes:
    """A header of any type."""
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


def text(value: str) -> bytes:
    """The value of a header that is a string."""
    return struct.pack(">H", len(value.encode())) + value.encode()


def packed(headers: bytes, payload: bytes) -> bytes:
    """A message with lengths and checksums that are right."""
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    body = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return body + struct.pack(">I", zlib.crc32(body))


def _json(payload: Any) -> bytes:
    return json.dumps(payload, ensure_ascii=False).encode("utf-8", "backslashreplace")
