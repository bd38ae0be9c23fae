"""Responses of real servers: framing, phases, and errors without a key; on both event loops."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from tests.drive.servers import Asked, Server, falls_silent, head, says
from tests.servers.gateway.harness.upstreams import HEADERS, KEY, OK, SHORT, USUAL, in_loop, one, opened, post
from thinkback.drive.http import Timeouts
from thinkback.errors import NetworkError, PhaseTimeout

pytestmark = pytest.mark.usefixtures("either_loop")


def test_response_comes_through() -> None:
    """Status, headers in lower case, and the body; the request is what was given."""
    with Server(says(b"data: 1\n\n", b"data: 2\n\n", status=418)) as server:
        status, headers, body = post(server.url)
    assert (418, "text/event-stream", b"data: 1\n\ndata: 2\n\n") == (status, headers["content-type"], body)
    assert ("POST / HTTP/1.1", b"{}") == (server.asked[0].line, server.asked[0].body)
    assert f"Bearer {KEY}" == server.asked[0].headers["authorization"]


def test_request_has_no_more_headers_than_it_needs() -> None:
    """What the client library would add says nothing to a provider."""
    with Server(says(b"{}")) as server:
        post(server.url)
    assert {"host", "authorization", "content-type", "content-length"} == set(server.asked[0].headers)


def test_address_is_sent_as_it_is() -> None:
    """Nothing is encoded, decoded or put in order."""
    path = "/v1/models/a%2Fb:stream?alt=sse&key=%7E~a+b%20c&empty="
    with Server(says(b"{}")) as server:
        post(server.url + path)
    assert f"POST {path} HTTP/1.1" == server.asked[0].line


def test_large_body_is_sent_whole() -> None:
    """Some megabytes, without a warning."""
    body = b"x" * 3_000_000
    with Server(says(b"{}")) as server:
        post(server.url, body=body)
    assert body == server.asked[0].body


def test_header_that_comes_twice_is_joined() -> None:
    """By a comma, as HTTP has it."""
    twice = b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\ncontent-length: 0\r\n\r\n"
    with Server(lambda server, asked: [twice]) as server:
        assert "1, 2" == post(server.url)[1]["x-a"]


@pytest.mark.parametrize("framing", ["length", "chunked", "end"])
def test_every_framing_is_read(framing: str) -> None:
    """A body by its length, in chunks with a trailer, or to the connection's end."""
    heads = {"length": "content-length: 10\r\n", "chunked": "transfer-encoding: chunked\r\n", "end": ""}
    body = {"chunked": b"4;x=y\r\n0123\r\n6\r\n456789\r\n0\r\nx-trailer: 1\r\n\r\n"}.get(framing, b"0123456789")
    with Server(lambda server, asked: [f"HTTP/1.1 200 OK\r\n{heads[framing]}\r\n".encode(), body]) as server:
        assert b"0123456789" == post(server.url)[2]


def test_preliminary_responses_are_passed_over() -> None:
    """103 is not the response."""
    early = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    with Server(lambda server, asked: [early + OK]) as server:
        assert (200, b"ok") == post(server.url)[::2]


def test_compressed_body_is_read() -> None:
    """Though nobody asked for it."""
    packed = gzip.compress(b"data: 1\n\n" * 1000)
    start = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(packed)}\r\n\r\n".encode()
    with Server(lambda server, asked: [start, packed[:20], packed[20:]]) as server:
        assert b"data: 1\n\n" * 1000 == post(server.url)[2]


def test_compressed_body_is_unpacked_a_piece_at_a_time() -> None:
    """A few bytes that mean very many do not fill the memory."""
    packed = gzip.compress(b"0" * 50_000_000)
    start = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(packed)}\r\n\r\n".encode()

    async def run(url: str) -> list[int]:
        async with opened() as transport, transport.post(url, HEADERS, b"{}", USUAL) as response:
            return [len(piece) async for piece in response.body]

    with Server(lambda server, asked: [start + packed]) as server:
        sizes = in_loop(run(server.url))
    assert (50_000_000, True) == (sum(sizes), max(sizes) <= 2**20)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("br", b"x"),
        ("gzip", b"not gzip"),
        ("gzip", gzip.compress(b"a", mtime=0) + b"b"),
        ("gzip", gzip.compress(b"a", mtime=0)[:-9]),
    ],
)
def test_body_that_cannot_be_unpacked(encoding: str, body: bytes) -> None:
    """In a way that nobody asked for, broken, or cut."""
    start = f"HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with (
        Server(lambda server, asked: [start, body]) as server,
        pytest.raises(NetworkError, match=r"compressed|unpacked"),
    ):
        post(server.url)


def test_head_without_end() -> None:
    """It is not read for ever."""

    def endless(server: Server, asked: Asked) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n"
        while True:
            yield b"x: " + b"y" * 1000 + b"\r\n"

    with Server(endless) as server, pytest.raises(NetworkError, match="too long"):
        post(server.url)
    assert server.dropped.wait(5)


def test_protocol_is_not_changed() -> None:
    """A server that wants to speak something else is not followed."""
    switching = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"
    with Server(lambda server, asked: [switching]) as server, pytest.raises(NetworkError):
        post(server.url)


def test_length_and_chunks_at_once_are_refused() -> None:
    """Two parties would read two different bodies."""
    both = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    with Server(lambda server, asked: [both]) as server, pytest.raises(NetworkError):
        post(server.url)


def test_password_of_the_address_is_sent_as_a_header() -> None:
    """And not where a header says otherwise."""
    with Server(says(b"{}")) as server:
        url = server.url.replace("http://", "http://user:hunt%65r2@")
        post(url)
        post(url, headers={})
        post(url, headers={"Host": "another.example"})
    sent = [asked.headers.get("authorization") for asked in server.asked]
    assert [f"Bearer {KEY}", "Basic dXNlcjpodW50ZXIy", "Basic dXNlcjpodW50ZXIy"] == sent
    assert [server.address, server.address, "another.example"] == [asked.headers["host"] for asked in server.asked]


def test_framing_is_not_the_callers() -> None:
    """Headers that say where a request ends are ours alone."""
    with Server(says(b"{}")) as server:
        post(server.url, headers={"Content-Length": "7", "Transfer-Encoding": "chunked", "Connection": "close"})
    assert {"host": server.address, "content-length": "2"} == server.asked[0].headers


def test_redirect_is_not_followed() -> None:
    """A key must not travel to where a server points."""
    moved = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    with Server(lambda server, asked: [moved]) as server:
        assert 302 == post(server.url)[0]


def test_cookies_and_netrc_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """What one response sets is not sent with the next request."""
    with open(f"{tmp_path}/netrc", "w") as file:
        file.write("machine 127.0.0.1 login user password hunter2\n")
    monkeypatch.setenv("NETRC", f"{tmp_path}/netrc")
    set_cookie = b"HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n"

    async def run(url: str) -> None:
        async with opened() as transport:
            await one(transport, url)
            async with transport.post(url, {}, b"{}", USUAL):
                pass

    with Server(lambda server, asked: [set_cookie]) as server:
        in_loop(run(server.url))
    assert [] == [name for asked in server.asked for name in asked.headers if name == "cookie"]
    assert "authorization" not in server.asked[1].headers


def test_silence_before_the_head() -> None:
    """The first byte has its own time-out."""
    with Server(falls_silent()) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url, SHORT)
    assert "first_byte" == caught.value.details["phase"]


def test_silence_within_the_body() -> None:
    """Between two pieces the idle time-out counts, not that of the first byte."""
    timeouts = Timeouts(first_byte=60.0, idle=0.1)
    with Server(falls_silent(head(), b"data: 1\n\n")) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url, timeouts)
    assert "idle" == caught.value.details["phase"]


@pytest.mark.parametrize("pieces", [(), (head(),), (head(), b"data: 1\n\n")], ids=["no head", "no body", "a piece"])
def test_whole_time_counts_also_while_the_server_is_silent(pieces: tuple[bytes, ...]) -> None:
    """However long the phases may be, the total ends the request."""
    timeouts = Timeouts(connect=60.0, first_byte=60.0, idle=60.0, total=0.2)
    with Server(falls_silent(*pieces)) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url, timeouts)
    assert "total" == caught.value.details["phase"]
    assert "0.2 s" in caught.value.message


def test_whole_time_counts_while_the_server_drips() -> None:
    """A server that always says something, and never the end."""

    def drip(server: Server, asked: Asked) -> Iterator[bytes]:
        yield head()
        while not server._stopping.wait(0.02):
            yield b": keep-alive\n\n"

    with Server(drip) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url, Timeouts(total=0.2))
    assert "total" == caught.value.details["phase"]


def test_no_limit_is_no_limit() -> None:
    """``None`` everywhere waits for what comes."""
    with Server(says(b"data: 1\n\n")) as server:
        assert b"data: 1\n\n" == post(server.url, Timeouts(None, None, None, None))[2]
        assert b"data: 1\n\n" == post(server.url, Timeouts(None, None, None, 60.0))[2]


@pytest.mark.parametrize("kind", ["length", "chunked"])
def test_connection_that_breaks(kind: str) -> None:
    """A body that ends before its end is a network failure, not a short body."""
    heads = {"length": head(length=100), "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"}
    pieces = [heads[kind], b"9\r\ndata: 1\n\n\r\n"]
    with Server(lambda server, asked: pieces) as server, pytest.raises(NetworkError) as caught:
        post(server.url)
    assert {"phase": "network"} == caught.value.details


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 200 OK\r\ncontent-le", b"not http at all\r\n\r\n", b"\x16\x03\x01\x00\x00"]
)
def test_head_that_is_none(said: bytes) -> None:
    """A head that is cut, or that is not one."""
    with Server(lambda server, asked: [said]) as server, pytest.raises(NetworkError) as caught:
        post(f"{server.url}/?key={KEY}")
    assert "network" == caught.value.details["phase"]
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("headers", [{"Authorization": f"Bearer {KEY}\nX: y"}, {f"X: {KEY}\r\nY": "z"}, {"X": "\0"}])
def test_header_that_cannot_be_sent_is_not_quoted(headers: dict[str, str]) -> None:
    """The client's own words would repeat the key."""
    with Server(says(b"data: 1\n\n")) as server, pytest.raises(NetworkError) as caught:
        post(server.url, headers=headers)
    assert True is caught.value.details["permanent"]
    assert KEY not in repr(caught.value) + str(caught.value)
    assert caught.value.__context__ is None
