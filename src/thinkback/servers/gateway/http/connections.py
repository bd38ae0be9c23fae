"""Connections under uvicorn, with the limits that it does not have: heads of requests in size and time, and how many.

Promises: a connection that says nothing, or says it slowly, is closed; no head is kept beyond its limit; whoever is
one too many is told so. The only place that knows uvicorn's protocol from inside.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from uvicorn import Config as Uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.config.schema import Server
from thinkback.servers.gateway.http.answers import answer_of
from thinkback.wire.registry import CHAT
from thinkback.wire.writing import Problem

LARGEST_HEAD = 64 * 1024
MOST_HEADERS = 200
LONGEST_URL = 16 * 1024
OVER = 64
"""Connections beyond the most whose requests are still told why; further ones are closed at once."""
KEEP_ALIVE = 75
IDLE = 64
"""Connections that an address may hold without a request, at least; else half of all."""
OFFER = "x-offer"
"""The header that a wish for another protocol is passed on as."""
_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
REASONS = {400: "Bad Request", 408: "Request Timeout"}


class Connection(HttpToolsProtocol):
    """One connection. uvicorn offers its protocol by inheritance only."""

    def __init__(self, uvicorn: Uvicorn, state: ServerState, limits: Callable[[], Server]) -> None:
        super().__init__(uvicorn, state, {})
        self._limits = limits
        self._waits: asyncio.TimerHandle | None = None
        self._in_head = self._heard = False
        self._got = 0
        self._since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, and give its first head some time."""
        super().connection_made(transport)
        most = self._limits().max_connections
        if len(self.connections) > most + OVER:
            transport.abort()
            return
        self._since = self.loop.time()
        self._make_room(max(IDLE, most // 2))
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, no more of one head than its limit."""
        if self._waits is None and self._idle():
            self._wait()
        self._heard = True
        if b"pgrade" in data and (self._in_head or self._idle()):
            data = _without_upgrade(data)
        was_in_head = self._in_head
        super().data_received(data)
        if was_in_head and self._in_head:
            self._got += len(data)
            if self._got > LARGEST_HEAD + LONGEST_URL and not self.transport.is_closing():
                self._respond(431, "the head of the request is too large")

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._got = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; a trailer behind a body is none, whoever put it there."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head is whole: pass it on, with what is wrong with it."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()
        state = self.scope["state"]
        state["abort"] = self.transport.abort
        refused = self._fault()
        if refused is not None:
            state["refused"] = refused
            self.cycle.keep_alive = False
        if self.parser.should_upgrade():
            # the parser reads nothing behind this head
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Tell a client that what it sent is no HTTP, unless this would stand inside a response."""
        if not self._idle() and self.cycle.response_started:
            self.transport.abort()
            return
        self._respond(400, "the request is not HTTP")

    @property
    def is_new(self) -> bool:
        """True if no request came on it so far."""
        cycle: object = self.cycle
        return cycle is None

    def _fault(self) -> Refused | None:
        if len(self.headers) > MOST_HEADERS or sum(len(n) + len(v) + 4 for n, v in self.headers) > LARGEST_HEAD:
            return Refused(431, "head_too_large", "the headers are too many or too large")
        if len(self.url) > LONGEST_URL:
            return Refused(414, "url_too_long", "the address is too long")
        if len(self.connections) > self._limits().max_connections:
            return Refused(503, "busy", "there are too many connections; retry later", retry_after=1)
        return None

    def _make_room(self, most: int) -> None:
        """No address holds more than ``most`` connections that do nothing: the oldest of them ends."""
        idle = [one for one in self.connections if isinstance(one, Connection) and one._waits_at(self.client)]
        if len(idle) > most:
            min(idle, key=lambda one: one._since).transport.close()

    def _waits_at(self, client: tuple[str, int] | None) -> bool:
        return self._idle() and self.client is not None and client is not None and self.client[0] == client[0]

    def _idle(self) -> bool:
        """Whether the next byte begins a head."""
        cycle: object = self.cycle
        return cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        self._heard = False
        self._waits = self.loop.call_later(self._limits().header_timeout, self._too_late)

    def _stop_waiting(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None

    def _too_late(self) -> None:
        self._waits = None
        if self._heard:
            self._respond(408, "the head of the request did not arrive in time")
        else:
            self.transport.close()

    def _respond(self, status: int, message: str) -> None:
        """A response of the connection's own, and its end."""
        answer = answer_of(CHAT, Problem(status, message))
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Refused')}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        lines += [f"content-length: {len(answer.body)}", "connection: close", "", ""]
        self.transport.write("\r\n".join(lines).encode() + answer.body)
        self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """``data`` with no wish for another protocol in its first head.

    Java's client offers HTTP/2 with every first request, and the parser would skip the body of such a one. None is
    spoken here, and who offers one goes on without.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"\r\n%b:" % OFFER.encode(), head) + end + rest
