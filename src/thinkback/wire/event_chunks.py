"""Events of another dialect inside the binary event stream of AWS: what InvokeModel streams.

Each message holds one event of the model's own dialect, in base64; an exception becomes an error event of that
dialect.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.wire.event_stream import EXCEPTION, EventStreamFramer


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
