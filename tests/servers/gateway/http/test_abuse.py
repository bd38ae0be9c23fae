"""Connections that mean no good: everything is refused or served, within bounds, and the next client is served."""

from __future__ import annotations

import gzip
import os
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.gateway.harness.running import Running, read_all, read_until, request, running
from tests.servers.gateway.harness.standin import EVENT, KEY, PIECE
from thinkback.servers.gateway.http.body import DEEPEST, too_deep
from thinkback.servers.gateway.http.connections import IDLE

KEEP = {"header_timeout": 0.3, "body_timeout": 0.3, "max_body": 4096, "write_timeout": 0.5}


@pytest.fixture(scope="module")
def house() -> Iterator[Running]:
    """A gateway that waits for nobody."""
    with running(server=KEEP) as made:
        yield made


@pytest.fixture(autouse=True)
def serves(house: Running) -> Iterator[None]:
    """Whatever a client did, the next one is served."""
    yield
    assert 200 == house.chat().status


HEAD = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n".encode()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x01\x02 nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"400"),
        (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"403"),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: -5\r\n\r\n", b"400"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (HEAD + b"Bad Header: x\r\n\r\n", b"400"),
        (HEAD + b"X-A: b\x00c\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 200_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 66_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 300 + b"\r\n", b"431"),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"414"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    ],
)
def test_what_is_no_request_is_refused(house: Running, data: bytes, status: bytes) -> None:
    """With a status, as JSON, and the connection is over."""
    got = house.raw(data)

    assert status == got.split(b" ", 2)[1], got[:200]
    assert b'"error"' in got


def test_an_upgrade_is_not_followed(house: Running) -> None:
    """Java's client offers HTTP/2 with each first request: it is answered as any other, and the next one as well."""
    offers = request(b'{"do": "echo"}', Connection="Upgrade, HTTP2-Settings", Upgrade="h2c", HTTP2_Settings="AAE")
    with house.connect() as connection:
        for _ in range(2):
            connection.sendall(offers)
            assert read_until(connection, b"}").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("data", [b"", b"\r\n", b"GE", b"GET / HTTP/1.1\r\nHost: loc", b"GET / HTTP/1.1\r\n" * 1])
def test_a_head_that_does_not_come_is_not_waited_for(house: Running, data: bytes) -> None:
    """Slow-loris: nothing keeps a connection open but a whole head."""
    got = house.raw(data)

    assert b"" == got if not data else got.startswith(b"HTTP/1.1 408")


def test_a_body_that_does_not_come_is_not_waited_for(house: Running) -> None:
    """A slow body ends like a slow head, in the client's dialect."""
    with house.connect() as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        got = read_until(connection, b"did not arrive")

    assert got.startswith(b"HTTP/1.1 408")


def test_a_body_may_trickle_only_so_long(house: Running) -> None:
    """Single bytes do not buy time."""
    with house.connect() as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n")
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

        sender = threading.Thread(target=trickle)
        sender.start()
        got = read_until(connection, b"did not arrive")
        stop.set()
        sender.join()

    assert got.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("told", [True, False])
def test_a_body_that_is_too_large_is_refused_and_its_client_hears_of_it(house: Running, told: bool) -> None:
    """Whether its length is told or it comes in chunks; a client that is still writing can read the refusal."""
    body = b" " * 1_000_000
    if told:
        data = request(body)
    else:
        data = HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    got = house.raw(data)

    assert got.startswith(b"HTTP/1.1 413")
    assert b"larger than 4096 bytes" in got


def test_a_bomb_is_unpacked_no_further_than_the_limit(house: Running) -> None:
    """A gigabyte in a megabyte of gzip is refused at its first kilobytes."""
    bomb = gzip.compress(b" " * 50_000_000)[:4095]
    reply = house.ask("/v1/chat/completions", bomb, headers={"content-encoding": "gzip"})

    assert 413 == reply.status


def test_whoever_has_no_key_writes_no_body(house: Running) -> None:
    """The key is looked at first; what was to be written is not kept."""
    with house.connect() as connection:
        connection.sendall(HEAD.replace(KEY.encode(), b"tb-none") + b"Content-Length: 4000\r\n\r\n" + b"a" * 100)
        got = read_until(connection, b"\r\n\r\n")

    assert got.startswith(b"HTTP/1.1 401")


def test_pipelined_requests_are_answered_in_order(house: Running) -> None:
    """Several requests in one piece."""
    with house.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        got = read_until(connection, b"ok\n")
        while got.count(b"ok\n") < 3:
            got += connection.recv(65_536)

    assert 3 == got.count(b"HTTP/1.1 200")


def test_a_client_that_leaves_ends_its_request(house: Running) -> None:
    """While it waits for the first byte, and behind it."""
    for started in (False, True):
        ended = len(house.behind.ended)
        asked = len(house.behind.incoming)
        connection = house.open_chat(do="hang", started=started)
        house.behind.wait_for(lambda asked=asked: len(house.behind.incoming) > asked)
        if started:
            read_until(connection, EVENT)
        connection.close()
        house.behind.wait_for(lambda ended=ended: len(house.behind.ended) > ended)
        assert "cancelled" == house.behind.ended[-1]


def test_a_client_that_does_not_read_is_let_go_and_costs_little(house: Running) -> None:
    """What is written ahead is bounded by the buffers of the connection; then the client has had its time."""
    ended = len(house.behind.ended)
    house.behind.written = 0
    connection = house.open_chat(do="flood", pieces=100_000)
    try:
        house.behind.wait_for(lambda: len(house.behind.ended) > ended)
        assert house.behind.ended[-1] in ("cancelled", "gone")
        assert house.behind.written < 32 * 2**20
    finally:
        connection.close()


def test_a_client_that_reads_gets_everything(house: Running) -> None:
    """Back-pressure loses nothing."""
    with house.open_chat(do="flood", pieces=100) as connection:
        got = read_until(connection, b"\r\n0\r\n\r\n")

    assert 100 * PIECE.count(b"data: ") == got.count(b"data: ")


def test_a_stream_that_breaks_does_not_seem_whole(house: Running) -> None:
    """The last chunk of HTTP is missing where the response is not whole."""
    with house.open_chat(do="break", started=True) as connection:
        got = read_all(connection)

    assert got.startswith(b"HTTP/1.1 200")
    assert not got.endswith(b"0\r\n\r\n")


def test_too_many_connections_are_told_to_come_again() -> None:
    """One too many hears why; health is still told."""
    with running(server={"max_connections": 2}) as small:
        held = [small.connect() for _ in range(2)]
        try:
            for connection in held:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                read_until(connection, b"ok\n")
            assert 503 == small.chat().status
            assert "retry-after" in small.chat().headers
            assert 200 == small.ask("/healthz").status
        finally:
            for connection in held:
                connection.close()


@given(st.binary(max_size=200), st.integers(0, 400))
def test_no_bytes_break_the_server(house: Running, data: bytes, cut: int) -> None:
    """Noise in place of a request, inside one, and behind a part of one."""
    whole = request(b'{"do": "echo"}')
    with socket.create_connection(("127.0.0.1", house.port), timeout=20) as connection:
        connection.sendall(whole[:cut] + data + whole[cut:])
        connection.shutdown(socket.SHUT_WR)
        got = read_all(connection)

    assert b"HTTP/1.1 5" not in got
    assert b"Traceback" not in got


JSONS = st.recursive(
    st.none() | st.text(alphabet='a"\\[]{}\u00e9\n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='"\\[{', max_size=3), inner, max_size=3)
    ),
    max_leaves=30,
)


@given(JSONS, st.integers(0, 300), st.booleans())
def test_depth_is_counted_outside_texts_alone(value: object, levels: int, escape: bool) -> None:
    """The check by passes over the bytes agrees with counting."""
    import json

    def depth(of: object) -> int:
        inner = of.values() if isinstance(of, dict) else of if isinstance(of, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    found = depth(value) + levels
    text = "[" * levels + json.dumps(value, ensure_ascii=escape) + "]" * levels

    assert (found > DEEPEST) == too_deep(text.encode())


def test_a_million_brackets_are_counted_without_recursion() -> None:
    """Neither deep nor unbalanced nor within a text does it take long."""
    assert too_deep(b"[" * 1_000_000)
    assert too_deep(b"[" * 500_000 + b"]" * 500_000)
    assert not too_deep(b'["' + b"[" * 1_000_000 + b'"]')
    assert not too_deep(b"[" + b",".join([b"{}"] * 100_000) + b"]")


def test_open_files_do_not_grow(house: Running) -> None:
    """Connections that were cut leave no file behind."""

    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    house.chat()
    before = files()
    for _ in range(50):
        house.raw(b"nonsense\r\n\r\n")
    house.chat()

    assert files() <= before + 4


def test_no_address_holds_all_connections_idle() -> None:
    """The oldest that does nothing ends; others that came later are served."""
    with running(server={"max_connections": 100, "header_timeout": 600}) as gateway:
        held = [gateway.connect()]
        gateway.chat()  # connections that are accepted at once are of the same age
        held += [gateway.connect() for _ in range(IDLE)]
        for _ in range(3):  # a connection of before whose end is not known yet may be the oldest
            gateway.chat()
            held.append(gateway.connect())
        try:
            assert b"" == held[0].recv(1)
            assert 200 == gateway.chat().status
        finally:
            for connection in held:
                connection.close()
