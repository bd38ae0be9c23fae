"""Connections: kept or closed, read no faster than they are taken; on both event loops."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.drive.servers import Asked, Server, head
from tests.servers.gateway.harness.upstreams import HEADERS, OK, USUAL, Raw, asked, in_loop, one, opened, post
from thinkback.errors import NetworkError
from thinkback.servers.gateway.upstreams import upstream
from thinkback.servers.gateway.upstreams.upstream import Upstream

pytestmark = pytest.mark.usefixtures("either_loop")


def connections_of(requests: int, serve: Callable[[socket.socket, int], None]) -> int:
    """How many connections a server sees of requests that follow each other and are all answered."""

    async def run(url: str) -> None:
        async with opened() as transport:
            for _ in range(requests):
                assert b"ok" == (await one(transport, url))[2]

    with Raw(serve) as server:
        in_loop(run(server.url))
        return server.connections


def test_connection_is_kept_for_the_next_request() -> None:
    """One connection serves requests that follow each other, while they are read to their ends."""

    def serve(connection: socket.socket, number: int) -> None:
        while asked(connection):
            connection.sendall(OK)

    assert 1 == connections_of(3, serve)


def test_kept_connection_that_was_closed_meanwhile_is_replaced() -> None:
    """The server closes when the second request comes and says nothing: it goes again, on a new connection."""

    def serve(connection: socket.socket, number: int) -> None:
        if asked(connection):
            connection.sendall(OK)
        if number == 0:
            asked(connection)

    assert 2 == connections_of(2, serve)


def test_connection_that_was_idle_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is between may have forgotten it; it is closed."""
    monkeypatch.setattr(upstream, "_IDLE", 0.0)
    ended = threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        asked(connection)
        connection.sendall(OK)
        if number == 0:
            with suppress(ConnectionResetError):
                connection.recv(1)
            ended.set()

    assert 2 == connections_of(2, serve)
    assert ended.is_set()


@pytest.mark.parametrize("more", [OK, b"x"], ids=["a response", "a byte"])
def test_connection_with_more_than_was_asked_for_is_not_kept(more: bytes) -> None:
    """What comes behind a response must not answer the next request."""

    def serve(connection: socket.socket, number: int) -> None:
        if asked(connection):
            connection.sendall(OK + (more if number == 0 else b""))

    assert 2 == connections_of(2, serve)


def test_new_connection_that_is_closed_is_not_tried_again() -> None:
    """The server may have begun; that is the turn's business."""

    def serve(connection: socket.socket, number: int) -> None:
        asked(connection)

    with Raw(serve) as server:
        with pytest.raises(NetworkError) as caught:
            post(server.url)
        assert {"phase": "network"} == caught.value.details
        assert 1 == server.connections


def test_kept_connection_that_broke_within_a_response_is_not_tried_again() -> None:
    """A byte of a response came: the server had begun."""

    def serve(connection: socket.socket, number: int) -> None:
        asked(connection)
        connection.sendall(OK)
        asked(connection)
        connection.sendall(b"HTTP/1.1 2")

    async def run(url: str) -> None:
        async with opened() as transport:
            await one(transport, url)
            with pytest.raises(NetworkError):
                await one(transport, url)

    with Raw(serve) as server:
        in_loop(run(server.url))
        assert 1 == server.connections


def test_slow_reader_slows_the_server() -> None:
    """The upstream's socket is not read while nobody takes what came; then all of it comes."""
    size, piece = 48 * 1024 * 1024, b"x" * 65536
    sent, stalled = 0, threading.Event()

    def serve(connection: socket.socket, number: int) -> None:
        nonlocal sent
        asked(connection)
        connection.sendall(f"HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n".encode())
        connection.settimeout(0.3)
        while sent < size:
            try:
                sent += connection.send(piece[: size - sent])
            except TimeoutError:
                stalled.set()

    async def run(url: str) -> int:
        got = 0
        async with opened() as transport, transport.post(url, HEADERS, b"{}", USUAL) as response:
            async for data in response.body:
                if not got:
                    assert await asyncio.to_thread(stalled.wait, 10)
                    assert sent < size / 4
                assert len(data) <= 1024 * 1024
                got += len(data)
        return got

    with Raw(serve) as server:
        assert size == in_loop(run(server.url))


@pytest.mark.parametrize("when", ["before the head", "within the body", "while the server stalls"])
def test_cancelled_request_closes_its_connection_at_once(when: str) -> None:
    """The server sees the end while the client's loop goes on."""
    closed, began = threading.Event(), threading.Event()
    request = b"x" * (50_000_000 if when == "while the server stalls" else 2)

    def serve(connection: socket.socket, number: int) -> None:
        if when == "while the server stalls":
            connection.recv(1000)
        else:
            asked(connection)
        if when == "within the body":
            connection.sendall(head() + b"data: 1\n\n")
        began.set()
        try:
            while connection.recv(65536):
                if when == "while the server stalls":
                    assert gone.wait(10)
        except ConnectionResetError:
            pass
        closed.set()

    gone = threading.Event()

    async def run(url: str) -> None:
        async with opened() as transport:
            task = asyncio.create_task(one(transport, url, body=request))
            assert await asyncio.to_thread(began.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            gone.set()
            assert await asyncio.to_thread(closed.wait, 5)

    with Raw(serve) as server:
        in_loop(run(server.url))


def test_reader_that_leaves_closes_the_connection() -> None:
    """Leaving the context in the middle of the body; the connection serves nobody else."""

    def endless(server: Server, asked: Asked) -> Iterator[bytes]:
        yield head()
        while True:
            yield b"data: 1\n\n" * 1000

    async def run(server: Server) -> None:
        async with opened() as transport:
            async with transport.post(server.url, HEADERS, b"{}", USUAL) as response:
                await anext(response.body)
            assert await asyncio.to_thread(server.dropped.wait, 5)

    with Server(endless) as server:
        in_loop(run(server))


def test_transport_that_was_never_used_is_closed_too() -> None:
    """Nothing was opened."""
    in_loop(Upstream().aclose())


def test_connections_that_nobody_needs_any_more_are_closed() -> None:
    """Many at once, then one after the other: those that were idle for long go, the one in use stays."""
    together, ended = threading.Barrier(3), threading.Semaphore(0)

    def serve(connection: socket.socket, number: int) -> None:
        asked(connection)
        together.wait(5)
        connection.sendall(OK)
        with suppress(ConnectionResetError):
            while asked(connection):
                connection.sendall(OK)
        ended.release()

    async def run(url: str) -> None:
        async with opened() as transport:
            await asyncio.gather(*(one(transport, url) for _ in range(3)))
            (waiting,) = transport._idle.values()
            for connection in list(waiting)[:2]:
                connection.idle_since -= 60
            await one(transport, url)
            assert await asyncio.to_thread(ended.acquire, True, 5)
            assert await asyncio.to_thread(ended.acquire, True, 5)
            await one(transport, url)
            assert not ended.acquire(blocking=False)

    with Raw(serve, threads=3) as server:
        in_loop(run(server.url))
        assert 3 == server.connections
