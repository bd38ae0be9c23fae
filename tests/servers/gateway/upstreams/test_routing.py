"""From a model's name to places, with clock, chance and day in hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import CredentialError, NetworkError, NotFoundError
from thinkback.model.blocks import Origin
from thinkback.proxy.events import Route
from thinkback.proxy.problems import Refused, problem_of
from thinkback.rules import load_rulebook
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.grant import OPEN, Grant
from thinkback.servers.gateway.own import Own
from thinkback.servers.gateway.upstreams.routing import Choice, Router
from thinkback.session.endpoint_config import EndpointConfig

BOOK = load_rulebook()


class Clock:
    """Seconds that a test moves on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two keys, and no configuration of the person who runs the tests."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    for name in ("OPENAI_API_KEY", "DEEPSEEK_API_KEY", "ANTHROPIC_API_KEY", "SECOND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-first")
    monkeypatch.setenv("SECOND", "sk-second")


def config(**tables: Any) -> Config:
    """A configuration as a file would give it."""
    return msgspec.convert(tables, Config)


def router(given: Config | None = None, chance: float = 0.0, **options: Any) -> Router:
    return Router(given or config(), BOOK, chance=lambda: chance, **{"day": lambda: "2026-11-01", **options})


TWO = config(
    upstreams={
        "one": {"endpoint": "openai", "account": "org-1"},
        "two": {"endpoint": "openai", "account": "org-2", "key_env": "SECOND"},
    },
    models={
        "smart": {
            "targets": [{"upstream": "one", "model": "gpt-5.4"}, {"upstream": "two", "model": "gpt-5.4"}],
            "fallbacks": ["other"],
            "settings": {"reasoning.effort": "high"},
        },
        "other": {"targets": [{"upstream": "two", "model": "gpt-5.4-mini"}], "fallbacks": ["smart"]},
    },
)


def tried(choice: Choice) -> list[str]:
    """All places of a choice in order, each failing."""
    names = [f"{choice.current.upstream}/{choice.current.target.model}"]
    while name := choice.fail_over("HTTP 500"):
        names.append(name)
    return names


def headers(route: Route) -> dict[str, str]:
    return dict(route.authenticator("https://x", {}, b"").headers)


def test_model_of_the_catalogue() -> None:
    """``endpoint/model``, where everything after the first slash is the model."""
    route = router().choose("openai/a/b", OPEN).current
    assert ("openai/a/b", "openai", "a/b") == (route.name, route.target.endpoint.id, route.target.model)
    assert {"Authorization": "Bearer sk-first"} == headers(route)
    assert ("text/event-stream", "application/json") == (route.streaming["Accept"], route.whole["Accept"])


def test_upstream_of_the_configuration_goes_before_the_catalogue() -> None:
    """A name in both is the operator's."""
    given = config(upstreams={"openai": {"base_url": "http://127.0.0.1:1/v1", "endpoint": "openai"}})
    assert "http://127.0.0.1:1/v1" == router(given).choose("openai/m", OPEN).current.target.base_url


@pytest.mark.parametrize("asked", ["", "gpt-5.4", "openai/", "/gpt-5.4", "nowhere/gpt-5.4", "smart "])
def test_model_that_there_is_not(asked: str) -> None:
    """Neither an alias nor a model of an endpoint."""
    with pytest.raises(NotFoundError, match="does not exist, or this key may not use it"):
        router(TWO).choose(asked, OPEN)


def test_catalogue_can_be_closed() -> None:
    """Then only aliases are left."""
    closed = msgspec.structs.replace(TWO, routing=msgspec.structs.replace(TWO.routing, allow_catalogue=False))
    for asked in ("openai/gpt-5.4", "one/gpt-5.4"):
        with pytest.raises(NotFoundError):
            router(closed).choose(asked, OPEN)
    assert "one" == router(closed).choose("smart", OPEN).current.upstream


def test_key_is_bound_to_its_models() -> None:
    """What is not granted looks like what is not there; a granted alias may fall back to one that is not."""
    grant = Grant("k", models=("sma*", "openai/gpt-5*"))
    for asked in ("other", "openai/o3", "two/gpt-5.4"):
        with pytest.raises(NotFoundError, match="does not exist, or this key may not use it"):
            router(TWO).choose(asked, grant)
    assert "openai" == router(TWO).choose("openai/gpt-5.4", grant).current.upstream
    assert ["one/gpt-5.4", "two/gpt-5.4", "two/gpt-5.4-mini"] == tried(router(TWO).choose("smart", grant))
    every = router(TWO).names(OPEN)
    keyed = [name for name in every if name.startswith("openai/gpt-5")]
    assert (["smart", *keyed], ["smart", "other", "one/gpt-5.4"]) == (router(TWO).names(grant), every[:3])
    assert "openai/gpt-5.4" in keyed
    assert {"one/o3", "two/gpt-5.4", "two/gpt-5.4-mini"} <= set(every)
    limited = router(TWO).names(Grant("k", models=("one/gpt-5*",)))
    assert [name for name in every if name.startswith("one/gpt-5")] == limited


def test_fallbacks_follow_once_each() -> None:
    """Also where they name each other."""
    assert ["two/gpt-5.4-mini", "one/gpt-5.4", "two/gpt-5.4"] == tried(router(TWO).choose("other", OPEN))


def test_settings_are_those_of_the_alias_that_the_place_is_from() -> None:
    """A fallback brings its own."""
    choice = router(TWO).choose("smart", OPEN)
    assert {"reasoning.effort": "high"} == choice.current.settings
    choice.fail_over("")
    choice.fail_over("")
    assert {} == choice.current.settings


def test_failure_that_was_told_is_counted_once() -> None:
    """Three attempts are three failures, and the end of the request is none more."""
    routes = router()
    choice = routes.choose("openai/m", OPEN)
    for _ in range(3):
        assert "" == choice.fail_over("HTTP 500")
    choice.failed()
    routes.choose("openai/m", OPEN).failed()
    assert "openai" == routes.choose("openai/m", OPEN).current.upstream
    routes.choose("openai/m", OPEN).failed()
    with pytest.raises(NetworkError):
        routes.choose("openai/m", OPEN)


def test_client_is_told_when_to_come_back() -> None:
    """503 in place of 502, with the seconds and the last reason; not with a provider's words, or an address."""
    routes = router()
    for reason in (*["no connection to house: refused"] * 4, "HTTP 429: key sk-1 is out of quota"):
        routes.choose("openai/m", OPEN).fail_over(reason)
    with pytest.raises(NetworkError) as caught:
        routes.choose("openai/m", OPEN)
    problem, retry_after = problem_of(caught.value)
    assert "(the last failure: status 429, Too Many Requests; the next try: in 30 s)" in problem.message
    assert (503, "upstream_resting") == (problem.status, problem.code)
    assert retry_after is not None
    assert 29 < retry_after <= 30


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("", "its response broke off"),
        ("no connection to house: refused", "no response"),
        ("HTTP 529: overloaded", "status 529;"),
    ],
)
def test_a_pause_names_its_cause_in_our_words(reason: str, said: str) -> None:
    """One that broke off, one that could not be reached, and a status without a name."""
    routes = router()
    for _ in range(5):
        choice = routes.choose("openai/m", OPEN)
        choice.fail_over(reason) if reason else choice.failed()
    with pytest.raises(NetworkError) as caught:
        routes.choose("openai/m", OPEN)
    assert f"the last failure: {said}" in caught.value.message


def weighted(*weights: float) -> Config:
    targets = [{"upstream": "openai", "model": f"m{at}", "weight": weight} for at, weight in enumerate(weights)]
    return config(models={"m": {"targets": targets}})


@pytest.mark.parametrize(("chance", "first"), [(0.0, "m0"), (0.24, "m0"), (0.25, "m1"), (0.99, "m1")])
def test_weights_are_shares(chance: float, first: str) -> None:
    """One in four, and three in four."""
    assert first == router(weighted(1, 3), chance).choose("m", OPEN).current.target.model


def test_target_without_weight_is_a_last_resort() -> None:
    """It is never drawn, but asked when the others fail."""
    assert ["openai/m1", "openai/m0", "openai/m2"] == tried(router(weighted(0, 1, 0)).choose("m", OPEN))


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=6), st.floats(0, 1, exclude_max=True))
def test_every_target_is_tried_once(weights: list[float], chance: float) -> None:
    """However the lot falls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-first")
        names = tried(router(weighted(*weights), chance).choose("m", OPEN))
    assert Counter(f"openai/m{at}" for at in range(len(weights))) == Counter(names)


def origin(account: str, model: str = "gpt-5.4", **options: Any) -> Origin:
    target = router().choose("openai/gpt-5.4", OPEN).current.target
    given: dict[str, Any] = {"endpoint": target.base_url, "account_known": True, **options}
    return Origin(target.endpoint.dialect, requested_model=model, account=account, **given)


def test_conversation_goes_to_the_account_of_its_reasoning() -> None:
    """Whatever the lot says; the rest of the order stays."""
    choice = router(TWO).choose("smart", OPEN, [origin("org-1"), origin("org-2")])
    assert ["two/gpt-5.4", "one/gpt-5.4", "two/gpt-5.4-mini"] == tried(choice)
    assert "one" == router(TWO, 0.9).choose("smart", OPEN, [origin("org-1")]).current.upstream


def test_newest_reasoning_that_a_place_takes_decides() -> None:
    """An account that is not among the candidates says nothing."""
    choice = router(TWO).choose("smart", OPEN, [origin("org-2"), origin("org-9"), origin("", endpoint="https://gone")])
    assert "two" == choice.current.upstream


def test_account_that_does_not_answer_is_passed_over() -> None:
    """Its breaker is open: the conversation goes elsewhere."""
    clock = Clock()
    routes = router(TWO, clock=clock)
    for _ in range(5):
        routes.choose("smart", OPEN, [origin("org-2")]).failed()
    assert "one" == routes.choose("smart", OPEN, [origin("org-2")]).current.upstream
    clock.now += 30.0
    assert "two" == routes.choose("smart", OPEN, [origin("org-2")]).current.upstream
    assert "one" == routes.choose("smart", OPEN, [origin("org-2")]).current.upstream


def test_model_whose_places_all_fail_is_refused_with_a_time() -> None:
    """The client is told when to ask again; a success opens the way."""
    clock = Clock()
    routes = router(clock=clock)
    choice = routes.choose("openai/m", OPEN)
    for _ in range(5):
        choice.fail_over("HTTP 500")
    clock.now += 10.0
    with pytest.raises(NetworkError, match="ask again in 20 s") as caught:
        routes.choose("openai/m", OPEN)
    assert {"phase": "network", "retry_after": 20.0, "upstream": "openai/m"} == caught.value.details
    assert "openai" == routes.choose("openai/another", OPEN).current.upstream
    choice.succeeded()
    assert "openai" == routes.choose("openai/m", OPEN).current.upstream


def test_breakers_outlive_a_new_configuration() -> None:
    """What failed before a reload is not asked at once after it."""
    old = router()
    choice = old.choose("openai/m", OPEN)
    for _ in range(5):
        choice.failed()
    with pytest.raises(NetworkError):
        router(breakers=old.breakers).choose("openai/m", OPEN)


def test_place_without_a_key_is_left_out() -> None:
    """As long as another one has a key; else that is what is wrong."""
    given = config(
        models={
            "m": {"targets": [{"upstream": "deepseek", "model": "x"}, {"upstream": "openai", "model": "y"}]},
            "n": {"targets": [{"upstream": "deepseek", "model": "x"}, {"upstream": "nowhere", "model": "y"}]},
        }
    )
    assert ["openai/y"] == tried(router(given).choose("m", OPEN))
    with pytest.raises(CredentialError, match="deepseek needs a key") as caught:
        router(given).choose("n", OPEN)
    problem = problem_of(caught.value).problem
    assert (400, "upstream_credentials") == (problem.status, problem.code)  # SDKs send a 5xx three times
    assert "no key for deepseek: set DEEPSEEK_API_KEY in the gateway's environment" in problem.message


def test_a_gateway_without_any_key_lists_what_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The referee answers there; beside an endpoint with a key it is not offered."""
    for name in {name for endpoint in BOOK.endpoints() for name in endpoint.auth.env}:
        monkeypatch.delenv(name, raising=False)
    assert ["referee/deepseek-v4-pro"] == router(config()).names(OPEN)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-1")
    names = {name.partition("/")[0] for name in router(config()).names(OPEN)}
    assert ("deepseek" in names, "referee" in names) == (True, False)


def test_key_from_a_file(tmp_path: Path) -> None:
    """White space around it is no part of it; an error quotes the path alone."""
    file = tmp_path / "key"
    file.write_text("sk-of-a-file\n")
    file.chmod(0o600)
    given = config(upstreams={"a": {"endpoint": "openai", "key_file": str(file)}})
    assert {"Authorization": "Bearer sk-of-a-file"} == headers(router(given).choose("a/m", OPEN).current)
    file.write_bytes(b"sk-\xff")
    with pytest.raises(CredentialError, match="not valid text"):
        router(given).choose("a/m", OPEN)
    file.unlink()
    with pytest.raises(CredentialError):
        router(given).choose("a/m", OPEN)


def test_headers_with_credentials_are_references(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they name is sent, and stands in no ``repr``."""
    monkeypatch.setenv("TOKEN", "of-the-house")
    given = config(
        upstreams={
            "a": {"base_url": "http://127.0.0.1:1/v1", "headers": {"X-Token": "env:TOKEN", "X-Zone": "env: none"}},
            "b": {"endpoint": "openai", "headers": {"Authorization": "env:NOWHERE"}},
        }
    )
    route = router(given).choose("a/m", OPEN).current
    assert {"X-Token": "of-the-house", "X-Zone": "env: none"}.items() <= route.streaming.items()
    assert "of-the-house" not in repr(route)
    with pytest.raises(CredentialError, match="NOWHERE"):
        router(given).choose("b/m", OPEN)


def test_place_is_found_once_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same object until the day changes; then keys and rules are looked up again."""
    days = ["2026-11-01"]
    routes = router(TWO, day=lambda: days[-1])
    first = routes.choose("smart", OPEN).current
    assert first is routes.choose("smart", OPEN).current
    monkeypatch.setenv("OPENAI_API_KEY", "sk-changed")
    assert {"Authorization": "Bearer sk-first"} == headers(routes.choose("smart", OPEN).current)
    days.append("2026-11-02")
    assert {"Authorization": "Bearer sk-changed"} == headers(routes.choose("smart", OPEN).current)


def test_models_without_end_are_forgotten() -> None:
    """Clients name models of the catalogue as they like; the router keeps some hundreds."""
    routes = router()
    for at in range(600):
        routes.choose(f"openai/m{at}", OPEN)
    assert 512 == len(routes._routes)


def test_place_of_an_upstream() -> None:
    """Headers, proxy and account are those of the configuration."""
    given = config(
        upstreams={"a": {"base_url": "http://127.0.0.1:1/v1", "proxy": "http://p", "headers": {"X": "1"}}},
    )
    route = router(given).choose("a/m", OPEN).current
    assert isinstance(route.place, EndpointConfig)
    assert ("http://p", "1") == (route.place.proxy, route.whole["X"])
    assert {} == headers(route)


def test_two_credentials_of_one_key_are_two_accounts() -> None:
    """What one account minted goes to no other; where nothing lasting names the account, it is that of the key."""
    upstreams = {
        "mine": {"endpoint": "openai", "credentials": "client"},
        "cloud": {"endpoint": "vertex", "base_url": "https://eu-x.googleapis.com/v1", "credentials": "client"},
    }
    found, grant = router(config(upstreams=upstreams)), Grant("k")

    def account(asked: str, front: str, **shown: str) -> tuple[str, bool]:
        beside = {name.replace("_", "-"): said for name, said in shown.items() if name != "key"}
        own = Own({"authorization": shown["key"]}, beside, found.own_place(front))
        target = found.choose(asked, grant, front=front, own=own).current.target
        return target.account, target.account_known

    first = account("mine/gpt-5.4", "openai-responses", key="Bearer sk-first-one")
    assert first == account("mine/gpt-5.4", "openai-responses", key="Bearer sk-first-one")
    assert first != account("mine/gpt-5.4", "openai-responses", key="Bearer sk-another")
    assert not first[1]
    named = account("mine/gpt-5.4", "openai-responses", key="Bearer sk-another", openai_organization="org")
    assert ("org", True) == named
    assert ("own:k", False) == account("cloud/gemini-3-pro", "gemini", key="Bearer ya29.of-an-hour")


CLIENTS = {
    "mine": {"endpoint": "anthropic", "credentials": "client"},
    "spare": {"endpoint": "deepseek", "key_env": "SECOND"},
}


@pytest.mark.parametrize("allow_catalogue", [True, False])
def test_every_name_in_a_list_leads_to_whom_it_is_listed_for(allow_catalogue: bool) -> None:
    """With the catalogue or without; a place for clients' own credentials is for clients of its dialect."""
    models = {
        "mine-too": {"targets": [{"upstream": "mine", "model": "claude-opus-4-6"}]},
        "ours": {"targets": [{"upstream": "spare", "model": "m"}, {"upstream": "mine", "model": "m"}]},
        "claude-*": {"targets": [{"upstream": "mine", "model": "claude-*"}]},
    }
    found = router(config(upstreams=CLIENTS, models=models, routing={"allow_catalogue": allow_catalogue}))
    principal = Grant("own-1", upstream="mine", account="org")
    for grant, front in ((principal, "anthropic"), (Grant("k"), "anthropic"), (Grant("k"), "openai-chat")):
        names = found.names(grant, front)
        assert names
        own = Own({"x-api-key": "sk-own"}, {}, found.own_place(front))
        led = {name: found.choose(name, grant, front=front, own=own).current for name in names}
        wrong = [name for name, route in led.items() if not route.target.model or "mine/" in route.target.model]
        assert [] == wrong
        assert ("mine-too" in names, "mine" in {route.upstream for route in led.values()}) == (
            (True, True) if front == "anthropic" else (False, False)
        )
    assert "claude-opus-4-6" in found.names(principal, "anthropic")
    assert allow_catalogue == ("mine/claude-opus-4-6" in found.names(principal, "anthropic"))


@pytest.mark.parametrize(
    "change",
    [
        {"base_url": "http://127.0.0.1:9/v1"},
        {"proxy": "http://127.0.0.1:9"},
        {"credentials": "gateway", "key_env": "SECOND"},
    ],
)
def test_a_credential_goes_nowhere_but_where_it_was_granted_for(change: dict[str, str]) -> None:
    """A configuration that is read again while a request arrives neither moves it, nor lets it spend another's."""
    own = Own({"x-api-key": "sk-own"}, {}, router(config(upstreams=CLIENTS)).own_place("anthropic"))
    later = router(config(upstreams={"mine": {**CLIENTS["mine"], **change}}))
    principal = Grant("own-1", upstream="mine", account="org")
    refused = NotFoundError if "key_env" in change else Refused
    with pytest.raises(refused):
        later.choose("mine/claude-opus-4-6", principal, front="anthropic", own=own)
    if refused is Refused:
        with pytest.raises(Refused, match="configuration changed") as told:
            later.choose("mine/claude-opus-4-6", Grant("k"), front="anthropic", own=own)
        assert 503 == told.value.status
