"""The way to the providers against real servers: phases, proxies, certificates, back-pressure, errors without keys."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar

import pytest

from tests.drive.servers import Asked, Authority, Server, falls_silent, forward, head, says
from thinkback.drive.http import Timeouts, Verify
from thinkback.errors import NetworkError, PhaseTimeout, SettingError
from thinkback.gateway import upstream
from thinkback.gateway.upstream import Upstream

KEY = "sk-secret-of-this-test"
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
USUAL = Timeouts()
SHORT = Timeouts(connect=5.0, first_byte=0.1, idle=0.1)

Got: TypeAlias = tuple[int, dict[str, str], bytes]
T = TypeVar("T")
_loops: list[Callable[[], asyncio.AbstractEventLoop] | None] = [None]


@pytest.fixture(autouse=True, params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test runs on both event loops."""
    if request.param == "uvloop":
        _loops.append(pytest.importorskip("uvloop").new_event_loop)
    yield
    del _loops[1:]


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` on the loop of this test."""
    with asyncio.Runner(loop_factory=_loops[-1]) as runner:
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
    """A server in one thread that serves each connection with ``serve``, which gets the socket and its number."""

    def __init__(self, serve: Callable[[socket.socket, int], None]) -> None:
        self._serve = serve
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 256 * 1024)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.connections = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Raw:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(5)

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
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
    ("encoding", "body"), [("br", b"x"), ("gzip", b"not gzip"), ("gzip", gzip.compress(b"a")[:-9])]
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


def test_handshake_that_never_comes_is_a_connection_too_late() -> None:
    """A server that takes the connection and says nothing to TLS."""

    def silent(connection: socket.socket, number: int) -> None:
        while connection.recv(65536):
            pass

    with Raw(silent) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url.replace("http", "https"), Timeouts(connect=0.1))
    assert "connect" == caught.value.details["phase"]


def test_no_limit_is_no_limit() -> None:
    """``None`` everywhere waits for what comes."""
    with Server(says(b"data: 1\n\n")) as server:
        assert b"data: 1\n\n" == post(server.url, Timeouts(None, None, None, None))[2]
        assert b"data: 1\n\n" == post(server.url, Timeouts(None, None, None, 60.0))[2]


def test_server_that_is_not_there() -> None:
    """A refused connection may be tried again; the query is not quoted."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/?key={KEY}"
    with pytest.raises(NetworkError) as caught:
        post(url)
    assert {"phase": "network"} == caught.value.details
    assert KEY not in repr(caught.value) + str(caught.value)


def test_name_that_is_not_known() -> None:
    """No address for the host."""
    with pytest.raises(NetworkError) as caught:
        post(f"http://no-such-host.invalid/?key={KEY}")
    assert "network" == caught.value.details["phase"]
    assert KEY not in str(caught.value)


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


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1/", "http://127.0.0.1:port/", "127.0.0.1/v1", "http:///v1", "http://[/"]
)
def test_address_that_is_none_fails_for_good(url: str) -> None:
    """Trying again cannot help."""
    with pytest.raises(NetworkError) as caught:
        post(f"{url}?key={KEY}")
    assert True is caught.value.details["permanent"]
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("headers", [{"Authorization": f"Bearer {KEY}\nX: y"}, {f"X: {KEY}\r\nY": "z"}, {"X": "\0"}])
def test_header_that_cannot_be_sent_is_not_quoted(headers: dict[str, str]) -> None:
    """The client's own words would repeat the key."""
    with Server(says(b"data: 1\n\n")) as server, pytest.raises(NetworkError) as caught:
        post(server.url, headers=headers)
    assert True is caught.value.details["permanent"]
    assert KEY not in repr(caught.value) + str(caught.value)
    assert caught.value.__context__ is None


def test_private_authority_is_trusted_by_path(authority: Authority) -> None:
    """``verify`` takes a file of certificates, or a context."""
    with Server(says(b"data: 1\n\n"), authority.server) as server:
        assert 200 == post(server.url, verify=str(authority.certificate))[0]
        assert 200 == post(server.url, verify=authority.certificate)[0]
        assert 200 == post(server.url, verify=ssl.create_default_context(cafile=authority.certificate))[0]


def test_ssl_cert_file_is_honoured(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the authority; one that cannot be read is told."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    with Server(says(b"data: 1\n\n"), authority.server) as server:
        assert 200 == post(server.url)[0]
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(NetworkError, match="SSL_CERT_FILE"):
        post("https://127.0.0.1:1/")


def test_stranger_is_not_trusted(authority: Authority) -> None:
    """Without a word for it the certificate is refused, for good; with ``False`` nothing is checked."""
    with Server(says(b"data: 1\n\n"), authority.server) as server:
        with pytest.raises(NetworkError, match="SSL_CERT_FILE") as caught:
            post(server.url)
        assert True is caught.value.details["permanent"]
        assert 200 == post(server.url, verify=False)[0]
    with pytest.raises(SettingError, match=r"nowhere\.pem"):
        Upstream(verify="/nowhere.pem")


@pytest.mark.parametrize("way", ["proxy=", "HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_plain_requests_go_through_the_proxy(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given, or named by the environment."""
    with Server(says(b"data: 1\n\n")) as server, Server(forward) as proxy:
        if way == "proxy=":
            got = post(f"{server.url}/a%2Fb?c", proxy=proxy.url)
        else:
            monkeypatch.setenv(way, proxy.url)
            got = post(f"{server.url}/a%2Fb?c")
    assert b"data: 1\n\n" == got[2]
    assert [f"POST {server.url}/a%2Fb?c HTTP/1.1"] == [asked.line for asked in proxy.asked]
    assert 1 == len(server.asked)


def test_no_proxy_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that the environment excepts."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server(says(b"data: 1\n\n")) as server:
        assert 200 == post(server.url)[0]


@pytest.mark.parametrize("way", ["proxy=", "HTTPS_PROXY"])
def test_tls_goes_through_the_proxy_unread(way: str, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CONNECT; the proxy gets its own password, and never sees the key."""
    with Server(says(b"data: 1\n\n"), authority.server) as server, Server(forward) as proxy:
        named = proxy.url.replace("http://", "http://user:hunter2@")
        if way != "proxy=":
            monkeypatch.setenv(way, named)
        given = named if way == "proxy=" else None
        assert 200 == post(server.url, proxy=given, verify=authority.certificate)[0]
    assert [f"CONNECT {server.address} HTTP/1.1"] == [asked.line for asked in proxy.asked]
    assert "authorization" not in proxy.asked[0].headers
    assert "Basic dXNlcjpodW50ZXIy" == proxy.asked[0].headers["proxy-authorization"]


def test_proxy_that_refuses(authority: Authority) -> None:
    """Its status is told, and neither its password nor the address."""
    refuses = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"

    def refuse(connection: socket.socket, number: int) -> None:
        connection.recv(65536)
        connection.sendall(refuses)

    with Raw(refuse) as proxy, pytest.raises(NetworkError, match="407") as caught:
        post(f"https://127.0.0.1:1/?key={KEY}", proxy=proxy.url.replace("http://", "http://user:hunter2@"))
    assert KEY not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1", b"nothing\r\n\r\n", b"x" * 20_000])
def test_proxy_that_makes_no_sense(said: bytes) -> None:
    """It closes, or says what is no answer."""

    def babble(connection: socket.socket, number: int) -> None:
        connection.recv(65536)
        connection.sendall(said)

    with Raw(babble) as proxy, pytest.raises(NetworkError, match="proxy refused") as caught:
        post("https://127.0.0.1:1/", proxy=proxy.url)
    assert {"phase": "network"} == caught.value.details


def test_proxy_of_a_kind_that_is_not_supported() -> None:
    """It fails for good, without being quoted: it may hold a password."""
    with pytest.raises(NetworkError, match="proxy cannot be used") as caught:
        post("http://127.0.0.1:1/", proxy="gopher://user:hunter2@127.0.0.1")
    assert True is caught.value.details["permanent"]
    assert "hunter2" not in str(caught.value)


def test_connection_is_kept_for_the_next_request() -> None:
    """One connection serves requests that follow each other, while they are read to their ends."""

    def serve(connection: socket.socket, number: int) -> None:
        while asked(connection):
            connection.sendall(OK)

    async def run(url: str) -> None:
        async with opened() as transport:
            for _ in range(3):
                assert b"ok" == (await one(transport, url))[2]

    with Raw(serve) as server:
        in_loop(run(server.url))
        assert 1 == server.connections


def test_kept_connection_that_was_closed_meanwhile_is_replaced() -> None:
    """The server closes when the second request comes and says nothing: it goes again, on a new connection."""

    def serve(connection: socket.socket, number: int) -> None:
        if asked(connection):
            connection.sendall(OK)
        if number == 0:
            asked(connection)

    async def run(url: str) -> None:
        async with opened() as transport:
            for _ in range(2):
                assert b"ok" == (await one(transport, url))[2]

    with Raw(serve) as server:
        in_loop(run(server.url))
        assert 2 == server.connections


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

    async def run(url: str) -> None:
        async with opened() as transport:
            for _ in range(2):
                assert b"ok" == (await one(transport, url))[2]

    with Raw(serve) as server:
        in_loop(run(server.url))
        assert 2 == server.connections
    assert ended.is_set()


@pytest.mark.parametrize("more", [OK, b"x"], ids=["a response", "a byte"])
def test_connection_with_more_than_was_asked_for_is_not_kept(more: bytes) -> None:
    """What comes behind a response must not answer the next request."""

    def serve(connection: socket.socket, number: int) -> None:
        if asked(connection):
            connection.sendall(OK + (more if number == 0 else b""))

    async def run(url: str) -> None:
        async with opened() as transport:
            for _ in range(2):
                assert b"ok" == (await one(transport, url))[2]

    with Raw(serve) as server:
        in_loop(run(server.url))
        assert 2 == server.connections


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
