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
    return found


class Provider:
    """Answers with ``status`` and ``named``; ``now`` is its clock and that of who asks."""

    def __init__(self) -> None:
        self.status, self.named, self.now = 200, "org", 0.0
        self.asked: list[Mapping[str, str]] = []
        self.principals = Principals(self._ask, lambda: self.now)

    async def _ask(self, route: Route, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str]]:
        self.asked.append(headers)
        if not self.status:
            raise NetworkError("gone", details={"phase": "network"})
        return self.status, {"anthropic-organization-id": self.named} if self.named else {}

    def admits(self, shown: Own | None = None, route: Route | None = ROUTE) -> Grant:
        """The grant."""
        admitting: Coroutine[Any, Any, Grant] = self.principals.admit(shown or own(), route, "full")
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
    provider.principals.took(ROUTE, own())
    provider.now += LIFE - 1
    assert first == provider.admits() == Provider().admits()
    assert 1 == len(provider.asked)
    provider.now += 2
    provider.admits()
    provider.principals.refused(ROUTE, own())
    provider.principals.took(ROUTE, own())
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
    ],
)
def test_without_a_yes_and_a_name_nobody_is_meant(status: int, named: str, answer: tuple[int, str]) -> None:
    """And a failure is not asked about again at once."""
    provider = Provider()
    provider.status, provider.named = status, named
    assert [answer] * 2 == [provider.refuses(), provider.refuses()]
    assert 1 == len(provider.asked)
    provider.status, provider.named, provider.now = 200, "org", (LIFE if not named else FAILED) + 1
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
        Provider().admits(route=None)


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
