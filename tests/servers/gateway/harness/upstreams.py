"""What the tests of the way to the providers share: one request, raw servers, and a choice of event loops."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from thinkback.drive.http import Timeouts, Verify
from thinkback.servers.gateway.upstreams.upstream import Upstream

KEY = "sk-secret-of-this-test"
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
USUAL = Timeouts()
SHORT = Timeouts(connect=5.0, first_byte=0.1, idle=0.1)

Got: TypeAlias = tuple[int, dict[str, str], bytes]
T = TypeVar("T")
LOOPS: list[Callable[[], asyncio.AbstractEventLoop] | None] = [None]


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` on the loop of this test."""
    with asyncio.Runner(loop_factory=LOOPS[-1]) as runner:
        return runner.run(work)


@asynccontextmanager
async def opened(proxy: str | None = None, verify: Verify = True) -> AsyncIterator[Upstream]:
    transport = Upstream(proxy, verify)
    try:
        yield transport
    finally:
        await transport.aclose()


async def one(transport: Upstream, url: str, timeouts: Timeouts = USUAL, body: bytes = b"{}") -> Got:
    async with transport.post(url, HEADERS, body, timeouts) as response:
        return response.status, response.headers, b"".join([piece async for piece in response.body])


def post(
    url: str,
    timeouts: Timeouts = USUAL,
    proxy: str | None = None,
    verify: Verify = True,
    headers: dict[str, str] = HEADERS,
    body: bytes = b"{}",
) -> Got:
    """One request on a transport of its own."""

    async def run() -> Got:
        async with opened(proxy, verify) as transport, transport.post(url, headers, body, timeouts) as response:
            return response.status, response.headers, b"".join([piece async for piece in response.body])

    return in_loop(run())


class Raw:
    """A server that serves each connection with ``serve``, which gets the socket and its number.

    As many at once as there are ``threads``.
    """

    def __init__(self, serve: Callable[[socket.socket, int], None], threads: int = 1) -> None:
        self._serve = serve
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 256 * 1024)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.connections = 0
        self._counting = threading.Lock()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]

    def __enter__(self) -> Raw:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(5)

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with self._counting:
                number, self.connections = self.connections, self.connections + 1
            with connection:
                connection.settimeout(5)
                self._serve(connection, number)


def asked(connection: socket.socket) -> bytes:
    """One request, head and body; nothing where the client closed."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    first, _, body = data.partition(b"\r\n\r\n")
    lines = first.lower().split(b"\r\n")
    length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65536)
    return first + b"\r\n\r\n" + body


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
