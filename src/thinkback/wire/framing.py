"""Framing: provider bytes to the payloads of their events.

I/O-free; equal results whole, byte by byte and at any cut. Each framer keeps only what is not yet complete, and
never scans a byte twice. A byte order mark at the very start is dropped. Must not: decode payloads.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

Framing: TypeAlias = Literal["sse", "ndjson", "json", "event-stream"]

_MARK = b"\xef\xbb\xbf"
_SSE_BEGINS = (b"data:", b"event:", b"id:", b"retry:", b":")
# What stands between the data of two events as most hosts write them that name their events: a line for each.
_NAMED = re.compile(rb"\n\nevent: [^\n]*\ndata: ")

# A data line of any event; one space after the colon is not part of it, and without a colon there is no data in it.
_DATA = re.compile(rb"^data(?:: ?([^\n]*))?$", re.MULTILINE)

# How an empty line behind a line begins, whatever ends them.
_BLANKS = (b"\n\n", b"\n\r", b"\r\r")

_WRITTEN = re.compile(rb".+?(?:\r\n\r\n|\n\n|\Z)", re.DOTALL)
DATA_LINE = re.compile(rb"^(data: ?)(.*?)(\r?)$", re.MULTILINE)
"""In a written event: the name, the payload, and a CR that ends the line."""


class Framer(Protocol):
    """Bytes in, complete payloads out; ``close`` returns what a missing terminator held back.

    ``fault`` says why nothing more can come out of a corrupt body; the framings of plain text have none.
    """

    fault: str

    def feed(self, data: bytes) -> list[bytes]: ...

    def close(self) -> list[bytes]: ...


class SseFramer:
    """Server-sent events: the ``data`` of each event, several data lines joined by a newline.

    Accepts LF, CRLF and CR line ends (WHATWG HTML, "event stream interpretation"); comments, ``event``, ``id`` and
    ``retry`` lines are skipped, because every provider repeats the event's type inside its data, and so are events
    without data.
    """

    fault = ""

    def __init__(self) -> None:
        self._held = bytearray()
        self._scanned = 0
        self._ended_in_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> list[bytes]:
        if self._ended_in_cr or b"\r" in data:
            data = self._with_newlines(data)
        held = self._held
        held += data
        end = held.rfind(b"\n\n", self._scanned)
        if end < 0:
            self._scanned = max(0, len(held) - 1)
            return []
        with memoryview(held) as view:
            complete = bytes(view[:end])
        del held[: end + 2]
        self._scanned = max(0, len(held) - 1)
        return self._events(complete)

    def close(self) -> list[bytes]:
        rest = bytes(self._held)
        self._held.clear()
        self._scanned = 0
        return self._events(rest)

    def _with_newlines(self, data: bytes) -> bytes:
        """A CR ends a line at once; the LF that may follow it, here or in the next piece, is part of it."""
        if self._ended_in_cr and data.startswith(b"\n"):
            data = data[1:]
            self._ended_in_cr = False
        if data:
            self._ended_in_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, block: bytes) -> list[bytes]:
        if self._at_start:
            self._at_start = False
            block = block.removeprefix(_MARK)
        if block.startswith(b"data: "):
            if b"\n" not in block:  # perhaps an event of many megabytes
                return [block[6:]]
            found = block[6:].split(b"\n\ndata: ")
            if block.count(b"\n") == 2 * len(found) - 2:
                return found
        elif block.startswith(b"event: "):
            _, *found = _NAMED.split(b"\n\n" + block)
            if block.count(b"\n") == 3 * len(found) - 2 and all(found):
                return found
        if b"data" not in block:  # comments and empty lines, perhaps a million of them
            return []
        return [data for event in block.split(b"\n\n") if b"data" in event and (data := _data_of(event))]


def written_events(data: bytes) -> list[bytes]:
    """The events in ``data`` as they were written, each with the empty line behind it: together they are ``data``."""
    return _WRITTEN.findall(data)


def _data_of(event: bytes) -> bytes:
    return b"\n".join(_DATA.findall(event))


class NdjsonFramer:
    """One JSON value per line."""

    fault = ""

    def __init__(self) -> None:
        self._held = bytearray()
        self._scanned = 0
        self._at_start = True

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
        return self._lines(complete)

    def close(self) -> list[bytes]:
        rest = bytes(self._held)
        self._held.clear()
        self._scanned = 0
        return self._lines(rest)

    def _lines(self, block: bytes) -> list[bytes]:
        if self._at_start:
            self._at_start = False
            block = block.removeprefix(_MARK)
        return [line for line in block.split(b"\n") if line.strip()]


class JsonFramer:
    """One JSON document that ends with the body."""

    fault = ""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        self._parts.append(data)
        return []

    def close(self) -> list[bytes]:
        body = b"".join(self._parts).removeprefix(_MARK)
        self._parts.clear()
        return [body] if body.strip() else []


def _event_stream() -> Framer:
    from thinkback.wire.event_stream import EventStreamFramer  # of AWS alone

    return EventStreamFramer()


FRAMERS: dict[Framing, Callable[[], Framer]] = {
    "sse": SseFramer,
    "ndjson": NdjsonFramer,
    "json": JsonFramer,
    "event-stream": _event_stream,
}


def last_event(piece: bytes, *marks: re.Pattern[bytes]) -> int:
    """Where the server-sent event that has one of ``marks`` begins in a piece of a stream, -1 where none has.

    Linear and fast where each mark begins with letters of its own: a piece may be one event of many megabytes.
    """
    found = [match.start() for mark in marks if (match := mark.search(piece))]
    if not found:
        return -1
    at = max((piece.rfind(blank, 0, min(found)) + 2 for blank in _BLANKS if blank in piece), default=0)
    if at < 2:
        return 0
    return at + 1 if piece[at - 1 : at + 1] == b"\r\n" else at


def guess_framing(content_type: str, start: bytes) -> Framing:
    """The framing of a body from its content type, else from its first bytes, of which one is enough.

    A body that begins like a JSON object is one, also where the host says that it is an event stream.
    """
    kind = content_type.partition(";")[0].strip().lower()
    text = start.removeprefix(_MARK).lstrip(b" \t\r\n")
    if kind == "text/event-stream":
        return "json" if text.startswith(b"{") else "sse"
    if kind == "application/vnd.amazon.eventstream":
        return "json" if text.startswith(b"{") else "event-stream"
    if kind in ("application/x-ndjson", "application/jsonl", "application/ndjson"):
        return "ndjson"
    begins = text.startswith(_SSE_BEGINS) or any(text and mark.startswith(text) for mark in _SSE_BEGINS)
    return "sse" if begins else "json"
