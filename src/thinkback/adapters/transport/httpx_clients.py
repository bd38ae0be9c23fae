"""The transport for programs on httpx, the library that httpx2 came from: openai below 3, anthropic below 1, agno.

Promises: a request goes the same way as one of httpx2, and what is raised is httpx's own. httpx is no dependency: the
program that imports this has it. Must not: decide anything about a request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import httpx2

from thinkback.adapters.open_logs import Log
from thinkback.adapters.transport.transports import async_transport_of, transport_of

# Options of a client that are not about connections: what those are is said below.
_CLIENTS_OWN: tuple[str, ...] = (
    "auth",
    "params",
    "headers",
    "cookies",
    "timeout",
    "follow_redirects",
    "max_redirects",
    "event_hooks",
)
_CLIENTS_OWN += ("base_url", "default_encoding")


def _translated(error: httpx2.HTTPError) -> httpx.HTTPError:
    """The error of httpx by that name; its nearest one, where httpx2 has made a new name."""
    kinds = (getattr(httpx, kind.__name__, None) for kind in type(error).__mro__)
    found = next(kind for kind in kinds if kind is not None)
    made = found(str(error))
    assert isinstance(made, httpx.HTTPError)
    return made


@contextmanager
def _raising() -> Iterator[None]:
    try:
        yield
    except httpx2.HTTPError as error:
        raise _translated(error) from error


def _request(request: httpx.Request, content: bytes) -> httpx2.Request:
    """The same request; its body is whole, as the transport must read it."""
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"transfer-encoding"]
    return httpx2.Request(
        request.method, str(request.url), headers=headers, content=content, extensions=dict(request.extensions)
    )


def _answer(response: httpx2.Response, stream: httpx.SyncByteStream | httpx.AsyncByteStream) -> httpx.Response:
    return httpx.Response(
        response.status_code, headers=response.headers.raw, stream=stream, extensions=dict(response.extensions)
    )


class _Body(httpx.SyncByteStream):
    """The body of a response as httpx reads it."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self._response.stream, httpx2.SyncByteStream)
        with _raising():
            yield from self._response.stream

    def close(self) -> None:
        self._response.close()


class _AsyncBody(httpx.AsyncByteStream):
    """The same for asyncio."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        with _raising():
            async for piece in self._response.stream:
                yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


class HttpxTransport(httpx.BaseTransport):
    """Requests of an ``httpx.Client`` go through ``below``, a transport of httpx2 such as ``thinkback.Transport``."""

    def __init__(self, below: httpx2.BaseTransport) -> None:
        self._below = below

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The response to ``request``."""
        with _raising():
            response = self._below.handle_request(_request(request, request.read()))
        return _answer(response, _Body(response))

    def close(self) -> None:
        """Close what is below."""
        self._below.close()


class AsyncHttpxTransport(httpx.AsyncBaseTransport):
    """As ``HttpxTransport``, for asyncio."""

    def __init__(self, below: httpx2.AsyncBaseTransport) -> None:
        self._below = below

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response to ``request``."""
        with _raising():
            response = await self._below.handle_async_request(_request(request, await request.aread()))
        return _answer(response, _AsyncBody(response))

    async def aclose(self) -> None:
        """Close what is below."""
        await self._below.aclose()


def httpx_client(log: Log, **options: Any) -> httpx.Client:
    """``thinkback.http_client`` for an SDK that stands on httpx; its ``options``, and those of ``httpx.Client``."""
    own, below = _parted(options)
    return httpx.Client(transport=HttpxTransport(transport_of(log, **below)), **{"follow_redirects": True, **own})


def async_httpx_client(log: Log, **options: Any) -> httpx.AsyncClient:
    """The same for asyncio."""
    own, below = _parted(options)
    made = AsyncHttpxTransport(async_transport_of(log, **below))
    return httpx.AsyncClient(transport=made, **{"follow_redirects": True, **own})


def _parted(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the client, and those of the transport below it."""
    own = {name: options[name] for name in _CLIENTS_OWN if name in options}
    return own, {name: value for name, value in options.items() if name not in own}
