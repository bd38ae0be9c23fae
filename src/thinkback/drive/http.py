"""HTTP behind a small protocol of ours; the shipped transport is httpx2 (proxies and CA bundles by its own rules).

Keys travel in headers only; no error of this module repeats a header.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from thinkback.errors import NetworkError, PhaseTimeout

if TYPE_CHECKING:
    import ssl

    import httpx2


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
    """POST, with the response's body as an iterator of pieces. Raises ``NetworkError`` or ``PhaseTimeout``."""

    def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractContextManager[HttpResponse]: ...

    def close(self) -> None: ...


class AsyncTransport(Protocol):
    """The same for asyncio."""

    def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[HttpResponse]: ...

    async def aclose(self) -> None: ...


class Httpx2Transport:
    """The sync transport. ``proxy`` and ``verify`` override what the environment says."""

    def __init__(self, proxy: str | None = None, verify: ssl.SSLContext | str | bool = True) -> None:
        self._options = _client_options(proxy, verify)
        self._client: httpx2.Client | None = None

    @contextmanager
    def post(self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts) -> Iterator[HttpResponse]:
        import httpx2

        if self._client is None:
            self._client = httpx2.Client(**self._options)
        request = self._client.build_request("POST", url, headers=headers, content=body, timeout=_timeout(timeouts))
        try:
            response = self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise translate(error, "first_byte") from None
        try:
            request.extensions["timeout"]["read"] = timeouts.idle
            yield HttpResponse(response.status_code, dict(response.headers), _pieces(response))
        finally:
            response.close()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


class AsyncHttpx2Transport:
    """The asyncio transport."""

    def __init__(self, proxy: str | None = None, verify: ssl.SSLContext | str | bool = True) -> None:
        self._options = _client_options(proxy, verify)
        self._client: httpx2.AsyncClient | None = None

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[HttpResponse]:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(**self._options)
        request = self._client.build_request("POST", url, headers=headers, content=body, timeout=_timeout(timeouts))
        try:
            response = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise translate(error, "first_byte") from None
        try:
            request.extensions["timeout"]["read"] = timeouts.idle
            yield HttpResponse(response.status_code, dict(response.headers), _apieces(response))
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _pieces(response: httpx2.Response) -> Iterator[bytes]:
    import httpx2

    try:
        yield from response.iter_bytes()
    except httpx2.HTTPError as error:
        raise translate(error, "idle") from None


async def _apieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    import httpx2

    try:
        async for piece in response.aiter_bytes():
            yield piece
    except httpx2.HTTPError as error:
        raise translate(error, "idle") from None


def _client_options(proxy: str | None, verify: ssl.SSLContext | str | bool) -> dict[str, Any]:
    """A CA bundle given as a path becomes a context; without one ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` count."""
    if isinstance(verify, str):
        import ssl

        verify = ssl.create_default_context(cafile=verify)
    options: dict[str, Any] = {"verify": verify, "follow_redirects": False}
    if proxy is not None:
        options["proxy"] = proxy
    return options


def _timeout(timeouts: Timeouts) -> httpx2.Timeout:
    import httpx2

    return httpx2.Timeout(timeouts.idle, connect=timeouts.connect, read=timeouts.first_byte, pool=timeouts.connect)


def translate(error: Exception, reading: Literal["first_byte", "idle"]) -> NetworkError:
    """The transport's exception as one of ours; ``reading`` is the phase a read time-out belongs to."""
    import httpx2

    text = str(error) or type(error).__name__
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return PhaseTimeout(f"no connection in time: {text}", details={"phase": "connect"})
    if isinstance(error, httpx2.TimeoutException):
        return PhaseTimeout(f"the server was silent for too long: {text}", details={"phase": reading})
    return NetworkError(f"the request failed: {text}", details={"phase": "network"})
