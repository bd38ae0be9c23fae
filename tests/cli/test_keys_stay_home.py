"""No key goes to a scheme, host or port that is not the endpoint's own or the user's: decided, and seen on the wire."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from types import MappingProxyType
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import thinkback
from tests.cli.command import KEY, Command
from tests.stores.samples import put
from thinkback.errors import ExportFileError
from thinkback.model.commits import Draft, Message, Request, Step
from thinkback.model.rule import Endpoint
from thinkback.rules import load_rulebook
from thinkback.rules.urls import server_of
from thinkback.session.endpoint_config import EndpointConfig, is_home, same_server
from thinkback.session.exchange import importing
from thinkback.stores import open_store

BOOK = load_rulebook({})
HOME = "https://api.deepseek.com/v1"
SCHEMES = ("https", "http", "HTTPS", "ftp", "ws", "")
HOSTS = (
    "api.deepseek.com",
    "API.DeepSeek.com",
    "api.deepseek.com.",
    "api.deepseek.com.evil.test",
    "evil.test",
    "xapi.deepseek.com",
    "api.deepseek.com%2eevil.test",
    "api.deepseek.com%00.evil.test",
    "\u0430pi.deepseek.com",
    "\uff41\uff50\uff49.deepseek.com",
    "api\u3002deepseek\u3002com",
    "localhost",
    "127.0.0.1",
    "[::1]",
    "0x7f.1",
    "2130706433",
    "0.0.0.0",
    "",
)
USERS = ("", "api.deepseek.com@", "api.deepseek.com:443@", "u:p@", "api.deepseek.com\\@", "api.deepseek.com#@", "x?@")
PORTS = ("", ":", ":443", ":80", ":0443", ":8443", ":0", ":65536", ":a", ":443@evil.test")
PATHS = (
    "",
    "/",
    "/v1",
    "/v1?x=@api.deepseek.com",
    "/../..//evil.test",
    "?api.deepseek.com",
    "#@evil.test",
    "\\@evil.test",
)
ADDRESSES = st.one_of(
    st.builds(
        lambda *parts: "".join(parts),
        st.sampled_from(["", " ", "\t"]),
        st.sampled_from([f"{scheme}://" for scheme in SCHEMES] + ["https:/", "https:", "//"]),
        st.sampled_from(USERS),
        st.sampled_from(HOSTS),
        st.sampled_from(PORTS),
        st.sampled_from(PATHS),
    ),
    st.text(max_size=30),
    st.builds("https://{}".format, st.text(max_size=30)),
)


@given(ADDRESSES)
@example(HOME)
@example("https://API.deepseek.com:443/beta")
@example("http://api.deepseek.com/v1")
@example("https://api.deepseek.com:8443/v1")
@example("https://u:p@api.deepseek.com/v1")
def test_an_address_is_home_only_with_the_scheme_host_and_port_of_home(address: str) -> None:
    """Whatever is home names the very server of the endpoint, as another parser than ours would read it."""
    if is_home(address, BOOK.endpoint("deepseek")):
        parts = urlsplit(address.strip())
        assert ("https", "api.deepseek.com", 443) == (parts.scheme, parts.hostname, parts.port or 443)
        assert "@" not in parts.netloc


@given(ADDRESSES, st.sampled_from(BOOK.endpoints()))
def test_what_is_home_is_in_the_endpoints_own_data(address: str, endpoint: Endpoint) -> None:
    """For every endpoint of the catalogue; one whose hosts are patterns has none but its base URL."""
    if is_home(address, endpoint):
        host = urlsplit(server_of(address)).hostname or ""
        named = {urlsplit(f"//{pattern}").hostname for pattern in endpoint.hosts if "*" not in pattern}
        assert host in {urlsplit(endpoint.base_url).hostname, *named}


def test_home_is_home() -> None:
    """Each endpoint's own address, in any spelling of it, and each host that it names whole."""
    for endpoint in BOOK.endpoints():
        if endpoint.base_url:
            assert is_home(endpoint.base_url, endpoint), endpoint.id
    kimi = BOOK.endpoint("kimi")
    assert is_home("https://api.moonshot.cn/v1", kimi)
    assert not is_home("http://api.moonshot.cn/v1", kimi)
    assert not is_home("https://lab.openai.azure.com/openai/v1", BOOK.endpoint("azure-openai"))
    assert is_home("http://10.0.0.5:8000/v1", kimi, "http://10.0.0.5:8000")


@given(ADDRESSES, st.sampled_from([HOME, "http://localhost:8000/v1"]))
def test_a_key_is_forgotten_with_the_server_it_was_for(address: str, home: str) -> None:
    """A place that moves to another scheme, host or port takes no key, header or account along."""
    place = EndpointConfig(
        "m", "deepseek", home, api_key="sk-home", headers_given={"x-api-key": "sk-home"}, account="a"
    )
    moved = place.changed(BOOK, base_url=address) if server_of(address) or not address else None
    if moved is not None and moved.base_url != home:
        stays = same_server(address or BOOK.endpoint("deepseek").base_url, home)
        expected = ("sk-home", {"x-api-key": "sk-home"}, "a") if stays else (None, {}, "")
        assert expected == (moved.api_key, dict(moved.headers_given), moved.account)


SPOILT = (
    "http://127.0.0.1:{port}",
    "http://localhost:{port}/v1",
    "http://0x7f.1:{port}",
    "http://2130706433:{port}",
    "http://u:p@127.0.0.1:{port}",
    "http://api.deepseek.com@127.0.0.1:{port}",
    "HTTP://LOCALHOST:{port}",
    "http://localhost.:{port}",
)


class Listener(socketserver.ThreadingTCPServer):
    """Keeps what anybody sends it, and answers with a redirect to ``location``, or with a refusal."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.location = ""
        super().__init__(("127.0.0.1", 0), _Keeps)
        self.port: int = self.server_address[1]


class _Keeps(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Listener)
        self.server.received.append(self.request.recv(65536))
        status = f"307 Moved\r\nLocation: {self.server.location}" if self.server.location else "401 No"
        self.request.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())


@contextmanager
def listening() -> Iterator[Listener]:
    """A listener, as long as the context."""
    with Listener() as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield listener
        finally:
            listener.shutdown()
            thread.join()


def test_an_imported_address_gets_no_key(command: Command) -> None:
    """The addresses of a file lead to a listener of this machine: nothing arrives there, whoever asks the model."""
    with listening() as listener:
        names = {f"s{at}": address.format(port=listener.port) for at, address in enumerate(SPOILT)}
        bring(command, names)
        for name in names:
            refused = command("run", "--session", name, "Hi")
            assert (False, True) == (refused.code == 0, "--base-url" in refused.err), names[name]
        command("chat", "-s", "s0", stdin=b"Hi\n")
        command("compact", "s0", "--strategy", "model", "--tail", "0")
        assert [] == listener.received


def test_an_address_of_ones_own_profile_gets_the_key_and_keeps_it(command: Command) -> None:
    """The same address, once the person has it in a profile: the key arrives, and goes nowhere that it redirects to."""
    with listening() as listener, listening() as beyond:
        here = f"http://127.0.0.1:{listener.port}"
        bring(command, {"theirs": here})
        (command.config / "profiles").mkdir(parents=True)
        (command.config / "profiles" / "mine.toml").write_text(f'endpoint = "deepseek"\nbase_url = "{here}/other"\n')
        listener.location = f"http://127.0.0.1:{beyond.port}/stolen"
        refused = command("run", "--session", "theirs", "Hi")
        assert "redirects are not followed" in refused.err
        assert KEY.encode() in b"".join(listener.received)
        assert [] == beyond.received


def bring(command: Command, addresses: dict[str, str], settings: Mapping[str, str] = MappingProxyType({})) -> None:
    """Import sessions with ``settings``, the last request of each of which says that it went to an address."""
    place = command.place / "theirs.db"
    with closing(open_store(str(place))) as log:
        for name, address in addresses.items():
            target = {"endpoint": "deepseek", "base_url": address, "dialect": "openai-chat", "model": "deepseek-v4-pro"}
            request = Request(target, {}, (), "{}", "", "", "", "", "", "", "")
            log.create_session(name, name, 1)
            log.write_settings(name, dict(settings))
            put(log, name, Step(name, (Draft("user", Message("Hi")), Draft("request", request, name)), 1))
    with thinkback.open(place, rules={}, settings={}) as theirs:
        theirs.export(place.with_suffix(".jsonl"), complete=True)
    with thinkback.open(command.db, rules={}, settings={}) as ours:
        ours.import_(place.with_suffix(".jsonl"))


@pytest.mark.parametrize(("batch", "settings"), [(importing.BATCH, None), (1, {"session.imported": "true"})])
def test_an_import_that_breaks_off_leaves_no_session_that_is_followed(
    command: Command, monkeypatch: pytest.MonkeyPatch, batch: int, settings: dict[str, str] | None
) -> None:
    """What was stored before the broken line stays, marked as somebody else's; if nothing was, there is no session."""
    monkeypatch.setattr(importing, "BATCH", batch)
    bring(command, {"one": "http://127.0.0.1:9"})
    lines = (command.place / "theirs.jsonl").read_bytes().splitlines(keepends=True)
    with thinkback.open(command.place / "new.db", rules={}, settings={}) as store:
        with pytest.raises(ExportFileError):
            store.import_([*lines, b"no line of an export\n"])
        found = store.log.find_session("one")
        assert settings == (found.settings if found is not None else None)


def test_settings_of_a_file_that_mean_nothing_here_are_left_out_and_told(command: Command) -> None:
    """An unknown key, a bad value and a profile that is not here: the session can be used, and the import says so."""
    settings = {
        "reasoning.bogus": "1",
        "reasoning.effort": "enormous",
        "session.profile": "gone",
        "permissions.mode": "auto",
        "text.verbosity": "low",
    }
    bring(command, {"one": "https://api.deepseek.com"}, settings)
    file = command.place / "theirs.jsonl"
    command.db.unlink()
    done = command("import", str(file))
    assert (0, "one: unknown settings: reasoning.bogus, reasoning.effort, session.profile") == (
        done.code,
        done.err.strip(),
    )
    with thinkback.open(command.db, rules={}, settings={}) as store:
        assert {"session.imported": "true", "text.verbosity": "low"} == store.find("one").settings
        assert "low" == store.session("one").settings.verbosity
    assert 0 == command("settings", "--session", "one").code


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_file_is_told(command: Command, text: str) -> None:
    """Nothing was imported: a sentence, and an exit code that says so."""
    file = command.place / "empty.jsonl"
    file.write_text(text)
    done = command("import", str(file))
    assert (2, True) == (done.code, "nothing was imported: there is no session in" in done.err)
