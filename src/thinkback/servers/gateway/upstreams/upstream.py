"""The way to the providers: connections that are kept between requests, for one event loop.

Promises: a body is read only as fast as its reader takes it; leaving the context before its end closes the connection
at once; the address is sent as it was given. A kept connection that turns out to be closed is replaced, once. Must not:
follow a redirect, keep a cookie, ask for compression, or repeat a key, a query or a proxy's password in an error.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType

from thinkback.drive.http import HttpResponse, Timeouts, Verify
from thinkback.errors import NetworkError
from thinkback.servers.gateway.upstreams.connecting import Connecting
from thinkback.servers.gateway.upstreams.connection import Connection
from thinkback.servers.gateway.upstreams.requesting import Address, head, parse

_IDLE = 30.0
"""Seconds after which a kept connection is not trusted any more: what is between may have forgotten it."""
_AT_ONCE = 2**20
"""Bytes that are unpacked at once, at most."""


class Upstream:
    """The transport of the gateway. ``proxy`` and ``verify`` override what the environment says."""

    def __init__(self, proxy: str | None = None, verify: Verify = True) -> None:
        self._connecting = Connecting(proxy, verify)
        # Those of an address in the order in which they were last used.
        self._idle: dict[Address, deque[Connection]] = {}

    def post(self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts) -> _Exchange:
        """Send; the connection is closed when the context ends, or kept where the response was read to its end."""
        return _Exchange(self, url, headers, body, timeouts)

    def get(self, url: str, headers: dict[str, str], timeouts: Timeouts) -> _Exchange:
        """The same without a body, for a page."""
        return _Exchange(self, url, headers, None, timeouts)

    async def aclose(self) -> None:
        """Close all connections that are idle."""
        for kept in self._idle.values():
            for connection in kept:
                connection.close()
        self._idle.clear()

    def kept(self, address: Address, now: float) -> Connection | None:
        """The connection to ``address`` that was used last, if it is still good."""
        waiting = self._idle.get(address)
        while waiting:
            connection = waiting.pop()
            if _is_good(connection, now):
                return connection
            connection.close()
        return None

    def keep(self, address: Address, connection: Connection, now: float) -> None:
        """Take ``connection`` back."""
        waiting = self._idle.setdefault(address, deque())
        while waiting and not _is_good(waiting[0], now):
            waiting.popleft().close()
        connection.idle_since = now
        waiting.append(connection)

    async def connected(self, address: Address, timeouts: Timeouts, end: float) -> Connection:
        """A new connection. Raises ``NetworkError``."""
        return await self._connecting.to(address, timeouts, end)

    def way(self, address: Address) -> Address | None:
        """The proxy that requests to ``address`` go through."""
        return self._connecting.way(address)


def _is_good(connection: Connection, now: float) -> bool:
    return connection.is_usable and now - connection.idle_since < _IDLE


class _Exchange:
    """One request and its response, as a context."""

    def __init__(
        self, upstream: Upstream, url: str, headers: dict[str, str], body: bytes | None, timeouts: Timeouts
    ) -> None:
        self._upstream = upstream
        self._url = url
        self._headers = headers
        self._body = body or b""
        self._length = None if body is None else len(body)
        self._timeouts = timeouts
        self._connection: Connection | None = None
        self._address: Address

    async def __aenter__(self) -> HttpResponse:
        upstream, timeouts = self._upstream, self._timeouts
        loop = asyncio.get_running_loop()
        now = loop.time()
        end = math.inf if timeouts.total is None else now + timeouts.total
        address, target = parse(self._url)
        self._address = address
        request = head(address, target, self._headers, self._length, upstream.way(address))
        connection = upstream.kept(address, now)
        if connection is not None:
            try:
                return await self._sent(connection, request, end)
            except NetworkError as error:
                if error.details["phase"] != "network" or not connection.is_silent:
                    raise
        return await self._sent(await upstream.connected(address, timeouts, end), request, end)

    async def _sent(self, connection: Connection, request: bytes, end: float) -> HttpResponse:
        try:
            await connection.send(request, self._body, self._timeouts, end)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        encoding = connection.headers.get("content-encoding", "identity").lower()
        body = connection if encoding in ("identity", "") else _unpacked(connection, encoding)
        return HttpResponse(connection.status, connection.headers, body)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        connection = self._connection
        if connection is None:
            return
        if connection.is_usable:
            self._upstream.keep(self._address, connection, asyncio.get_running_loop().time())
        else:
            connection.close()


async def _unpacked(body: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """``body`` as it was before it was compressed, a bounded piece at a time."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise NetworkError(
            "the response is compressed in a way that nobody asked for", details={"phase": "network", "permanent": True}
        )
    unpacker = zlib.decompressobj(wbits=47)
    packed_size = size = 0
    try:
        async for piece in body:
            packed_size += len(piece)
            left = piece
            while left:
                unpacked = unpacker.decompress(left, _AT_ONCE)
                size += len(unpacked)
                left = unpacker.unconsumed_tail
                if unpacked:
                    yield unpacked
            if unpacker.unused_data or packed_size > size + _AT_ONCE:
                raise NetworkError(
                    "the compressed response has more than belongs to it",
                    details={"phase": "network", "permanent": True},
                )
    except zlib.error:
        raise NetworkError("the response cannot be unpacked", details={"phase": "network"}) from None
    if not unpacker.eof:
        raise NetworkError("the compressed response is cut off", details={"phase": "network"})
