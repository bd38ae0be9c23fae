"""New connections: straight or through a proxy, with TLS where the address wants it.

What is trusted is what the other transports trust: the usual authorities, those that SSL_CERT_FILE or SSL_CERT_DIR
name, or what is given.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import ssl
import urllib.request
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import aiohappyeyeballs

from thinkback.drive.http import Timeouts, Verify, trusting, usual_context
from thinkback.errors import NetworkError, PhaseTimeout
from thinkback.servers.gateway.upstreams.connection import Connection, out_of_time
from thinkback.servers.gateway.upstreams.requesting import Address, parse

P = TypeVar("P", bound=asyncio.Protocol)
_PERMANENT = {"phase": "network", "permanent": True}
_SECOND_ADDRESS = 0.25
"""Seconds after which another address of a host is tried beside the first."""
_LONGEST_GREETING = 16 * 1024
_ALIVE = 45
"""Seconds of silence after which a connection is asked whether it is still there: a model may think for minutes."""


class Connecting:
    """Makes connections. ``proxy`` and ``verify`` override the environment, which is read when it is first needed."""

    def __init__(self, proxy: str | None, verify: Verify) -> None:
        self._proxy = proxy
        self._verify = trusting(os.fspath(verify)) if isinstance(verify, str | os.PathLike) else verify
        self._ways: dict[Address, Address | None] = {}

    def way(self, address: Address) -> Address | None:
        """The proxy for ``address``: the one given, else the one that the environment names for it.

        Raises ``NetworkError``, for good, for one that cannot be used.
        """
        if address not in self._ways:
            named = self._proxy if self._proxy is not None else _named(address)
            self._ways[address] = None if named is None else _proxy(named)
        return self._ways[address]

    async def to(self, address: Address, timeouts: Timeouts, end: float) -> Connection:
        """A connection that is ready for a request. Raises ``NetworkError``; no text of it names more than a host."""
        loop = asyncio.get_running_loop()
        left = end - loop.time()
        limit = left if timeouts.connect is None else min(timeouts.connect, left)
        try:
            async with asyncio.timeout(None if limit == math.inf else limit):
                return await self._made(loop, address)
        except TimeoutError:
            if loop.time() >= end:
                raise out_of_time(timeouts) from None
            raise PhaseTimeout("no connection in time", details={"phase": "connect"}) from None
        except ssl.SSLCertVerificationError as error:
            raise NetworkError(
                f"the server's certificate is not trusted: {error.verify_message or error.reason}; name its authority "
                "in SSL_CERT_FILE or verify=",
                details=_PERMANENT,
            ) from None
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise NetworkError(f"no connection to {address.host}: {why}", details={"phase": "network"}) from None

    async def _made(self, loop: asyncio.AbstractEventLoop, address: Address) -> Connection:
        proxy = self.way(address)
        context = self._context if address.scheme == "https" else None
        if proxy is None:
            return (await _opened(loop, address, context, Connection))[1]
        if context is None:
            return (await _opened(loop, proxy, self._context if proxy.scheme == "https" else None, Connection))[1]
        return await self._tunnelled(loop, address, proxy, context)

    async def _tunnelled(
        self, loop: asyncio.AbstractEventLoop, address: Address, proxy: Address, context: ssl.SSLContext
    ) -> Connection:
        outer = self._context if proxy.scheme == "https" else None
        transport, greeting = await _opened(loop, proxy, outer, _Greeting)
        try:
            transport.write(_connect(address, proxy))
            status = await greeting.status
            if not 200 <= status < 300:
                raise NetworkError(f"the proxy refused the connection: status {status}", details={"phase": "network"})
            connection = Connection(loop)
            inner = await loop.start_tls(transport, connection, context, server_hostname=address.host)
        except BaseException:
            transport.abort()
            raise
        connection.connection_made(inner)
        return connection

    @cached_property
    def _context(self) -> ssl.SSLContext:
        if isinstance(self._verify, ssl.SSLContext):
            return self._verify
        if self._verify is False:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        try:
            return usual_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        except OSError:
            raise NetworkError(
                "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read", details=_PERMANENT
            ) from None


class _Greeting(asyncio.Protocol):
    """What a proxy answers to CONNECT: ``status``, which is 0 for what is no answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.status: asyncio.Future[int] = loop.create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        """Bytes of its head."""
        self._head += data
        if b"\r\n\r\n" in self._head or len(self._head) > _LONGEST_GREETING:
            status = self._head[9:12]
            self._resolve_status(int(status) if status.isdigit() else 0)

    def connection_lost(self, exc: Exception | None) -> None:
        """It said nothing, or not enough."""
        self._resolve_status(0)

    def _resolve_status(self, status: int) -> None:
        if not self.status.done():
            self.status.set_result(status)


def _connect(address: Address, proxy: Address) -> bytes:
    host = f"[{address.host}]" if ":" in address.host else address.host
    password = f"proxy-authorization: {proxy.basic}\r\n" if proxy.basic else ""
    return f"CONNECT {host}:{address.port} HTTP/1.1\r\nhost: {host}:{address.port}\r\n{password}\r\n".encode()


async def _opened(
    loop: asyncio.AbstractEventLoop,
    to: Address,
    context: ssl.SSLContext | None,
    protocol: Callable[[asyncio.AbstractEventLoop], P],
) -> tuple[asyncio.Transport, P]:
    """A connection with TLS by ``context``, if any."""
    connected = await _socket(loop, to)
    try:
        return await loop.create_connection(
            lambda: protocol(loop), sock=connected, ssl=context, server_hostname=to.host if context else None
        )
    except BaseException:
        connected.close()
        raise


async def _socket(loop: asyncio.AbstractEventLoop, to: Address) -> socket.socket:
    """A connected socket; a second address of the host is tried beside one that does not answer."""
    found = await loop.getaddrinfo(to.host, to.port, type=socket.SOCK_STREAM)
    opened = await aiohappyeyeballs.start_connection(
        found, happy_eyeballs_delay=_SECOND_ADDRESS, interleave=1, loop=loop
    )
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _ALIVE)
    return opened


def _named(address: Address) -> str | None:
    """The proxy that the environment names for ``address``."""
    proxies = urllib.request.getproxies()
    named = proxies.get(address.scheme) or proxies.get("all")
    if not named or urllib.request.proxy_bypass(address.authority):
        return None
    return named if "://" in named else f"http://{named}"


def _proxy(way: str) -> Address:
    """The address of a proxy. Raises ``NetworkError``, for good; it may hold a password and is not repeated."""
    try:
        return parse(way)[0]
    except NetworkError:
        raise NetworkError(
            "the proxy cannot be used: its URL is malformed, or of a kind that is not supported", details=_PERMANENT
        ) from None
