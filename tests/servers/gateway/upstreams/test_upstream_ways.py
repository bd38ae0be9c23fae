"""Ways to a provider: names, certificates and proxies; on both event loops."""

from __future__ import annotations

import socket
import ssl

import pytest

from tests.drive.servers import Authority, Server, forward, says
from tests.servers.gateway.harness.upstreams import KEY, Raw, post
from thinkback.drive.http import Timeouts
from thinkback.errors import NetworkError, PhaseTimeout, SettingError
from thinkback.servers.gateway.upstreams.upstream import Upstream

pytestmark = pytest.mark.usefixtures("either_loop")


def test_handshake_that_never_comes_is_a_connection_too_late() -> None:
    """A server that takes the connection and says nothing to TLS."""

    def silent(connection: socket.socket, number: int) -> None:
        while connection.recv(65536):
            pass

    with Raw(silent) as server, pytest.raises(PhaseTimeout) as caught:
        post(server.url.replace("http", "https"), Timeouts(connect=0.1))
    assert "connect" == caught.value.details["phase"]


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


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1/", "http://127.0.0.1:port/", "127.0.0.1/v1", "http:///v1", "http://[/"]
)
def test_address_that_is_none_fails_for_good(url: str) -> None:
    """Trying again cannot help."""
    with pytest.raises(NetworkError) as caught:
        post(f"{url}?key={KEY}")
    assert True is caught.value.details["permanent"]
    assert KEY not in str(caught.value)


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
