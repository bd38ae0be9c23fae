"""A socket that is listened at, by uvicorn's protocol on a loop of one's own, until it is drained.

Promises: after ``drain`` nothing is open; responses that ended in time are whole, the others ended as their dialect
ends with an error.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from email.utils import formatdate
from typing import Any, Protocol

from uvicorn import Config as Uvicorn
from uvicorn.server import ServerState

from thinkback.errors import NetworkError
from thinkback.servers.gateway.config.schema import Server
from thinkback.servers.gateway.http.connections import KEEP_ALIVE, Connection
from thinkback.servers.gateway.telemetry.logs import Bridge, Log

BACKLOG = 2048
GRACE = 5.0
"""Seconds that responses which are ended from here have for their last words."""
LAST_BYTES = 1.0
"""Seconds for what is written to reach clients."""
FIRST_WORDS = 1.0
"""Seconds that a connection without a request has, when the end begins, to send one and be told."""
_STEP = 0.01


class Served(Protocol):
    """An ASGI application that is told when to end: ``leave`` is not ready, ``drain`` takes no new requests, ``stop``
    ends what is open.
    """

    def leave(self) -> None: ...

    def drain(self) -> None: ...

    def stop(self) -> None: ...

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...


def _shut_down(connections: Sequence[Connection]) -> None:
    for connection in connections:
        connection.shutdown()


def bind(server: Server, by: str = "--port") -> socket.socket:
    """The socket to listen at, whose port is chosen ``by`` an option or a key. Raises ``NetworkError`` (``details``:
    the system's ``errno``).
    """
    host = server.host.strip("[]")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, server.port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(BACKLOG)
        except OSError:
            made.close()
            raise
    except OSError as error:
        raise NetworkError(
            f"the gateway cannot listen on {host}:{server.port}: {error.strerror}",
            details={"errno": error.errno},
            next_actions=(f"choose another port with {by}", "or see what listens there already"),
        ) from None
    made.setblocking(False)
    return made


def address_of(sock: socket.socket) -> str:
    """The URL at which ``sock`` is reached from this machine."""
    host, port = sock.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class Listener:
    """Serves ``app`` at a socket. ``limits`` are those of the configuration in force."""

    def __init__(self, app: Served, limits: Callable[[], Server], log: Log) -> None:
        self._app, self._limits = app, limits
        self._state = ServerState()
        self._uvicorn = Uvicorn(
            app,
            interface="asgi3",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE,
        )
        self._uvicorn.load()
        _quiet(log)
        self._server: asyncio.Server | None = None
        self._tick: asyncio.TimerHandle | None = None

    async def open(self, sock: socket.socket) -> None:
        """Begin to accept."""
        self._date()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._uvicorn, self._state, self._limits), sock=sock, backlog=BACKLOG
        )

    async def leave(self, seconds: float, hurry: asyncio.Event) -> None:
        """Say that no more requests should be sent here, and serve on for ``seconds``, or until ``hurry`` is set."""
        self._app.leave()
        if seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await hurry.wait()

    async def drain(self, seconds: float) -> None:
        """Accept nothing more, let what is open end within ``seconds``, then end it; all connections are closed.

        Who was accepted and has not asked yet has a moment to do so, and is told to ask elsewhere.
        """
        assert self._server is not None
        await asyncio.sleep(0)  # who waits to be accepted by now is; who comes later is refused by the system
        self._app.drain()
        self._server.close()
        new = [each for each in self._state.connections if isinstance(each, Connection) and each.is_new]
        for connection in list(self._state.connections):
            if connection not in new:
                connection.shutdown()
        asyncio.get_running_loop().call_later(min(FIRST_WORDS, seconds), _shut_down, new)
        if not await self._over(seconds):
            self._app.stop()
            await self._over(GRACE)
        for task in list(self._state.tasks):
            task.cancel()
        await self._over(LAST_BYTES)
        for connection in list(self._state.connections):
            connection.transport.abort()
        await self._over(LAST_BYTES)
        if self._tick is not None:
            self._tick.cancel()

    async def _over(self, seconds: float) -> bool:
        """Whether every request and connection ended within ``seconds``."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._state.tasks or self._state.connections:
            if loop.time() >= until:
                return False
            await asyncio.sleep(_STEP)
        return True

    def _date(self) -> None:
        """Every second has a date."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        self._tick = asyncio.get_running_loop().call_later(1.0, self._date)


class _Failures(logging.Filter):
    """Only what broke: clients that speak no HTTP, or leave, are told of by their own lines."""

    def filter(self, record: logging.LogRecord) -> bool:
        return bool(record.exc_info)


def _quiet(log: Log) -> None:
    """uvicorn's and asyncio's own words go to our log."""
    for name in ("uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.handlers = [Bridge(log)]
        logger.filters = [_Failures()] if name == "uvicorn.error" else []
