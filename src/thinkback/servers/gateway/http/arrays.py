"""A stream as one JSON array: what Gemini clients get that do not ask for server-sent events."""

from __future__ import annotations

from collections.abc import Mapping

from thinkback.servers.gateway.incoming import Notes, Sink
from thinkback.wire.writing import Problem


class ArraySink:
    """Takes a stream of events and writes the array of their data; what is no stream passes as it is."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._streams = False
        self._rest = b""
        self._between = b"["

    @property
    def notes(self) -> Notes:
        """As the sink behind it."""
        return self._sink.notes

    @property
    def stop(self) -> Problem | None:
        """As the sink behind it."""
        return self._sink.stop

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Status and headers."""
        self._streams = headers.get("content-type", "").startswith("text/event-stream")
        if self._streams:
            headers = {**headers, "content-type": "application/json; charset=UTF-8"}
        await self._sink.start(status, headers)

    async def write(self, data: bytes) -> None:
        """A piece of the stream, cut anywhere."""
        await self._sink.write(self._translated(data) if self._streams else data)

    async def end(self, data: bytes = b"") -> None:
        """The last piece."""
        if not self._streams:
            await self._sink.end(data)
            return
        last = self._translated(data + b"\n\n")
        await self._sink.end(last + (b"[]" if self._between == b"[" else b"]"))

    def _translated(self, data: bytes) -> bytes:
        *lines, self._rest = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n")
        out = b""
        for line in lines:
            if line.startswith(b"data:"):
                out += self._between + line[5:].strip()
                self._between = b",\r\n"
        return out
