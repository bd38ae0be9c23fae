"""Where a response goes: an ASGI ``send`` with what a slow, deaf or leaving client needs.

Promises: writing waits for the client; a client that takes nothing for ``write_timeout`` seconds, or leaves, ends the
task that writes. Whole responses have their length.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import msgspec

from thinkback.servers.gateway.incoming import ClientGone, Notes
from thinkback.wire.writing import Problem

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]+")
NOTED = ("upstream", "session", "response", "reattach")
"""What the headers of a response say of it, behind ``thinkback-``."""
PIECE = 256 * 1024
"""Bytes that are written in one go."""
Headers = list[tuple[bytes, bytes]]


class ResponseSink:
    """One response. ``extra`` are headers of every response on this connection."""

    def __init__(self, send: Send, extra: Headers, write_timeout: float) -> None:
        self.notes = Notes()
        self.stop: Problem | None = None
        self.status = 0
        self.started = False
        self.ended = False
        self.streams = False
        self.gone = ""
        self.sent = 0
        self.key = ""
        self.body_read = False
        self._send = send
        self._extra = extra
        self._timeout = write_timeout
        self._head: MutableMapping[str, Any] | None = None
        self._length = b""
        self._writing_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = None
        self._watch: asyncio.TimerHandle | None = None

    def writes_in(self, task: asyncio.Task[Any]) -> None:
        """The task that is to end when nobody reads."""
        self._task = task

    def leave(self, why: str, stop: Problem | None = None) -> None:
        """End the task that writes: the client left or is deaf, or with ``stop``, what it is still told."""
        if self.ended or self.gone:
            return
        self.stop = stop
        if stop is None:
            self.gone = why
        if self._task is not None:
            self._task.cancel()

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Status and headers; those of a stream go out at once."""
        if self.started:
            raise RuntimeError("a response starts once")
        self.started, self.status = True, status
        self._note(headers)
        lines = [(name.lower().encode("ascii"), _line(value)) for name, value in headers.items()]
        # how long a body is, is known to who has it: ``end``, or who writes it in pieces
        self._length = next((value for name, value in lines if name == b"content-length"), b"")
        lines = [line for line in lines if line[0] != b"content-length"]
        kind = next((value for name, value in lines if name == b"content-type"), b"")
        self._head = {"type": "http.response.start", "status": status, "headers": lines + self._extra}
        self.streams = kind.startswith(b"text/event-stream")
        if self.streams:
            lines.append((b"cache-control", b"no-store"))
            # proxies in front are asked not to wait for the end
            lines.append((b"x-accel-buffering", b"no"))
            self._head["headers"] = lines + self._extra
            await self._out_head()

    async def write(self, data: bytes) -> None:
        """A piece of the body."""
        if self._head is not None:
            if self._length:
                self._head["headers"].append((b"content-length", self._length))
            await self._out_head()
        await self._out_pieces(data)

    async def end(self, data: bytes = b"") -> None:
        """The last piece."""
        if self._head is not None:
            self._head["headers"].append((b"content-length", str(len(data)).encode()))
            await self._out_head()
        await self.finish(data)

    async def finish(self, data: bytes = b"") -> None:
        """The last piece of a response whose length was told at its start."""
        last = max(len(data) - 1, 0) // PIECE * PIECE
        await self._out_pieces(data[:last])
        await self._out({"type": "http.response.body", "body": data[last:], "more_body": False})
        self.sent += len(data) - last
        self.ended = True
        self.close()

    def close(self) -> None:
        """Nothing is waited for any more."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _note(self, headers: Mapping[str, str]) -> None:
        """What the response's own headers say is noted, where nobody did."""
        notes = self.notes
        said = {name: headers.get(f"thinkback-{name}", "") for name in NOTED if not getattr(notes.report, name)}
        if any(said.values()):
            notes.report = msgspec.structs.replace(notes.report, **said)
        notes.degraded = notes.degraded or headers.get("thinkback-degraded", "")

    async def _out_head(self) -> None:
        head, self._head = self._head, None
        assert head is not None
        self._watch = self._loop.call_later(self._timeout / 4, self._look)
        await self._out(head)

    async def _out_pieces(self, data: bytes) -> None:
        """What is large goes out as its client takes it: a transport that has it all is busy with nothing else."""
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            await self._out({"type": "http.response.body", "body": piece, "more_body": True})
            self.sent += len(piece)
            if at:
                await asyncio.sleep(0)

    async def _out(self, message: MutableMapping[str, Any]) -> None:
        if self.gone:
            raise ClientGone
        self._writing_since = self._loop.time()
        try:
            await self._send(message)
        except OSError as error:
            self.gone = "left"
            raise ClientGone from error
        finally:
            self._writing_since = 0.0

    def _look(self) -> None:
        """Every now and then: does the client still read?"""
        if self._writing_since and self._loop.time() - self._writing_since >= self._timeout:
            self.leave("deaf")
            return
        self._watch = self._loop.call_later(self._timeout / 4, self._look)


def _line(value: str) -> bytes:
    """``value`` as the value of a header: what would end it, or cannot stand there, is left out."""
    return _CONTROLS.sub(b" ", value.encode("latin-1", "replace"))
