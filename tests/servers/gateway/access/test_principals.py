"""Whose a credential is: asked once, for a while, of so many at most; a failure is asked about again soon."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest

from tests.proxy.playbook import Nobody
from thinkback.errors import NetworkError
from thinkback.proxy.events import Route
from thinkback.proxy.problems import Refused
from thinkback.rules import load_rulebook
from thinkback.servers.gateway.access import principals as module
from thinkback.servers.gateway.access.principals import FAILED, LIFE, Principals
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.own import Own, OwnKey, own_of
from thinkback.session.endpoint_config import EndpointConfig

TARGET = load_rulebook({}).target("anthropic", "claude-opus-4-6", on="2026-11-22")
ROUTE = Route("mine", EndpointConfig("m"), TARGET, Nobody(), {}, {}, {})


def own(key: str = "sk-one-two-three", **beside: str) -> Own:
    """What such a request shows."""
    found = own_of({"x-api-key": key, **{name.replace("_", "-"): value for name, value in beside.items()}}, {})
    assert found is not None
    return found._replace(place=ROUTE)


class Provider:
    """Answers with ``status`` and ``named``; ``now`` is its clock and that of who asks."""

    def __init__(self) -> None:
        self.status, self.named, self.now = 200, "org", 0.0
        self.after = ""
        self.organisations: Mapping[str, str] | None = None
        self.asked: list[Mapping[str, str]] = []
        self.principals = Principals(self._ask, lambda: self.now)

    async def _ask(self, route: Route, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str]]:
        self.asked.append(headers)
        if not self.status:
            raise NetworkError("gone", details={"phase": "network"})
        said = {"anthropic-organization-id": self.named, "retry-after": self.after}
        return self.status, {name: value for name, value in said.items() if value}

    def admits(self, shown: Own | None = None) -> Grant:
        """The grant."""
        admitting: Coroutine[Any, Any, Grant] = self.principals.admit(shown or own(), "full", self.organisations)
        return asyncio.run(admitting)

    def refuses(self, shown: Own | None = None) -> tuple[int, str]:
        """Status and code."""
        with pytest.raises(Refused) as refused:
            self.admits(shown)
        return refused.value.status, refused.value.code


def test_what_a_provider_said_holds_for_a_while() -> None:
    """For longer with every success; the same organisation is the same principal, also of another gateway."""
    provider = Provider()
    first = provider.admits()
    provider.now = LIFE - 1
    provider.principals.took(ROUTE, own(), {})
    provider.now += LIFE - 1
    assert first == provider.admits() == Provider().admits()
    assert 1 == len(provider.asked)
    provider.now += 2
    provider.admits()
    provider.principals.refused(ROUTE, own())
    provider.principals.took(ROUTE, own(), {})
    provider.admits()
    assert 3 == len(provider.asked)
    provider.named = "other"
    assert first.key != provider.admits(own("sk-another-one")).key


@pytest.mark.parametrize(
    ("status", "named", "answer"),
    [
        (401, "org", (401, "refused_credential")),
        (403, "org", (401, "refused_credential")),
        (500, "org", (503, "provider_unavailable")),
        (307, "org", (503, "provider_unavailable")),
        (0, "org", (503, "provider_unavailable")),
        (200, "", (401, "missing_key")),
        (404, "org", (401, "missing_key")),
        (405, "org", (401, "missing_key")),
    ],
)
def test_without_a_yes_and_a_name_nobody_is_meant(status: int, named: str, answer: tuple[int, str]) -> None:
    """And a failure is not asked about again at once."""
    provider = Provider()
    provider.status, provider.named = status, named
    assert [answer] * 2 == [provider.refuses(), provider.refuses()]
    assert 1 == len(provider.asked)
    provider.status, provider.named, provider.now = 200, "org", (LIFE if answer[1] == "missing_key" else FAILED) + 1
    provider.admits()


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used longest ago goes; of credentials that are asked about at once there are not too many."""
    monkeypatch.setattr(module, "REMEMBERED", 2)
    provider = Provider()
    for key in ("sk-number-one", "sk-number-two", "sk-number-three", "sk-number-two", "sk-number-one"):
        provider.admits(own(key))
    assert 4 == len(provider.asked)
    monkeypatch.setattr(module, "AT_ONCE", 0)
    assert (503, "busy") == provider.refuses(own("sk-number-four"))


def test_nobody_asks_without_a_place_or_a_credential() -> None:
    """Where no upstream takes any."""
    with pytest.raises(Refused, match="thinkback-key"):
        Provider().admits(own()._replace(place=None))


def test_what_goes_along_is_part_of_a_credential() -> None:
    """The account that it is used for; what else came stays, and nothing of it is shown."""
    route = Route(
        "o", EndpointConfig("m"), load_rulebook({}).target("openai", "gpt-5", on="2026-11-22"), Nobody(), {}, {}, {}
    )
    shown = own_of({"authorization": "Bearer sk-secret-key", "openai-organization": "o", "thinkback-key": "tb-x"}, {})
    assert shown is not None
    sent = shown.headers(route.target.endpoint.auth)
    credentials = OwnKey(sent)("", {}, b"")
    assert {"authorization": "Bearer sk-secret-key", "openai-organization": "o"} == sent == credentials.headers
    assert {"sk-secret-key"} == credentials.secrets
    assert "secret" not in f"{shown} {OwnKey(sent)} {credentials}"
    assert own_of({"authorization": "Bearer tb-ours", "x-api-key": "tb-ours"}, {}) is None
    by_address = own_of({}, {"key": ["AIza-of-the-client"]})
    assert by_address is not None
    assert {"x-goog-api-key": "AIza-of-the-client"} == by_address.shown


def test_refusals_push_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up credentials are as many as anybody likes; of good ones the one goes that was used longest ago."""
    monkeypatch.setattr(module, "REMEMBERED", 2)
    monkeypatch.setattr(module, "REFUSALS", 2)
    provider = Provider()
    for key in ("sk-number-one", "sk-number-two", "sk-number-one", "sk-number-three", "sk-number-one"):
        provider.admits(own(key))
    assert 3 == len(provider.asked)
    provider.status = 401
    for number in range(5):
        provider.refuses(own(f"sk-made-up-{number}"))
    provider.admits(own("sk-number-one"))
    assert 8 == len(provider.asked)
    provider.refuses(own("sk-made-up-4"))
    assert 8 == len(provider.asked)


def test_a_refusal_is_of_all_that_was_sent_and_a_success_of_the_credential() -> None:
    """What a provider refuses for want of a header it may take with it."""
    provider = Provider()
    provider.status = 401
    provider.refuses(own())
    provider.status = 200
    with_beta = own(anthropic_beta="oauth-2025-04-20")
    assert provider.admits(with_beta) == provider.admits(own(anthropic_beta="another")) == provider.admits(own())
    assert 2 == len(provider.asked)


def test_a_provider_that_names_nobody_is_not_asked() -> None:
    """What its responses would say is known before."""
    provider = Provider()
    target = load_rulebook({}).target("deepseek", "deepseek-v4-pro", on="2026-11-22")
    with pytest.raises(Refused, match="thinkback-key"):
        provider.admits(own()._replace(place=Route("d", EndpointConfig("m"), target, Nobody(), {}, {}, {})))
    assert [] == provider.asked


@pytest.mark.parametrize(("after", "seconds"), [("7", 7), ("", 1), ("soon", 1), ("99999999", 1)])
def test_too_many_requests_say_nothing_of_a_credential(after: str, seconds: int) -> None:
    """The client hears when to come again, and the next request asks."""
    provider = Provider()
    provider.status, provider.after = 429, after
    with pytest.raises(Refused) as refused:
        provider.admits()
    assert (429, "provider_busy", seconds) == (
        refused.value.status,
        refused.value.code,
        refused.value.retry_after,
    )
    provider.status = 200
    provider.admits()


def test_grants_share_their_settings() -> None:
    """By their identity the settings in force are found again."""
    provider = Provider()
    assert provider.admits().settings is provider.admits().settings


@pytest.mark.parametrize("value", ["Bearer tb-ours", "bearer  tb-ours", "tb-ours sk-more"])
@pytest.mark.parametrize("name", ["x-api-key", "api-key", "x-goog-api-key", "authorization"])
def test_a_key_of_the_gateway_is_no_credential_however_it_is_written(name: str, value: str) -> None:
    """It goes to no provider."""
    if name == "authorization" and not value.lower().startswith("bearer"):
        value = f"Bearer {value}"
    assert own_of({name: value}, {}) is None


def test_an_organisation_that_is_not_listed_stays_outside() -> None:
    """A listed one has the tenant that stands beside it; what is listed counts from the next request on."""
    provider = Provider()
    assert "default" == provider.admits().tenant
    provider.organisations = {"other": "team-b"}
    assert [(403, "organisation_not_listed")] * 2 == [provider.refuses(), provider.refuses()]
    with pytest.raises(Refused, match="the organisation org of your credential") as refused:
        provider.admits()
    assert {"organisation": "org"} == refused.value.details
    provider.organisations = {"org": "team-a", "other": "team-b"}
    assert "team-a" == provider.admits().tenant
    assert 1 == len(provider.asked)


def test_where_nobody_is_listed_nobody_is_asked() -> None:
    """Then a key of the gateway is the only way in."""
    provider = Provider()
    provider.organisations = {}
    assert (401, "missing_key") == provider.refuses()
    assert [] == provider.asked


def test_an_account_is_learned_of_the_answer_too() -> None:
    """Where the list of models is not to be had with a credential, a response to it says whose it is."""
    provider = Provider()
    provider.status = 403

    def account() -> str:
        return asyncio.run(provider.principals.account(own()))

    assert "" == account()
    provider.principals.took(ROUTE, own(), {})
    assert "" == account()
    provider.principals.took(ROUTE, own(), {"anthropic-organization-id": "org"})
    provider.now = FAILED + 1
    assert "org" == account()
    assert 1 == len(provider.asked)
