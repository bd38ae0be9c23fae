"""The viewer of a gateway: who gets in with which key, for how long, and that nobody sees another tenant's sessions."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import ASGIApp

import thinkback
from tests.servers.gateway.harness.house import House, Provider
from tests.servers.viewer.conversations import answered, asked
from tests.stores.postgres_server import Server
from thinkback.cli.gateway_viewer import KeyNames, opened
from thinkback.model.blocks import Text, ThinkingBlock
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.servers.gateway.config.schema import Config, Logs, Store, Viewer
from thinkback.servers.gateway.running.places import office_of, state_place
from thinkback.servers.gateway.storing.tenants import TenantLogs
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.sessions import Listing
from thinkback.servers.viewer.sign_in import ATTEMPTS, EACH, IDLE, LIFE, WINDOW, Guest
from thinkback.session.places import Place
from thinkback.session.store import SessionStore
from thinkback.stores.gateway_state.records import KeyRow
from thinkback_referee import Referee

HOST = "127.0.0.1:8485"


class Gate:
    """The viewer of a gateway with two tenants, its keys, and a clock."""

    def __init__(self, config: Config, stack: ExitStack) -> None:
        self.config, self.now, self.is_over = config, 0.0, False
        self.office = stack.enter_context(closing(office_of(config)))
        self.logs = stack.enter_context(closing(TenantLogs(state_place(config.store), config.store)))
        made = stack.enter_context(opened(config))
        self.app = made(lambda: self.is_over)
        self.app._clock = lambda: self.now

    def key(self, tenant: str = "one", *, view: bool = True) -> tuple[str, KeyRow]:
        """A new key."""
        secret, row = new_key(Terms(view=view), 1, tenant=tenant)
        self.office.keys.create(row)
        return secret, row

    def store(self, tenant: str) -> SessionStore:
        """The log of a tenant, as the gateway has it."""
        return SessionStore(self.logs.of(tenant), True, {}, {}, tenant)

    def own(self, tenant: str) -> SessionStore:
        """The same, opened by itself."""
        place = state_place(self.config.store)
        if "://" in place:
            return thinkback.open(place, tenant=tenant, rules={}, settings={})
        return thinkback.open(Path(place) / f"{tenant}.db", rules={}, settings={})

    def browser(self, host: str = HOST, scheme: str = "http", address: str = "192.0.2.1") -> TestClient:
        """A browser that has no cookie yet."""
        url = f"{scheme}://{host}"
        headers = {"origin": url, "sec-fetch-site": "same-origin"}
        return TestClient(
            self.app, base_url=url, headers=headers, follow_redirects=False, client=(address, 5), cookies=None
        )

    def guest(self, tenant: str = "one", key: str = "") -> TestClient:
        """A browser that was let in."""
        client = self.browser()
        answer = client.post("/sign-in", data={"key": key or self.key(tenant)[0]})
        assert 303 == answer.status_code, answer.text
        return client


def config_at(place: str | Path, audit: Path) -> Config:
    """The configuration of a gateway with a viewer."""
    store = Store(url=str(place)) if "://" in str(place) else Store(path=str(place))
    return Config(store=store, viewer=Viewer(listen=HOST), logs=Logs(audit=str(audit)))


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """On SQLite."""
    with ExitStack() as stack:
        yield Gate(config_at(tmp_path / "store", tmp_path / "audit.jsonl"), stack)


@pytest.fixture(params=["sqlite", "postgres"])
def gates(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Gate]:
    """On each database."""
    place: str | Path = tmp_path / "store"
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        place = server.make_database(f"viewer {secrets.token_hex(4)}")
    with ExitStack() as stack:
        yield Gate(config_at(place, tmp_path / "audit.jsonl"), stack)


def test_nobody_sees_anything_of_another_tenant_on_any_route(gates: Gate) -> None:
    """Every route of the application: lists, search and numbers are those of a viewer of one's own log alone, and an id
    or a hash of the other tenant is answered as one that was made up.
    """
    one, two = gates.store("one"), gates.store("two")
    with Referee() as referee:
        at, key = referee.base_url("deepseek"), "sk-test-0123456789abcdef"
        with gates.own("one") as own:
            session = own.session("harvest", endpoint="deepseek", model="deepseek-v4-pro", base_url=at, api_key=key)
            session.chat("Who knows of zephyrine?")
    info = one.find("harvest")
    asked(two, "sea", "Why is the sea salty?")
    alone = TestClient(application(two, signs_out=True), base_url=f"http://{HOST}", follow_redirects=False)
    owner, other = gates.guest("one"), gates.guest("two")
    commits = one.commits("harvest")
    hashes = [next(c.hash for c in commits if c.kind == kind) for kind in ("request", "reasoning")]
    patterns = [route.path for route in application(one).routes if isinstance(route, Route)]
    assert 13 < len(patterns)

    asks = "?q=zephyrine&in=reasoning&part=1&days=0&to=deepseek/deepseek-v4-pro"
    seen = []
    for pattern, query in [
        *((pattern, "") for pattern in patterns),
        ("/", asks),
        ("/search", asks),
        ("/numbers", asks),
    ]:
        hash = hashes["/request/" not in pattern]
        path = pattern.replace("{session}", info.id).replace("{hash}", hash).replace("{name}", "viewer.css") + query
        invented = path.replace(info.id, "made-up").replace(hash, "0" * 64)
        answer, judge = other.get(path), other if "/live" in path else alone
        told = answer.text.replace(info.id, "made-up").replace(hash, "0" * 64)
        expected = judge.get(invented)
        assert (expected.status_code, expected.text) == (answer.status_code, told), path
        assert "harvest" not in told, path
        assert query or "zephyrine" not in told.lower(), path
        if "/live" not in path:
            seen.append(owner.get(path).status_code)
    assert {200, 303} == set(seen)
    assert "zephyrine" in owner.get("/search?q=zephyrine").text.lower()
    assert "harvest" in owner.get("/").text


def test_a_gateways_viewer_only_looks(gate: Gate) -> None:
    """No form but those for signing in and out is taken, and what would change something has no address."""
    info = asked(gate.store("one"), "sky")
    client = gate.guest()
    hash = gate.store("one").commits("sky")[0].hash
    for way in (f"/session/{info.id}/curate", f"/session/{info.id}/curate/{hash}"):
        assert [404, 405] == [client.get(way).status_code, client.post(way, data={"act": "title"}).status_code]
    page = client.get(f"/session/{info.id}").text

    assert ("read-only" in page, "curate" in page, "Sign out" in page) == (True, False, True)
    nothing = gate.guest("two").get("/").text
    assert ("A request to the gateway" in nothing, "thinkback chat" in nothing) == (True, False)


def test_a_key_is_exchanged_for_a_cookie_that_no_script_and_no_other_site_gets(gate: Gate) -> None:
    """By a form alone; over TLS the cookie never goes without. The audit log knows the key by its id."""
    secret, row = gate.key()
    client = gate.browser()
    first = client.get("/session/1?branch=a%20b&at=3")
    way = unescape(first.text.partition('name="to" value="')[2].partition('"')[0])
    assert (401, "/session/1?branch=a%20b&at=3") == (first.status_code, way)
    assert 401 == client.get("/", headers={"thinkback-key": secret}, params={"key": secret}).status_code
    answer = client.post("/sign-in", data={"key": f" {secret} ", "to": way})
    name, _, rest = answer.headers["set-cookie"].partition("=")

    assert (303, way) == (answer.status_code, answer.headers["location"])
    assert {"HttpOnly", "Path=/", "SameSite=strict"} == set(rest.split("; ")[1:])
    assert re.fullmatch("thinkback-[0-9a-f]{16}", name)
    assert (200, 401) == (client.get("/").status_code, gate.browser().get("/").status_code)
    secure = gate.browser(scheme="https").post("/sign-in", data={"key": secret})
    assert "; Secure" in secure.headers["set-cookie"]
    for to in ("//evil.test/", "/\\evil.test", "https://evil.test/", "/a\r\nb: c", ""):
        assert "/" == gate.browser().post("/sign-in", data={"key": secret, "to": to}).headers["location"]
    lines = [json.loads(line) for line in Path(gate.config.logs.audit).read_text().splitlines()]
    assert {("viewer.signed_in", row.id, "one", "192.0.2.1")} == {
        (line["act"], line["key"], line["tenant"], line["from"]) for line in lines
    }
    assert secret not in Path(gate.config.logs.audit).read_text()


def test_a_session_that_is_looked_at_is_in_the_audit_log(gate: Gate) -> None:
    """Once in a visit, by the key's id; who is not signed in leaves no such line."""
    info = asked(gate.store("one"), "sky")
    client = gate.guest()
    gate.browser().get(f"/session/{info.id}")
    for way in (f"/session/{info.id}", f"/session/{info.id}/tree", "/", f"/session/{info.id}"):
        client.get(way)
    lines = [json.loads(line) for line in Path(gate.config.logs.audit).read_text().splitlines()]
    signed = next(line for line in lines if line["act"] == "viewer.signed_in")

    assert [(signed["key"], "one", info.id)] == [
        (line["key"], line["tenant"], line["session"]) for line in lines if line["act"] == "viewer.read"
    ]


def test_a_key_without_the_right_does_not_open_it(gate: Gate) -> None:
    """Neither one of the gateway's that may ask alone, nor another's, nor none."""
    for key, status in ((gate.key(view=False)[0], 403), ("tb-unknown", 401), ("sk-of-a-provider", 401), ("", 401)):
        answer = gate.browser().post("/sign-in", data={"key": key})
        assert (status, True) == (answer.status_code, "set-cookie" not in answer.headers)
        assert 'role="alert"' in answer.text
    refused = [json.loads(line)["why"] for line in Path(gate.config.logs.audit).read_text().splitlines()]
    assert {"may_not_view", "unknown_key", "missing_key"} == set(refused)


def test_guesses_of_one_address_are_few(gate: Gate) -> None:
    """Also of one network of IPv6; a sign-in that succeeds counts for nothing, and others are not in the way. The audit
    log has those that nobody looked at.
    """
    key = gate.key()[0]
    for address, same, other in (
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("2001:db8::1", "2001:db8::2", "2001:db9::1"),
        ("::ffff:192.0.2.7", "192.0.2.7", "::ffff:192.0.2.8"),
    ):
        client, neighbour = gate.browser(address=address), gate.browser(address=same)
        assert {303} == {client.post("/sign-in", data={"key": key}).status_code for _ in range(ATTEMPTS + 1)}
        assert {401} == {client.post("/sign-in", data={"key": "tb-x"}).status_code for _ in range(ATTEMPTS)}
        last = neighbour.post("/sign-in", data={"key": key})
        assert (429, True) == (last.status_code, 1 <= int(last.headers["retry-after"]) <= WINDOW)
        assert 303 == gate.browser(address=other).post("/sign-in", data={"key": key}).status_code
        gate.now += WINDOW
        assert 303 == neighbour.post("/sign-in", data={"key": key}).status_code
    lines = [json.loads(line) for line in Path(gate.config.logs.audit).read_text().splitlines()]
    unseen = [line["from"] for line in lines if line.get("why") == "too_many_attempts"]
    assert ["192.0.2.1", "2001:db8::2", "192.0.2.7"] == unseen


class Away:
    """Keys that cannot be looked at, as while the database is down."""

    async def admit(self, secret: str, address: str) -> Guest:
        raise Refused(503, "unavailable", "the keys cannot be looked at")

    async def again(self, guest: Guest) -> None:
        raise Refused(503, "unavailable", "the keys cannot be looked at")

    def looked(self, guest: Guest, session: str) -> None:
        """Nothing."""

    def too_many(self, address: str) -> None:
        raise AssertionError(address)


def test_an_outage_is_no_guess(gate: Gate) -> None:
    """Whoever tried meanwhile gets in afterwards."""
    key, client, keys = gate.key()[0], gate.browser(), gate.app._keys
    gate.app._keys = Away()
    assert {503} == {client.post("/sign-in", data={"key": key}).status_code for _ in range(ATTEMPTS + 1)}
    gate.app._keys = keys
    assert 303 == client.post("/sign-in", data={"key": key}).status_code


def test_a_viewer_that_is_made_while_others_are_forgotten_is_made_once(gate: Gate) -> None:
    """Somebody signs out meanwhile, or a visit ends."""
    made: list[str] = []
    room = gate.app._room

    def making(tenant: str) -> ASGIApp:
        made.append(tenant)
        gate.app._tidy()
        return room(tenant)

    gate.app._room = making
    client = gate.guest()
    assert [200, 200] == [client.get("/").status_code for _ in range(2)]
    assert ["one"] == made


BACKSTAGE = """[[endpoint]]
id = "backstage"
name = "Backstage"
base_url = "http://10.0.0.5:8000/v1"
source = "our own server"
"""


def test_guests_are_shown_nothing_of_this_machine(gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its own endpoints, nor where its files are, nor how the gateway sends. What would go next is planned by
    the log and the packaged rules.
    """
    with Referee() as referee, gate.own("one") as own:
        at, key = referee.base_url("deepseek"), "sk-test-0123456789abcdef"
        session = own.session("harvest", endpoint="deepseek", model="deepseek-v4-pro", base_url=at, api_key=key)
        session.chat("Who knows of zephyrine?")
    store, place = gate.store("one"), tmp_path / "machine"
    info, bare = store.find("harvest"), asked(store, "sky")
    hash = next(commit.hash for commit in store.commits("harvest") if commit.kind == "request")
    place.mkdir()
    (place / "rules.toml").write_text(BACKSTAGE)
    (place / "keys.toml").write_text(f'[keys]\nANTHROPIC_API_KEY = "{key}"\n')
    (place / "keys.toml").chmod(0o644)
    for name, value in (("CONFIG_DIR", str(place)), ("ENDPOINT", "backstage"), ("MODEL", "stagehand")):
        monkeypatch.setenv(f"THINKBACK_{name}", value)
    client = gate.guest()
    next_ = f"/session/{info.id}/next"

    for way, here in (
        (next_, "<b>deepseek-v4-pro</b> at deepseek"),
        (f"{next_}?to=deepseek/deepseek-v4-flash", "<b>deepseek-v4-flash</b> at deepseek"),
        (f"{next_}?to=anthropic/claude-sonnet-4-5", "<b>claude-sonnet-4-5</b> at anthropic"),
        (f"/session/{info.id}/request/{hash}?to=anthropic/claude-sonnet-4-5", "at anthropic"),
        (f"/session/{bare.id}/next", "say where: endpoint/model"),
    ):
        told = client.get(way).text
        assert here in told, way
        assert [] == [word for word in (str(place), "backstage", "stagehand", "as curl", key) if word in told], way
    assert "no endpoint is called" in client.get(f"{next_}?to=backstage/stagehand").text


def test_a_visit_ends(gate: Gate) -> None:
    """By signing out, after hours, after half an hour without a request, once its key is revoked, and when many more
    were begun with it.
    """
    client = gate.guest()
    assert (303, 401) == (client.post("/sign-out").status_code, client.get("/").status_code)
    client = gate.guest()
    for _ in range(int(LIFE / IDLE) + 1):
        assert 200 == client.get("/keys").status_code
        gate.now += LIFE / (int(LIFE / IDLE) + 1)
    assert 401 == client.get("/keys").status_code
    client = gate.guest()
    gate.now += IDLE
    assert 401 == client.get("/keys").status_code

    secret, row = gate.key()
    first = gate.guest(key=secret)
    others = [gate.guest(key=secret) for _ in range(EACH)]
    assert [401, 200, 200] == [each.get("/keys").status_code for each in (first, others[0], others[-1])]
    assert gate.office.keys.revoke(row.id, 2)
    access: Any = gate.app._keys
    access._access._known.clear()  # a second later
    assert [401, 401] == [each.get("/keys").status_code for each in (others[0], others[-1])]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.test"}, 403),
        ({"origin": "http://evil.test"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({}, 303),
    ],
)
def test_pages_of_others_cannot_sign_anybody_in(gate: Gate, headers: dict[str, str], status: int) -> None:
    """A name that was rebound, a form of another site, or of one beside it."""
    assert status == gate.browser().post("/sign-in", data={"key": gate.key()[0]}, headers=headers).status_code


def test_a_link_of_another_site_leads_there(gate: Gate) -> None:
    """The browser keeps the cookie back then: a page of ours leads on, and sends it. Every answer forbids pages the
    same.
    """
    client = gate.guest()
    there = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    stranger = gate.browser()
    answer = stranger.get("/%5C/evil.test/session/1?at=2", headers=there)

    assert (200, "0; url=/evil.test/session/1?at=2") == (answer.status_code, answer.headers["refresh"])
    for each in (answer, client.get("/"), client.get("/none"), stranger.get("/"), stranger.get("/static/viewer.css")):
        assert "default-src 'none'" in each.headers["content-security-policy"]
        assert ("same-origin", "nosniff") == (each.headers["referrer-policy"], each.headers["x-content-type-options"])
    assert [200, 404] == [stranger.get(f"/static/{name}").status_code for name in ("viewer.css", "..%2fapp.py")]


def test_a_stream_ends_with_its_visit(gate: Gate) -> None:
    """Whoever signs out, or whose key is revoked, is shown nothing that is stored afterwards."""
    store = gate.store("one")
    info = asked(store, "sky")
    client = gate.guest()
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    found: list[bytes] = []

    async def read() -> None:
        over = asyncio.Event()

        async def receive() -> Any:
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            found.append(message.get("body", b""))
            if b"event: state" in found[-1]:
                await asyncio.to_thread(client.post, "/sign-out")
                await asyncio.to_thread(answered, store, "sky", Text("Zephyrine."))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                over.set()

        headers = [(b"host", HOST.encode()), (b"cookie", cookie.encode())]
        scope = {"type": "http", "method": "GET", "path": f"/session/{info.id}/live", "query_string": b"after="}
        await asyncio.wait_for(gate.app({**scope, "headers": headers}, receive, send), 20)

    asyncio.run(read())
    assert any(b"event: state" in each for each in found)
    assert not any(b"Zephyrine" in each for each in found)


def test_what_was_erased_shows_as_such(gate: Gate) -> None:
    """In the conversation and at its link; what was found by its words before is not found any more."""
    store = gate.store("one")
    info = asked(store, "sky", "Why?")
    answered(store, "sky", ThinkingBlock("Thought of a secretword."), Text("It scatters."))
    thought = next(commit for commit in store.commits("sky") if commit.kind == "reasoning")
    client, looked_for = gate.guest(), "/search?q=secretword"
    assert "Thought of a" in client.get(looked_for).text
    store.care.redact(thought.hash, "secretword")
    redacted = client.get(f"/session/{info.id}").text
    assert "Thought of a" not in client.get(looked_for).text
    store.care.purge(before=3_000_001, reason="asked to")

    assert ("erased in part" in redacted, "secretword" in redacted) == (True, False)
    client.post("/sign-out")  # its viewer remembers for some seconds
    erased = gate.guest().get(f"/session/{info.id}/block/{thought.hash}").text
    assert ("erased: asked to" in erased, "Thought of" in erased) == (True, False)


def children_of(process: int) -> list[int]:
    """The processes that it started."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(number) for task in tasks for number in task.read_text().split()]


def test_the_page_grows_by_what_the_gateway_stores(tmp_path: Path) -> None:
    """The process beside the gateway: it is started again when it dies, whatever the file says by then; a page that is
    open is given the turn that is stored, what recording left out shows as such, and the viewer ends with the gateway.
    """
    with Provider() as provider:
        viewer = '[viewer]\nlisten = "127.0.0.1:0"\n'
        house = House(tmp_path / "house", provider.url, str(tmp_path / "store"), viewer)
        try:
            secret, row = new_key(Terms(view=True), 1)
            quiet, other = new_key(Terms(recording="metadata"), 1)
            with closing(office_of(Config(store=Store(path=house.store)))) as office:
                office.keys.create(row)
                office.keys.create(other)
            assert 200 == house.talk(["An unkeptword?"], authorization=f"Bearer {quiet}").status
            ask = partial(house.talk, authorization=f"Bearer {secret}")
            said = ask(["Two?"]).text
            (at,) = re.findall(r"viewer, for .*: (http://\S+)", (house.place / "said").read_text())
            (first,) = children_of(house.process.pid)
            house.configure("")  # one that is started again is the one that the gateway was started with
            os.kill(first, signal.SIGKILL)  # the address is the gateway's: what comes now waits for the next one
            with httpx2.Client(base_url=at, headers={"origin": at}, timeout=20) as browser:
                assert 303 == browser.post("/sign-in", data={"key": secret}).status_code
                ways = set(re.findall(r"/session/[0-9a-z-]+", browser.get("/").text))
                unrecorded, page = sorted((browser.get(way).text for way in ways), key=lambda each: "Two?" in each)
                live = unescape(page.partition('data-live="')[2].partition('"')[0])
                with browser.stream("GET", live) as stream, ThreadPoolExecutor(1) as asking:
                    grown = ""
                    for piece in stream.iter_text():
                        if "event: state" in piece and "event: state" not in grown:
                            asking.submit(ask, ["Two?", "Three?"], [said])
                        grown += piece
                        if "Said of &lt;Three?" in grown:
                            break
            (process,) = children_of(house.process.pid)
            said_so = (house.place / "log").read_text().splitlines()
            died = [json.loads(line)["code"] for line in said_so if "viewer_died" in line]
        finally:
            assert 0 == house.stop()
    assert "Thought of" in grown
    assert ("not recorded" in unrecorded, "erased:" in unrecorded, "unkeptword" in unrecorded) == (True, False, False)
    assert ([-signal.SIGKILL], True) == (died, first != process)
    assert not Path(f"/proc/{process}").exists()


def test_sessions_are_called_by_the_names_of_keys(gate: Gate) -> None:
    """Of the tenant's own keys; one without a name by its id."""
    rows = [
        new_key(Terms(), number, tenant=tenant, name=name)[1]
        for number, (tenant, name) in enumerate([("one", "ada"), ("one", ""), ("two", "eve")], 10)
    ]
    for row in rows:
        gate.office.keys.create(row)
        asked(gate.store("one"), f"{row.id}/s1", "Why?")
    guest = gate.guest("one")
    listed, found = guest.get("/").text, guest.get("/?q=ada").text

    assert [True, True, True] == [f"{name}/s1" in listed for name in ("ada", rows[1].id, rows[2].id)]
    assert "eve" not in listed
    assert rows[0].id not in re.sub(r'href="[^"]*"', "", listed)
    assert "1 of 3 sessions" in found
    place = Place(f"{rows[0].id}/s1")  # of a session without a title, as Numbers shows it
    names = KeyNames(gate.office, "one")
    assert {"s": place._replace(session="ada/s1")} == Listing(gate.store("one"), called=names).called({"s": place})
