"""One connection to a provider: HTTP/1.1, a request and its response at a time, read no faster than its reader takes.

Owns framing, the phases of time-outs, and back-pressure. Promises: what arrived is handed over before the failure that
followed it; a response that ends too soon is a failure. Must not: connect, choose, or send anything twice.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import TYPE_CHECKING, Any

import httptools

from thinkback.drive.http import Timeouts
from thinkback.errors import NetworkError, PhaseTimeout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_READ_AHEAD = 64 * 1024
"""Bytes of a body that wait for a slow reader, about; while there are more, the socket is not read."""
_LONGEST_HEAD = 128 * 1024
_NO_BODY = (204, 304)


class Connection(asyncio.Protocol):
    """Between two requests it is idle; ``is_usable`` says whether another one may go out."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport
        self._parser: Any = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lost = False
        self._paused = False
        self.idle_since = 0.0
        self._begin(Timeouts(), math.inf)
        self._done = True

    def _begin(self, timeouts: Timeouts, end: float) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._raw: list[tuple[bytes, bytes]] = []
        self._pieces: deque[bytes] = deque()
        self._waiting = self._head_size = 0
        self._error: NetworkError | None = None
        self._silent = True
        self._keeps = self._until_end = self._preliminary = self._done = False
        self._timeouts = timeouts
        self._end, self._due, self._armed = end, math.inf, math.inf

    # -- what its user calls -----------------------------------------------------------------------------------------

    @property
    def is_usable(self) -> bool:
        """Whether it is idle, and open as far as is known."""
        return self._done and self._keeps and not self._lost

    @property
    def is_silent(self) -> bool:
        """Whether not one byte has come for this request."""
        return self._silent

    async def send(self, request: bytes, body: bytes, timeouts: Timeouts, end: float) -> None:
        """Send a request and wait for the head of its response. ``end`` is the time when all of it must be over.

        Raises ``NetworkError``.
        """
        self._begin(timeouts, end)
        self._parser = httptools.HttpResponseParser(self)
        if self._lost:
            raise _broken()
        self._due = math.inf if timeouts.first_byte is None else self._loop.time() + timeouts.first_byte
        self._arm()
        self._transport.writelines((request, body))
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._event()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """The next piece of the body: all that waits. Raises ``NetworkError``."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._done:
                raise StopAsyncIteration
            await self._event()
        pieces = self._pieces
        taken = pieces.popleft() if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._waiting = 0
        if self._paused:
            self._paused = False
            if not self._lost:
                self._transport.resume_reading()
                self._due = math.inf if self._timeouts.idle is None else self._loop.time() + self._timeouts.idle
                self._arm()
        return taken

    def close(self) -> None:
        """Close at once, whatever is under way."""
        self._stop_timer()
        self._keeps = False
        if not self._lost:
            self._transport.abort()

    async def _event(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # -- what the loop calls -----------------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """The loop's transport; under uvloop it is none of asyncio's."""
        self._transport = transport
        self._keeps = True

    def data_received(self, data: bytes) -> None:
        """Bytes of a response; an idle connection gets none."""
        if self._done:
            self.close()
            return
        self._silent = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(NetworkError("what the server says is not HTTP/1.1", details={"phase": "network"}))
            return
        if self._done:
            return
        if not self.status:
            self._head_size += len(data)
            if self._head_size > _LONGEST_HEAD:
                self._fail(NetworkError("the head of the response is too long", details={"phase": "network"}))
            return
        if self._waiting > _READ_AHEAD and not self._paused:
            self._paused, self._due = True, math.inf
            self._transport.pause_reading()
        elif not self._paused and self._timeouts.idle is not None:
            self._due = self._loop.time() + self._timeouts.idle
            if self._due < self._armed:
                self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end of everything, or of a body that has no other."""
        self._lost = True
        if self._done:
            return
        if self.status and self._until_end and exc is None:
            self._finish()
        else:
            self._fail(_broken())

    # -- what the parser calls ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A second response to one request is none of ours."""
        if self._done:
            self._keeps = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which nobody reads."""
        self._raw.append((name, value))

    def on_headers_complete(self) -> None:
        """The head, or that of a preliminary response, which is passed over."""
        status = self._parser.get_status_code()
        if self._done:
            return
        if status < 200:
            self._preliminary = True
            self._raw = []
            return
        headers = self.headers
        for raw, value in self._raw:
            name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._until_end = "content-length" not in headers and not chunked and status not in _NO_BODY
        self._keeps = self._parser.should_keep_alive() and not self._until_end
        self.status = status
        self._wake()

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if not self._done:
            self._pieces.append(data)
            self._waiting += len(data)
            self._wake()

    def on_message_complete(self) -> None:
        """The end of the response."""
        if self._preliminary:
            self._preliminary = False
        elif not self._done:
            self._finish()

    # -- ends --------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        self._done = True
        self._stop_timer()
        if self._paused and not self._lost:
            self._paused = False
            self._transport.resume_reading()
        # a server that answers before it has read the request may take the rest of it for another one
        self._keeps = self._keeps and not self._lost and not self._transport.get_write_buffer_size()
        self._wake()

    def _fail(self, error: NetworkError) -> None:
        if self._error is None and not self._done:
            self._error = error
        self.close()
        self._wake()

    def _arm(self) -> None:
        self._stop_timer()
        self._armed = min(self._due, self._end)
        if self._armed < math.inf:
            self._timer = self._loop.call_at(self._armed, self._on_time)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._armed = math.inf

    def _on_time(self) -> None:
        now = self._loop.time()
        if now >= self._end:
            self._fail(out_of_time(self._timeouts))
        elif now >= self._due:
            phase = "idle" if self.status else "first_byte"
            self._fail(PhaseTimeout("the server was silent for too long", details={"phase": phase}))
        else:
            self._arm()


def out_of_time(timeouts: Timeouts) -> PhaseTimeout:
    """The error of a request that took too long as a whole."""
    return PhaseTimeout(f"the request was not finished after {timeouts.total} s", details={"phase": "total"})


def _broken() -> NetworkError:
    return NetworkError("the connection broke before the response was whole", details={"phase": "network"})
