"""The way to the providers: one pool of connections per way out (a proxy, an authority), for one event loop.

Promises: a body is read only as fast as its reader takes it; leaving the context before its end closes the connection
at once; the address is sent as it was given. Must not: follow a redirect, keep a cookie, read a netrc file, or repeat a
key, a query or a proxy's password in an error.
"""

from __future__ import annotations

import asyncio
import functools
import os
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiohttp
from aiohttp.payload import BytesPayload, Payload
from yarl import URL

from thinkback.drive.deadline import Deadline
from thinkback.drive.http import HttpResponse, Timeouts, Verify, trusting, usual_context
from thinkback.errors import NetworkError, PhaseTimeout

_READ_AHEAD = 16 * 1024
"""Bytes of a body that are kept for a slow reader, about; then the socket is not read."""
_PERMANENT = {"phase": "network", "permanent": True}
_OURS_ALONE = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError, ValueError)


class Upstream:
    """The transport of the gateway. ``proxy`` and ``verify`` override what the environment says."""

    def __init__(self, proxy: str | None = None, verify: Verify = True) -> None:
        self._proxy = proxy
        self._verify = trusting(os.fspath(verify)) if isinstance(verify, str | os.PathLike) else verify
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[str, str] = {}

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[HttpResponse]:
        """Send; the connection is closed when the context ends, or kept where the response was read to its end."""
        deadline = Deadline(timeouts.total)
        session = self._session or self._opened()
        try:
            if timeouts.total is None:
                response = await self._sent(session, url, headers, body, timeouts)
            else:
                async with asyncio.timeout(deadline.remaining()):
                    response = await self._sent(session, url, headers, body, timeouts)
        except _FAILURES as error:
            raise translate(error, "first_byte", deadline) from None
        try:
            connection = response.connection
            if connection is not None and connection.protocol is not None:
                connection.protocol.read_timeout = timeouts.idle
                connection.protocol.start_timeout()
            yield HttpResponse(response.status, _headers(response), _pieces(response, deadline, timeouts.total))
        finally:
            _close(response)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def _sent(
        self, session: aiohttp.ClientSession, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> aiohttp.ClientResponse:
        address = _address(url)
        limits = aiohttp.ClientTimeout(
            None, connect=timeouts.connect, sock_connect=timeouts.connect, sock_read=timeouts.first_byte
        )
        return await session.request(
            "POST",
            address,
            data=_Body(body),
            headers=headers,
            allow_redirects=False,
            timeout=limits,
            proxy=self._proxy or (self._way(address) if self._proxies else None),
        )

    def _opened(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, ssl=_context(self._verify), enable_cleanup_closed=False)
        if self._proxy is None:
            found = urllib.request.getproxies()
            self._proxies = found if any(found.get(kind) for kind in ("http", "https", "all")) else {}
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_OURS_ALONE,
            read_bufsize=_READ_AHEAD,
            trust_env=False,
        )
        return self._session

    def _way(self, address: URL) -> str | None:
        """The proxy that the environment names for ``address``."""
        if urllib.request.proxy_bypass(address.raw_authority):
            return None
        named = self._proxies.get(address.scheme) or self._proxies.get("all")
        return named if named is None or "://" in named else f"http://{named}"


class _Body(BytesPayload):
    """Bytes that are there already. The client's own payload warns of large ones."""

    def __init__(self, value: bytes) -> None:
        Payload.__init__(self, value, content_type="application/json")
        self._size = len(value)


@functools.lru_cache(256)
def _address(url: str) -> URL:
    """``url`` as it is: nothing in it is encoded again."""
    return URL(url, encoded=True)


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    """In lower case; those that come more than once are joined."""
    found: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return found


async def _pieces(response: aiohttp.ClientResponse, deadline: Deadline, total: float | None) -> AsyncIterator[bytes]:
    read = response.content.readany
    try:
        if total is None:
            while piece := await read():
                yield piece
            return
        while True:
            async with asyncio.timeout(deadline.remaining()):
                piece = await read()
            if not piece:
                return
            yield piece
    except _FAILURES as error:
        raise translate(error, "idle", deadline) from None


def _close(response: aiohttp.ClientResponse) -> None:
    connection = response.connection
    if connection is not None and connection.protocol is not None:  # its body was not read to the end
        connection.protocol.abort()
    response.close()


def _context(verify: Any) -> Any:
    """What is trusted: the usual authorities, a context, or everybody (``False``)."""
    if verify is not True:
        return verify
    try:
        return usual_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    except OSError:
        raise NetworkError(
            "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read", details=_PERMANENT
        ) from None


def translate(error: Exception, reading: Literal["first_byte", "idle"], deadline: Deadline) -> NetworkError:
    """The client's exception as one of ours; ``reading`` is the phase a read time-out belongs to.

    Its own texts may hold an address with a key, or a header; none but the system's is repeated.
    """
    if deadline.passed:
        return deadline.error()
    match error:
        case aiohttp.ConnectionTimeoutError():
            return PhaseTimeout("no connection in time", details={"phase": "connect"})
        case TimeoutError():
            return PhaseTimeout("the server was silent for too long", details={"phase": reading})
        case aiohttp.ClientConnectorCertificateError():
            return NetworkError(
                f"the server's certificate is not trusted: {error.certificate_error}; name its authority in "
                "SSL_CERT_FILE or verify=",
                details=_PERMANENT,
            )
        case aiohttp.ClientHttpProxyError():
            return NetworkError(
                f"the proxy refused the connection: status {error.status}", details={"phase": "network"}
            )
        case aiohttp.ClientConnectorError():
            return NetworkError(f"no connection to the server: {error.strerror}", details={"phase": "network"})
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return NetworkError("the request cannot be sent: its URL or a header is malformed", details=_PERMANENT)
        case aiohttp.ClientPayloadError():
            return NetworkError("the connection broke within the response", details={"phase": "network"})
        case _:
            return NetworkError(f"the connection broke: {type(error).__name__}", details={"phase": "network"})
