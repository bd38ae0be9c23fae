"""Clients' own credentials: to their own provider and nowhere else, in nobody's hands, and nobody before its word."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.drive.servers import Asked, Server
from tests.servers.gateway.harness.running import Reply, Running, read_until, running
from thinkback.model.commits import Request
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.servers.gateway.config.schema import Config, Logs
from thinkback.servers.gateway.grant import Limits
from thinkback.servers.gateway.http.app import App
from thinkback.servers.gateway.running.wiring import open_behind
from thinkback.servers.gateway.telemetry.logs import Log
from thinkback.servers.gateway.telemetry.metrics import Metrics
from thinkback.stores import open_store
from thinkback.stores.gateway_state import open_gateway_state

WIRING = "thinkback.servers.gateway.running.wiring:open_behind"
OPERATORS = "sk-of-the-operator-alone"
SECRETS = (
    *("sk-ant-alice-0001", "sk-ant-amy-000002", "sk-ant-bob-00003", "sk-ant-revoked-4", "sk-ant-nobody-05"),
    *("sk-ant-first-0006", "sk-ant-ending-007", "sk-ant-new-00008"),
)
ALICE, AMY, BOB, REVOKED, NOBODY, FIRST, ENDING, NEW = SECRETS
TOKENS = {
    "sk-ant-oat01-of-today": "org-t",
    "sk-ant-oat01-renewed": "org-t",
    "sk-ant-oat01-another": "org-u",
    "sk-ant-oat01-nobody": "",
}
ORGANISATIONS = {ALICE: "org-a", AMY: "org-a", BOB: "org-b", NOBODY: "", FIRST: "org-f", ENDING: "org-e", NEW: "org-n"}
MODEL = "claude-opus-4-6"


class Provider:
    """Takes those keys, names whose they are in responses, and leads elsewhere where it is told to."""

    def __init__(self) -> None:
        self.server = Server(self._answer)
        self.numbers = itertools.count()
        self.revoked: set[str] = {REVOKED}
        self.status = 0
        self.elsewhere = ""
        self.said = ""

    @property
    def asked(self) -> list[Asked]:
        """Every request it got."""
        return self.server.asked

    def _answer(self, server: Server, asked: Asked) -> Iterator[bytes]:
        key = asked.headers.get("x-api-key", "") or asked.headers.get("authorization", "").removeprefix("Bearer ")
        known = key in {*ORGANISATIONS, *TOKENS, OPERATORS} and key not in self.revoked
        status = self.status or (200 if known else 401)
        said: dict[str, Any] = {"data": []}
        if status == 200 and asked.line.startswith("POST"):
            text = [{"type": "text", "text": f"Answer {next(self.numbers)}."}]
            said = {
                "id": f"m{len(self.asked)}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": text,
            }
            said |= {"stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}
        elif status != 200:
            said = {
                "type": "error",
                "error": {"type": "authentication_error", "message": self.said or f"not {key}, {key[:-2]}**"},
            }
        lines = [f"HTTP/1.1 {status} X", "content-type: application/json", "connection: close"]
        if whose := {**ORGANISATIONS, **TOKENS}.get(key):
            lines.append(f"anthropic-organization-id: {whose}")
        if self.elsewhere:
            lines.append(f"location: {self.elsewhere}")
        body = json.dumps(said).encode()
        yield "\r\n".join((*lines, f"content-length: {len(body)}", "", "")).encode() + body


class House(NamedTuple):
    """A gateway with a log in ``place``, the provider of its clients, and one whose key the operator has."""

    gateway: Running
    own: Provider
    operators: Provider
    place: Path
    key: str
    slow: str

    def asks(self, key: str = "", *more: Any, headers: Mapping[str, str] | None = None, model: str = MODEL) -> Reply:
        """A message with a credential of one's own."""
        said = [{"role": "user", "content": "Well?"}, *more]
        shown = {"x-api-key": key} if key else {}
        body = {"model": model, "max_tokens": 99, "messages": said}
        return self.gateway.ask("/v1/messages", body, headers={**shown, **(headers or {})}, key=None)

    def sessions(self) -> int:
        """How many conversations there are in the log."""
        file = self.place / "default.db"
        if not file.exists():
            return 0
        with closing(sqlite3.connect(file)) as log:
            return int(log.execute("SELECT count(*) FROM sessions").fetchone()[0])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One for all tests."""
    place = tmp_path_factory.mktemp("own")
    own, operators = Provider(), Provider()
    (secret, row), (slow, rare) = (
        new_key(Terms(limits=limits), 1, name=name) for name, limits in (("laptop", Limits()), ("slow", Limits(1)))
    )
    office = open_gateway_state(place)
    office.keys.create(row)
    office.keys.create(rare)
    office.close()
    keyed = place / "key"
    keyed.write_text(OPERATORS)
    keyed.chmod(0o600)
    with own.server, operators.server:
        ups = {
            "mine": {"endpoint": "anthropic", "base_url": f"{own.server.url}/v1", "credentials": "client"},
            "house": {"endpoint": "anthropic", "base_url": f"{operators.server.url}/v1", "key_file": str(keyed)},
        }
        models = {
            "both": {"targets": [{"upstream": "mine", "model": "claude-opus-4-7"}], "fallbacks": ["spare"]},
            "spare": {"targets": [{"upstream": "house", "model": MODEL}]},
        }
        logs = {"level": "info", "audit": str(place / "audit")}
        tables: dict[str, Any] = {"routing": {"breaker_failures": 1}, "server": {"workers": 2}}
        with running(WIRING, store={"path": str(place)}, upstreams=ups, models=models, logs=logs, **tables) as gateway:
            yield House(gateway, own, operators, place, secret, slow)


@pytest.fixture
def house(made: House) -> House:
    """As it was at first; what providers were asked is forgotten."""
    for provider in (made.own, made.operators):
        provider.asked.clear()
        provider.revoked, provider.status, provider.elsewhere = {REVOKED}, 0, ""
        provider.said = ""
    return made


def test_a_credential_goes_to_its_provider_as_it_came(house: House) -> None:
    """Asked about once, before anything is stored; then it answers, and the operator's provider hears nothing."""
    for _ in range(2):
        assert 200 == house.asks(FIRST).status
    assert ["GET", "POST", "POST"] == [asked.line.split()[0] for asked in house.own.asked]
    assert {FIRST} == {asked.headers["x-api-key"] for asked in house.own.asked}
    assert [] == house.operators.asked
    assert 200 == house.asks(headers={"authorization": f"Bearer {FIRST}", "anthropic-beta": "oauth-2025-04-20"}).status
    for asked in house.own.asked[-2:]:
        assert ("oauth-2025-04-20", f"Bearer {FIRST}") == (
            asked.headers["anthropic-beta"],
            asked.headers["authorization"],
        )
    assert "x-api-key" not in house.own.asked[-1].headers


@pytest.mark.parametrize("headers", [{}, {"x-api-key": REVOKED}, {"x-api-key": NOBODY}, {"thinkback-key": "tb-wrong"}])
def test_whoever_is_not_known_gets_401_and_leaves_nothing(house: House, headers: dict[str, str]) -> None:
    """Nothing shown, a key that the provider refuses, one by which it names nobody, a wrong key of the gateway."""
    before = house.sessions()
    refused = house.asks(headers=headers)
    assert (401, "error", "authentication_error") == (
        refused.status,
        refused.json["type"],
        refused.json["error"]["type"],
    )
    assert before == house.sessions()
    assert all(asked.line.startswith("GET") for asked in house.own.asked)
    assert not any(secret.encode() in refused.body for secret in SECRETS)


def test_a_key_beside_the_credential_says_who_asks(house: House) -> None:
    """Where the provider names nobody; the key goes no further, and what it may ask elsewhere it still may."""
    headers = {"thinkback-key": house.key}
    assert 200 == house.asks(NOBODY, headers=headers, model=f"mine/{MODEL}").status
    (asked,) = house.own.asked
    assert (NOBODY, False) == (asked.headers["x-api-key"], "thinkback-key" in asked.headers)
    assert 200 == house.asks(NOBODY, headers=headers, model=f"house/{MODEL}").status
    assert [OPERATORS] == [asked.headers["x-api-key"] for asked in house.operators.asked]
    without = house.asks(headers=headers, model=f"mine/{MODEL}")
    assert (401, "authentication_error") == (without.status, without.json["error"]["type"])


def test_a_credential_of_ones_own_opens_nothing_that_another_pays_for(house: House) -> None:
    """Neither by name nor by an alias that falls back to it, also while the own provider is out of order."""
    assert 404 == house.asks(BOB, model=f"house/{MODEL}").status
    assert 404 == house.asks(BOB, model="spare").status
    house.own.status = 500
    assert house.asks(BOB, model="both").status >= 500
    assert [] == house.operators.asked
    house.own.status = 0
    listed = house.gateway.ask("/v1/models", headers={"x-api-key": ALICE, "anthropic-version": "1"}, key=None)
    assert "both" in {model["id"] for model in listed.json["data"]}
    assert not any(model["id"].startswith(("house", "spare")) for model in listed.json["data"])


def test_what_fails_for_one_does_not_stop_another(house: House) -> None:
    """A breaker is of one principal."""
    assert [200, 200] == [house.asks(key).status for key in (ALICE, BOB)]
    house.own.status = 429
    assert 429 == house.asks(BOB, model="mine/claude-opus-4-5").status
    house.own.status = 0
    assert 200 == house.asks(ALICE, model="mine/claude-opus-4-5").status


def test_a_redirect_and_a_fail_over_take_nothing_along(house: House) -> None:
    """What another host gets by a fail-over is its own key."""
    assert 200 == house.asks(ALICE).status
    house.own.status, house.own.elsewhere = 307, house.operators.server.url
    assert house.asks(ALICE, model="mine/claude-opus-4-1").status >= 400
    assert [] == house.operators.asked
    house.own.status, house.own.elsewhere = 503, ""
    keyed = {"thinkback-key": house.key}
    assert 200 == house.asks(ALICE, headers=keyed, model="both").status
    assert [OPERATORS] == [asked.headers["x-api-key"] for asked in house.operators.asked]
    assert ALICE not in repr(house.operators.asked)


def test_conversations_stay_with_their_organisation(house: House) -> None:
    """Another credential of the same one goes on in it; one of another finds nothing, whatever it claims to be."""
    first = house.asks(ALICE)
    said = first.json["content"][0]["text"]
    more = ({"role": "assistant", "content": said}, {"role": "user", "content": "And?"})
    same, other = house.asks(AMY, *more), house.asks(BOB, *more)
    claims = {"anthropic-organization-id": "org-a", "openai-organization": "org-a", "chatgpt-account-id": "org-a"}
    claimed = house.asks(BOB, *more, headers=claims)
    assert first.headers["thinkback-session"] == same.headers["thinkback-session"]
    assert ("complete", "unknown; brought=1") == (
        same.headers["thinkback-reattach"],
        other.headers["thinkback-reattach"],
    )
    assert first.headers["thinkback-session"] != claimed.headers["thinkback-session"]
    assert not claims.keys() & house.own.asked[-1].headers.keys()


def test_a_credential_that_was_revoked_ends_at_once(house: House) -> None:
    """The provider's refusal is passed on without its words, which quote the key, and ends what was known."""
    assert 200 == house.asks(ENDING).status
    house.own.revoked = {ENDING}
    refused = house.asks(ENDING)
    assert (401, "authentication_error") == (refused.status, refused.json["error"]["type"])
    assert ENDING[:-2].encode() not in refused.body
    before = house.sessions()
    assert 401 == house.asks(ENDING).status
    assert before == house.sessions()


def test_what_a_provider_says_of_money_is_for_its_client(house: House) -> None:
    """In its own words; the credential goes on to hold."""
    assert 200 == house.asks(ALICE).status
    house.own.status, house.own.said = 402, "your credit balance is too low"
    refused = house.asks(ALICE, model="mine/claude-opus-4-2")
    assert (402, "your credit balance is too low") == (refused.status, refused.json["error"]["message"])


def test_two_credentials_are_one_too_many(house: House) -> None:
    """And one in a scheme that is none of a token, or that no header can hold."""
    both = house.asks(ALICE, headers={"authorization": f"Bearer {BOB}"})
    assert (400, "invalid_request_error") == (both.status, both.json["error"]["type"])
    assert 401 == house.asks(headers={"authorization": "Basic YTpi"}).status
    assert 401 == house.asks(headers={"x-api-key": "x" * 20_000}).status
    assert [] == house.own.asked


def test_no_credential_is_kept_anywhere(house: House) -> None:
    """Not in a file of the gateway's: log, keys, audit, spool."""
    house.asks(ALICE)
    house.asks(REVOKED)
    kept = b"".join(file.read_bytes() for file in house.place.rglob("*") if file.is_file())
    assert len(kept) > 10_000
    assert not any(secret.encode() in kept or secret[:-2].encode() in kept for secret in SECRETS)


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=60),
    st.sampled_from(("x-api-key", "thinkback-key", "authorization")),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_shown_gets_an_answer_of_the_dialect(house: House, value: str, name: str) -> None:
    """Bytes of any kind where a credential should be."""
    refused = house.asks(headers={name: re.sub(r"[\x7f-\x9f]", "", value)})
    assert 400 <= refused.status < 500
    assert "error" == refused.json["type"]


def test_many_at_once_ask_once(house: House) -> None:
    """Of one credential that nobody asked about before."""
    threads = [threading.Thread(target=house.asks, args=(NEW,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == sum(asked.line.startswith("GET") for asked in house.own.asked)


@pytest.mark.parametrize(
    ("places", "shown", "asked"),
    [
        (("deepseek", "openai"), {"authorization": "Bearer sk-own-0001"}, []),
        (("openai",), {"authorization": "Bearer sk-own-0001"}, ["openai"]),
        (("deepseek",), {"x-api-key": "sk-own-0001"}, []),
        (("deepseek",), {"authorization": "Bearer sk-own-0001", "thinkback-key": ""}, []),
    ],
)
def test_a_list_of_models_tells_nobody_a_credential_of_somebody_else(
    tmp_path: Path, places: tuple[str, ...], shown: Mapping[str, str], asked: list[str]
) -> None:
    """Clients of two dialects ask for it in the same words: where both have a place, neither gets the credential."""
    providers = {name: Provider() for name in places}
    with ExitStack() as open:
        ups = {
            name: {
                "endpoint": name,
                "base_url": f"{open.enter_context(provider.server).url}/v1",
                "credentials": "client",
            }
            for name, provider in providers.items()
        }
        gateway = open.enter_context(running(WIRING, store={"path": str(tmp_path)}, upstreams=ups))
        assert 401 == gateway.ask("/v1/models", headers=shown, key=None).status
    assert asked == [name for name, provider in providers.items() if provider.asked]


def test_a_minute_that_is_shared_is_counted_before_the_body(house: House) -> None:
    """Who has no request left hears that before anything is read."""
    assert 404 == house.asks(headers={"x-api-key": house.slow}, model="none").status
    with house.gateway.connect() as connection:
        head = f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: {house.slow}\r\ncontent-length: 9\r\n\r\n"
        connection.sendall(head.encode())
        assert b"429" == read_until(connection, b"1 request per minute").split()[1]


def test_a_credential_stays_where_it_was_granted_for_while_the_configuration_changes(tmp_path: Path) -> None:
    """With a key of the gateway's or without: what is read again between head and body sends it to nobody else."""
    first, other = Provider(), Provider()

    def config(provider: Provider) -> Config:
        mine = {"endpoint": "anthropic", "base_url": f"{provider.server.url}/v1", "credentials": "client"}
        tables = {
            "store": {"path": str(tmp_path)},
            "upstreams": {"mine": mine},
            "routing": {"defaults": {"anthropic": "mine"}},
        }
        return msgspec.convert(tables, Config)

    body = json.dumps({"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Well?"}]}).encode()
    secret, row = new_key(Terms(), 1)
    office = open_gateway_state(tmp_path)
    office.keys.create(row)
    office.close()

    async def asked(headers: Mapping[str, str]) -> int:
        quiet = Log(Logs("error"), lambda line: None)
        told: list[Any] = []
        read: list[bytes] = []
        behind = await open_behind(config(first), quiet, Metrics())
        app = App(behind, config(first), log=quiet, metrics=Metrics())

        async def receive() -> dict[str, Any]:
            if read:
                await asyncio.Event().wait()
            read.append(body)
            await behind.configure(config(other))
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            told.append(message)

        raw = [(name.encode(), value.encode()) for name, value in {**headers, "host": "localhost"}.items()]
        scope = {"type": "http", "method": "POST", "path": "/v1/messages", "headers": raw, "client": ("10.0.0.9", 1)}
        await app(scope, receive, send)
        await behind.close()
        return int(told[0]["status"])

    with first.server, other.server:
        for headers in ({"x-api-key": ALICE}, {"x-api-key": ALICE, "thinkback-key": secret}):
            assert 503 == asyncio.run(asked(headers))
    assert [] == other.asked


def test_a_token_that_is_renewed_stays_the_account_of_its_organisation(house: House) -> None:
    """Beside a key of the gateway the provider says whose it is, once; where it does not, the key does."""

    def account(token: str) -> str:
        asked = house.asks(
            headers={"authorization": f"Bearer {token}", "thinkback-key": house.key}, model=f"mine/{MODEL}"
        )
        assert 200 == asked.status
        store = open_store(house.place / "default.db")
        commits = store.read(asked.headers["thinkback-session"])
        store.close()
        return [c.value.target["account"] for c in commits if isinstance(c.value, Request)][-1]

    today, renewed, another, unnamed = TOKENS
    assert ["org-t", "org-t", "org-t", "org-u"] == [account(token) for token in (today, today, renewed, another)]
    assert 3 == sum(asked.line.startswith("GET") for asked in house.own.asked)
    assert account(unnamed).startswith("own:key-")
