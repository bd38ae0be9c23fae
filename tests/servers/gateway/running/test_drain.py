"""The end of a gateway: what is open goes on for its time, then every client is told in its dialect."""

from __future__ import annotations

import socket

import pytest

from tests.servers.gateway.harness.running import read_all, read_until, request, running
from tests.servers.gateway.harness.standin import EVENT, KEY


def test_an_open_stream_ends_as_it_would_have() -> None:
    """Draining waits for it; nobody new is let in meanwhile."""
    with running(server={"drain_timeout": 20}) as house:
        stream = house.open_chat(do="wait")
        read_until(stream, b'{"n": 0}')
        kept = house.connect()
        kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        read_until(kept, b"ok\n")
        house.drain()
        assert b"" == read_all(kept)  # what is idle is closed
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", house.port), timeout=20)
        house.behind.release.set()
        rest = read_all(stream)
        stream.close()
        kept.close()

    assert b'{"n": 1}' in rest
    assert rest.endswith(b"0\r\n\r\n")
    assert ["whole"] == house.behind.ended
    assert house.behind.closed


def test_a_stream_that_takes_too_long_is_ended_with_an_error_of_its_dialect() -> None:
    """The client reads why, and the response is whole HTTP."""
    with running(server={"drain_timeout": 0.1}) as house:
        stream = house.open_chat(do="hang", started=True)
        read_until(stream, EVENT)
        house.drain()
        rest = read_all(stream)
        stream.close()

    assert b'"error"' in rest
    assert rest.endswith(b"0\r\n\r\n")
    assert ["stopped"] == house.behind.ended


def test_a_request_without_a_byte_yet_is_told_to_come_again() -> None:
    """503 with ``Retry-After``, in the dialect."""
    with running(server={"drain_timeout": 0.1}) as house, house.connect() as waiting:
        waiting.sendall(request(b'{"do": "hang"}', "/v1/messages"))
        house.behind.wait_for(lambda: house.behind.incoming)
        house.drain()
        got = read_all(waiting)

    assert got.startswith(b"HTTP/1.1 503")
    assert b"retry-after" in got
    assert b'"type":"error"' in got


def test_who_asks_again_on_an_open_connection_is_told_so() -> None:
    """A connection that was busy when the end began takes no second request, and readiness is denied on it."""
    with running(server={"drain_timeout": 20}) as house, house.connect() as busy:
        busy.sendall(request(b'{"do": "wait"}'))
        read_until(busy, b'{"n": 0}')
        # it is read behind the stream, which is still open when the end begins
        busy.sendall(f"GET /readyz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode())
        house.drain()
        house.behind.release.set()
        got = read_all(busy)

    assert b'{"n": 1}' in got
    assert b"HTTP/1.1 503" in got
    assert b'"server":"draining"' in got


def test_a_client_that_hangs_does_not_keep_the_gateway() -> None:
    """Neither one that writes no whole request nor one that reads nothing."""
    with running(server={"drain_timeout": 0.1}) as house:
        half = house.connect()
        half.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc")
        deaf = house.open_chat(do="flood", pieces=100_000)
        house.behind.wait_for(lambda: house.behind.incoming)
        house.drain()
        assert read_all(half).startswith((b"", b"HTTP/1.1 408"))
        half.close()

    deaf.close()
    assert house.behind.closed
