"""Framing: provider bytes to the payloads of their events.

I/O-free; equal results whole, byte by byte and at any cut. Each reader keeps only what is not yet complete, and
never scans a byte twice. Must not: decode payloads.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

Framing: TypeAlias = Literal["sse", "ndjson", "json"]


class Framer(Protocol):
    """Bytes in, complete payloads out; ``close`` returns what a missing terminator held back."""

    def feed(self, data: bytes) -> list[bytes]: ...

    def close(self) -> list[bytes]: ...


class SseFramer:
    """Server-sent events: the ``data`` of each event, several data lines joined by a newline.

    Accepts LF, CRLF and CR line ends (WHATWG HTML, "event stream interpretation"); comments, ``event``, ``id`` and
    ``retry`` lines are skipped, because every provider repeats the event's type inside its data.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._scanned = 0

    def feed(self, data: bytes) -> list[bytes]:
        held = self._held
        held += data
        if b"\r" in held:
            self._normalise_line_ends()
        end = held.rfind(b"\n\n", max(0, self._scanned - 1))
        if end < 0:
            self._scanned = len(held)
            return []
        complete = bytes(held[:end])
        del held[: end + 2]
        self._scanned = len(held)
        return _events(complete)

    def close(self) -> list[bytes]:
        rest = bytes(self._held).replace(b"\r", b"\n")
        self._held.clear()
        self._scanned = 0
        return _events(rest)

    def _normalise_line_ends(self) -> None:
        # A CR at the very end may be half of a CRLF: it stays until the next byte decides.
        last = b"\r" if self._held.endswith(b"\r") else b""
        body = self._held[: len(self._held) - len(last)]
        self._held[:] = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + last
        self._scanned = 0


def _events(block: bytes) -> list[bytes]:
    found: list[bytes] = []
    for event in block.split(b"\n\n"):
        if event.startswith(b"data: ") and b"\n" not in event:
            found.append(event[6:])
            continue
        lines = [line for line in event.split(b"\n") if line.startswith(b"data")]
        values = [value[1:] if value.startswith(b" ") else value for value in map(_data_of, lines) if value is not None]
        if values:
            found.append(b"\n".join(values))
    return found


def _data_of(line: bytes) -> bytes | None:
    if line.startswith(b"data:"):
        return line[5:]
    return b"" if line == b"data" else None


class NdjsonFramer:
    """One JSON value per line."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._scanned = 0

    def feed(self, data: bytes) -> list[bytes]:
        held = self._held
        held += data
        end = held.rfind(b"\n", self._scanned)
        if end < 0:
            self._scanned = len(held)
            return []
        complete = bytes(held[:end])
        del held[: end + 1]
        self._scanned = len(held)
        return [line for line in complete.split(b"\n") if line.strip()]

    def close(self) -> list[bytes]:
        rest = bytes(self._held).strip()
        self._held.clear()
        return [rest] if rest else []


class JsonFramer:
    """One JSON document that ends with the body."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        self._parts.append(data)
        return []

    def close(self) -> list[bytes]:
        body = b"".join(self._parts)
        self._parts.clear()
        return [body] if body.strip() else []


FRAMERS: dict[Framing, type[SseFramer] | type[NdjsonFramer] | type[JsonFramer]] = {
    "sse": SseFramer,
    "ndjson": NdjsonFramer,
    "json": JsonFramer,
}


def guess_framing(content_type: str, start: bytes) -> Framing:
    """The framing of a body from its content type, else from its first bytes."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return "sse"
    if kind in ("application/x-ndjson", "application/jsonl", "application/ndjson"):
        return "ndjson"
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith((b"data:", b"event:", b"id:", b"retry:", b":")):
        return "sse"
    return "json"
