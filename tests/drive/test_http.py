"""The transports against real servers: phases of time-outs, proxies, certificates, and errors without a key."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias

import httpx2
import pytest

from tests.drive.servers import Authority, Server, falls_silent, forward, head, says
from thinkback.drive.deadline import Deadline
from thinkback.drive.http import (
    AsyncHttpx2Transport,
    HttpResponse,
    Httpx2Transport,
    Timeouts,
    Verify,
    translate,
    usual_context,
)
from thinkback.drive.resting import resting
from thinkback.errors import NetworkError, PhaseTimeout, SettingError

KEY = "sk-secret-of-this-test"
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
USUAL = Timeouts()
SHORT = Timeouts(connect=5.0, first_byte=0.1, idle=0.1)

Got: TypeAlias = tuple[int, dict[str, str], bytes]


def post_sync(url: str, timeouts: Timeouts, proxy: str | None, verify: Verify, headers: dict[str, str]) -> Got:
    transport = Httpx2Transport(proxy, verify)
    try:
        with transport.post(url, headers, b"{}", timeouts) as response:
            return response.status, response.headers, b"".join(response.body)
    finally:
        transport.close()


def post_async(url: str, timeouts: Timeouts, proxy: str | None, verify: Verify, headers: dict[str, str]) -> Got:
    async def run() -> Got:
        transport = AsyncHttpx2Transport(proxy, verify)
        try:
            async with transport.post(url, headers, b"{}", timeouts) as response:
                return response.status, response.headers, b"".join([piece async for piece in response.body])
        finally:
            await transport.aclose()

    return asyncio.run(run())


@pytest.fixture(params=[post_sync, post_async], ids=["sync", "asyncio"])
def post(request: pytest.FixtureRequest) -> Callable[..., Got]:
    """One request on a client of its own, sync and in an event loop."""
    send = request.param

    def posted(
        url: str,
        timeouts: Timeouts = USUAL,
        proxy: str | None = None,
        verify: Verify = True,
        headers: dict[str, str] = HEADERS,
    ) -> Got:
        got: Got = send(url, timeouts, proxy, verify, headers)
        return got

    return posted


Post: TypeAlias = Callable[..., Got]


def test_response_comes_through(post: Post) -> None:
    """Status, headers in lower case, and the body; the request is what was given."""
    with Server(says(b"data: 1\n\n", b"data: 2\n\n", status=418)) as server:
        status, headers, body = post(server.url)
    assert (418, "text/event-stream", b"data: 1\n\ndata: 2\n\n") == (status, headers["content-type"], body)
    assert ("POST / HTTP/1.1", b"{}") == (server.asked[0].line, server.asked[0].body)
    assert f"Bearer {KEY}" == server.asked[0].headers["authorization"]


def test_a_program_rests_before_each_wait_for_a_body() -> None:
    """And not before the head, nor in a response that is read outside."""
    rests: list[int] = []
    pieces = head(), b"data: 1\n\n", b"data: 2\n\n"
    transport, got = Httpx2Transport(), b""
    with Server(lambda server, asked: pieces) as server:
        with resting(lambda: rests.append(len(got))), transport.post(server.url, HEADERS, b"{}", USUAL) as response:
            assert [] == rests
            for piece in response.body:
                got += piece
        counted = list(rests)
        with transport.post(server.url, HEADERS, b"{}", USUAL) as response:
            assert got == b"".join(response.body)
    transport.close()

    assert b"data: 1\n\ndata: 2\n\n" == got
    assert len(got) == counted[-1]
    assert counted == sorted(counted) == rests


def test_redirect_is_not_followed(post: Post) -> None:
    """A key must not travel to where a server points."""
    moved = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    with Server(lambda server, asked: [moved]) as server:
        assert 302 == post(server.url)[0]


def test_silence_before_the_head(post: Post) -> None:
    """The first byte has its own time-out."""
    with Server(falls_silent()) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url, SHORT)
    assert "first_byte" == caught.value.details["phase"]


def test_silence_within_the_body(post: Post) -> None:
    """Between two pieces the idle time-out counts, not that of the first byte."""
    timeouts = Timeouts(first_byte=60.0, idle=0.1)
    with Server(falls_silent(head(), b"data: 1\n\n")) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url, timeouts)
    assert "idle" == caught.value.details["phase"]


@pytest.mark.parametrize("pieces", [(), (head(),), (head(), b"data: 1\n\n")], ids=["no head", "no body", "a piece"])
def test_whole_time_counts_also_while_the_server_is_silent(post: Post, pieces: tuple[bytes, ...]) -> None:
    """However long the phases may be, the total ends the request."""
    timeouts = Timeouts(connect=60.0, first_byte=60.0, idle=60.0, total=0.2)
    with Server(falls_silent(*pieces)) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url, timeouts)
    assert "total" == caught.value.details["phase"]
    assert "0.2 s" in caught.value.message


def test_whole_time_counts_while_the_server_drips(post: Post) -> None:
    """A server that always says something, and never the end."""

    def drip(server: Server, asked: object) -> Iterator[bytes]:
        yield head()
        while not server._stopping.wait(0.02):
            yield b": keep-alive\n\n"

    with Server(drip) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url, Timeouts(total=0.2))
    assert "total" == caught.value.details["phase"]


def test_no_limit_is_no_limit(post: Post) -> None:
    """``None`` everywhere waits for what comes."""
    with Server(says(b"data: 1\n\n")) as server:
        assert b"data: 1\n\n" == post(server.url, Timeouts(None, None, None, None))[2]
        assert b"data: 1\n\n" == post(server.url, Timeouts(None, None, None, 60.0))[2]


def test_server_that_is_not_there(post: Post) -> None:
    """On this machine nobody comes to listen while one waits: it is told at once, in words."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(NetworkError) as caught:
        post(url)
    assert {"phase": "network", "permanent": True} == caught.value.details
    assert "nothing listens there (connection refused)" == caught.value.message


def test_a_connection_that_another_machine_refuses_may_be_tried_again(post: Post) -> None:
    """A proxy's word for it is one as well; and a name that nobody knows has no number."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        way = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(NetworkError) as caught:
        post("http://house.example/", proxy=way)
    assert ("the connection was refused", {"phase": "network"}) == (caught.value.message, caught.value.details)


def test_connection_that_breaks(post: Post) -> None:
    """A body that ends before its length is a network failure, not a short body."""
    with Server(lambda server, asked: [head(length=100), b"data: 1\n\n"]) as server, pytest.raises(NetworkError):
        post(server.url)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://127.0.0.1:port/", "127.0.0.1/v1"])
def test_address_that_is_none_fails_for_good(post: Post, url: str) -> None:
    """Trying again cannot help."""
    with pytest.raises(NetworkError) as caught:
        post(url)
    assert True is caught.value.details["permanent"]


def test_header_that_cannot_be_sent_is_not_quoted(post: Post) -> None:
    """The client's own words would repeat the key."""
    with Server(says(b"data: 1\n\n")) as server, pytest.raises(NetworkError) as caught:
        post(server.url, headers={"Authorization": f"Bearer {KEY}\nX: y"})
    assert True is caught.value.details["permanent"]
    assert KEY not in repr(caught.value) + str(caught.value)
    assert caught.value.__suppress_context__


def test_private_authority_is_trusted_by_path(post: Post, authority: Authority) -> None:
    """``verify`` takes a file of certificates."""
    with Server(says(b"data: 1\n\n"), authority.server) as server:
        assert 200 == post(server.url, verify=str(authority.certificate))[0]
        assert 200 == post(server.url, verify=authority.certificate)[0]


def test_private_authority_is_trusted_by_context(post: Post, authority: Authority) -> None:
    """``verify`` takes a context."""
    with Server(says(b"data: 1\n\n"), authority.server) as server:
        assert 200 == post(server.url, verify=ssl.create_default_context(cafile=authority.certificate))[0]


def test_ssl_cert_file_is_honoured(post: Post, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the authority."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    with Server(says(b"data: 1\n\n"), authority.server) as server:
        assert 200 == post(server.url)[0]


def test_certificates_are_read_once(post: Post, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client for each turn shares them with the one before, until the environment names others."""
    usual_context.cache_clear()
    with Server(says(b"data: 1\n\n")) as server:
        post(server.url)
        post(server.url)
    assert 1 == usual_context.cache_info().misses
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    with Server(says(b"data: 1\n\n"), authority.server) as server:
        assert 200 == post(server.url)[0]
    assert 2 == usual_context.cache_info().misses


def test_stranger_is_not_trusted(post: Post, authority: Authority) -> None:
    """Without a word for it the certificate is refused, for good; with ``False`` nothing is checked."""
    with Server(says(b"data: 1\n\n"), authority.server) as server:
        with pytest.raises(NetworkError, match="SSL_CERT_FILE") as caught:
            post(server.url)
        assert True is caught.value.details["permanent"]
        assert 200 == post(server.url, verify=False)[0]


def test_whole_time_counts_over_tls(post: Post, authority: Authority) -> None:
    """The reader is woken under the TLS layer, too."""
    with (
        Server(falls_silent(head(), b"data: 1\n\n"), authority.server) as server,
        pytest.raises(PhaseTimeout) as caught,
    ):
        post(server.url, Timeouts(total=0.3), verify=authority.certificate)
    assert "total" == caught.value.details["phase"]


@pytest.mark.parametrize("name", ["nowhere.pem", "."])
def test_certificates_that_cannot_be_read(name: str, tmp_path: object) -> None:
    """A path that is wrong is told at once; an empty directory trusts nobody."""
    if name == ".":
        Httpx2Transport(verify=str(tmp_path)).close()
        return
    with pytest.raises(SettingError, match=r"nowhere\.pem"):
        Httpx2Transport(verify=f"{tmp_path}/{name}")


def test_environment_that_cannot_be_used(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file of certificates or a malformed proxy fails without being quoted: it may hold a password."""
    with pytest.raises(NetworkError, match="proxy cannot be used") as caught:
        post("http://127.0.0.1:1/", proxy="gopher://user:hunter2@127.0.0.1")
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(NetworkError, match="SSL_CERT_FILE"):
        post("http://127.0.0.1:1/")


@pytest.mark.parametrize("way", ["proxy=", "HTTP_PROXY", "http_proxy"])
def test_plain_requests_go_through_the_proxy(post: Post, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given, or named by the environment."""
    with Server(says(b"data: 1\n\n")) as server, Server(forward) as proxy:
        if way == "proxy=":
            got = post(server.url, proxy=proxy.url)
        else:
            monkeypatch.setenv(way, proxy.url)
            got = post(server.url)
    assert b"data: 1\n\n" == got[2]
    assert [f"POST {server.url}/ HTTP/1.1"] == [asked.line for asked in proxy.asked]
    assert 1 == len(server.asked)


@pytest.mark.parametrize("way", ["proxy=", "HTTPS_PROXY"])
def test_tls_goes_through_the_proxy_unread(
    post: Post, way: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CONNECT; the proxy never sees the key."""
    with Server(says(b"data: 1\n\n"), authority.server) as server, Server(forward) as proxy:
        given = proxy.url if way == "proxy=" else None
        if given is None:
            monkeypatch.setenv(way, proxy.url)
        assert 200 == post(server.url, proxy=given, verify=authority.certificate)[0]
    assert [f"CONNECT {server.address} HTTP/1.1"] == [asked.line for asked in proxy.asked]
    assert "authorization" not in proxy.asked[0].headers


def test_connection_that_takes_too_long_has_its_phase() -> None:
    """What the client raises for it; no address on loopback is slow to connect to."""
    told = translate(httpx2.ConnectTimeout("late"), "first_byte", Deadline(None))
    assert isinstance(told, PhaseTimeout)
    assert {"phase": "connect"} == told.details


def test_one_client_serves_many_threads() -> None:
    """A store's sessions share connections."""
    with Server(says(b"data: 1\n\n")) as server:
        transport = Httpx2Transport()
        got: list[bytes] = []

        def run() -> None:
            with transport.post(server.url, HEADERS, b"{}", Timeouts()) as response:
                got.append(b"".join(response.body))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        transport.close()
    assert [b"data: 1\n\n"] * 4 == got


def test_response_is_closed_when_its_reader_leaves() -> None:
    """Leaving the context in the middle of the body drops the connection."""

    def endless(server: Server, asked: object) -> Iterator[bytes]:
        yield head()
        while True:
            yield b"data: 1\n\n" * 1000

    with Server(endless) as server:
        transport = Httpx2Transport()
        with transport.post(server.url, HEADERS, b"{}", Timeouts()) as response:
            assert isinstance(response, HttpResponse)
            next(response.body)
        assert server.dropped.wait(5)
        transport.close()


def test_client_that_was_never_used_is_closed_too() -> None:
    """Nothing was opened."""
    Httpx2Transport().close()
    asyncio.run(AsyncHttpx2Transport().aclose())
