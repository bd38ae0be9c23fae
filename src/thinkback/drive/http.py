"""HTTP behind a small protocol of ours; the shipped transport is httpx2 (proxies and CA bundles by its own rules).

A key travels in a header or in the query. No error of this module repeats either, and the client does not know the
query: it writes the addresses of its requests to its log.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from thinkback.drive.deadline import Deadline
from thinkback.drive.resting import before_reads
from thinkback.errors import NetworkError, PhaseTimeout, SettingError
from thinkback.rules.urls import host_of, is_loopback

if TYPE_CHECKING:
    import ssl

    import httpx2

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
C = TypeVar("C")
Verify: TypeAlias = "ssl.SSLContext | str | os.PathLike[str] | bool"


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds per phase; ``None`` is no limit.

    ``first_byte``: until the response's head; ``idle``: between two pieces of the body; ``total``: the whole request.
    """

    connect: float | None = 10.0
    first_byte: float | None = 300.0
    idle: float | None = 300.0
    total: float | None = None


class HttpResponse(msgspec.Struct):
    """A response whose body is still to be read. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: Any


class Transport(Protocol):
    """POST, with the response's body as an iterator of pieces. Raises ``NetworkError`` or ``PhaseTimeout``.

    Their ``details["phase"]`` is network, connect, first_byte, idle or total; ``details["permanent"]`` is true where
    trying again cannot help.
    """

    def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractContextManager[HttpResponse]: ...

    def close(self) -> None: ...


class AsyncTransport(Protocol):
    """The same for asyncio; the body is an asynchronous iterator."""

    def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[HttpResponse]: ...

    async def aclose(self) -> None: ...


class Httpx2Transport:
    """The sync transport, for any number of threads. ``proxy`` and ``verify`` override what the environment says."""

    def __init__(self, proxy: str | None = None, verify: Verify = True) -> None:
        self._options = _client_options(proxy, verify)
        self._client: httpx2.Client | None = None

    def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractContextManager[HttpResponse]:
        """Send; the response is closed when the context ends."""
        return self.request("POST", url, headers, body, timeouts)

    @contextmanager
    def request(
        self, method: str, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> Iterator[HttpResponse]:
        """The same with another method."""
        import httpx2

        deadline = Deadline(timeouts.total)
        try:
            if self._client is None:
                self._client = _opened(httpx2.Client, self._options)
            limits = _limits(timeouts, deadline)
            address, target = _split(url)
            request = self._client.build_request(
                method, address, headers=headers, content=body, timeout=limits, extensions=target
            )
            response = self._client.send(request, stream=True)
        except _failures() as error:
            raise translate(error, "first_byte", deadline, url) from None
        try:
            request.extensions["timeout"]["read"] = timeouts.idle
            stream = response.extensions.get("network_stream")
            with deadline.breaking(_socket(stream)), before_reads(stream):
                yield HttpResponse(response.status_code, dict(response.headers), _pieces(response, deadline))
        finally:
            response.close()

    def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            self._client.close()


class AsyncHttpx2Transport:
    """The asyncio transport, for one event loop."""

    def __init__(self, proxy: str | None = None, verify: Verify = True) -> None:
        self._options = _client_options(proxy, verify)
        self._client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[HttpResponse]:
        """Send; the response is closed when the context ends."""
        import asyncio

        import httpx2

        deadline = Deadline(timeouts.total)
        try:
            if self._client is None:
                self._client = _opened(httpx2.AsyncClient, self._options)
            limits = _limits(timeouts, deadline)
            address, target = _split(url)
            request = self._client.build_request(
                "POST", address, headers=headers, content=body, timeout=limits, extensions=target
            )
            async with asyncio.timeout(deadline.remaining()):
                response = await self._client.send(request, stream=True)
        except _failures(TimeoutError) as error:
            raise translate(error, "first_byte", deadline, url) from None
        try:
            request.extensions["timeout"]["read"] = timeouts.idle
            yield HttpResponse(response.status_code, dict(response.headers), _apieces(response, deadline))
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()


def _failures(*more: type[Exception]) -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, *more)


def _split(url: str) -> tuple[httpx2.URL, dict[str, bytes]]:
    """The address without its query, and the extension that sends path and query all the same."""
    import httpx2

    whole = httpx2.URL(url)
    return whole.copy_with(query=None), {"target": whole.raw_path}


def _pieces(response: httpx2.Response, deadline: Deadline) -> Iterator[bytes]:
    try:
        for piece in response.iter_bytes():
            yield piece
            if deadline.passed:
                raise deadline.error()
    except _failures() as error:
        raise translate(error, "idle", deadline) from None
    if deadline.passed:  # the end may be that of the broken connection
        raise deadline.error()


async def _apieces(response: httpx2.Response, deadline: Deadline) -> AsyncIterator[bytes]:
    import asyncio

    pieces = aiter(response.aiter_bytes())
    while True:
        try:
            async with asyncio.timeout(deadline.remaining()):
                piece = await anext(pieces, None)
        except _failures(TimeoutError) as error:
            raise translate(error, "idle", deadline) from None
        if piece is None:
            return
        yield piece


def _socket(stream: Any) -> Any:
    return stream.get_extra_info("socket") if stream is not None else None


def _client_options(proxy: str | None, verify: Verify) -> dict[str, Any]:
    """A CA bundle given as a path becomes a context; without one ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` count."""
    context = trusting(os.fspath(verify)) if isinstance(verify, str | os.PathLike) else verify
    options: dict[str, Any] = {"verify": context, "follow_redirects": False}
    if proxy is not None:
        options["proxy"] = proxy
    return options


def trusting(place: str) -> ssl.SSLContext:
    """A context that trusts the certificates in the file or directory ``place``."""
    import ssl

    try:
        if os.path.isdir(place):
            return ssl.create_default_context(capath=place)
        return ssl.create_default_context(cafile=place)
    except OSError as error:  # ssl.SSLError is one
        raise SettingError(
            f"verify: no certificates can be read from {place!r}: {error}",
            details={"key": "verify", "value": place},
            next_actions=("give a PEM file of certificate authorities, or a directory of them",),
        ) from None


def _opened(client: Callable[..., C], options: dict[str, Any]) -> C:
    """A client. What the environment names is read here; its texts may hold a proxy's password and are not repeated."""
    permanent = {"phase": "network", "permanent": True}
    try:
        if options["verify"] is True:
            named = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
            options = {**options, "verify": usual_context(*named)}
        return client(**options)
    except OSError:
        raise NetworkError(
            "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read", details=permanent
        ) from None
    except _failures(ValueError, ImportError):
        raise NetworkError(
            "the proxy cannot be used: its URL is malformed, or of a kind that is not supported", details=permanent
        ) from None


@functools.cache
def usual_context(file: str | None, directory: str | None) -> ssl.SSLContext:
    """The client's own context under this environment, read once: that takes tens of milliseconds, every time."""
    import httpx2

    return httpx2.create_ssl_context()


def _limits(timeouts: Timeouts, deadline: Deadline) -> httpx2.Timeout:
    import httpx2

    connect = deadline.within(timeouts.connect)
    write, read = deadline.within(timeouts.idle), deadline.within(timeouts.first_byte)
    return httpx2.Timeout(write, connect=connect, read=read, pool=connect)


def translate(
    error: Exception, reading: Literal["first_byte", "idle"], deadline: Deadline, url: str = ""
) -> NetworkError:
    """The transport's exception as one of ours; ``reading`` is the phase a read time-out belongs to, ``url`` where a
    request was to go that has no response yet.
    """
    import httpx2

    if deadline.passed:
        return deadline.error()
    text = _ERRNO.sub("", str(error)) or type(error).__name__
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return PhaseTimeout(f"no connection in time: {text}", details={"phase": "connect"})
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return PhaseTimeout(f"the server was silent for too long: {text}", details={"phase": reading})
    permanent = {"phase": "network", "permanent": True}
    if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        # Their texts repeat what was wrong, and that may be a header with a key.
        return NetworkError("the request cannot be sent: its URL or a header is malformed", details=permanent)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return NetworkError(
            f"the server's certificate is not trusted: {text}; name its authority in SSL_CERT_FILE or verify=",
            details=permanent,
        )
    if "WRONG_VERSION_NUMBER" in text:
        return NetworkError(f"the server does not speak TLS: is its address http://? ({text})", details=permanent)
    if _is_refused(error):
        # who starts a server on this machine sees it sooner than the next attempt does
        gone = is_loopback(host_of(url))
        said = "nothing listens there (connection refused)" if gone else "the connection was refused"
        return NetworkError(said, details=permanent if gone else {"phase": "network"})
    return NetworkError(f"the request failed: {text}", details={"phase": "network"})


def _is_refused(error: BaseException | None) -> bool:
    """Whether nobody took the connection; the client's own exceptions stand before the system's."""
    while error is not None and not isinstance(error, ConnectionRefusedError):
        error = error.__cause__ or error.__context__
    return error is not None
