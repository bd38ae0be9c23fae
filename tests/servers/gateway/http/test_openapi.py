"""The gateway's description of itself is true, and what it describes can be asked in any way without breaking it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.servers.gateway.harness.running import Running, running
from thinkback.servers.gateway.http import routes
from thinkback.servers.gateway.http.openapi import DESCRIPTION
from thinkback.wire.registry import FRONTS, front
from thinkback_referee import Referee

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
WIRED = "thinkback.servers.gateway.running.wiring:open_behind"
schema = schemathesis.openapi.from_dict(DESCRIPTION)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The real gateway with the referee as its provider."""
    place = tmp_path_factory.mktemp("gateway")
    key = place / "key"
    key.touch(0o600)
    key.write_text("sk-test-0123456789abcdef")
    key.chmod(0o600)
    with Referee() as referee:
        upstream = {"endpoint": "deepseek", "base_url": referee.base_url("deepseek"), "key_file": str(key)}
        alias = {"targets": [{"upstream": "house", "model": "deepseek-v4-pro"}]}
        with running(
            WIRED,
            server={"no_auth": True},
            store={"path": str(place / "store")},
            upstreams={"house": upstream},
            models={"fast": alias},
        ) as made:
            yield made


def described() -> Iterator[tuple[str, str]]:
    """(path, method) of everything that is described."""
    for path, methods in DESCRIPTION["paths"].items():
        for method in methods:
            yield path, method.upper()


@pytest.mark.parametrize(("path", "method"), list(described()))
def test_what_is_described_is_served(path: str, method: str) -> None:
    """Every path has a route, with that method and no other but HEAD."""
    route = routes.find(path.replace("{model}", "some/model"), {})

    assert route is not None
    assert method in route.methods
    assert {method} == set(route.methods) - {"HEAD"}


def test_what_is_served_is_described() -> None:
    """Every route has a path."""
    paths = set(DESCRIPTION["paths"])
    addresses = [front(name).address for name in FRONTS]
    served = {
        *routes.PAGES,
        *(f"/v1{rest}" for each in addresses for rest in each.paths),
        *(f"/v1beta/models/{{model}}:{call}" for each in addresses for call in each.calls),
        *(f"/v1beta/models/{{model}}:{each.counting}" for each in addresses if each.counting),
        "/openai/deployments/{model}/chat/completions",
        *(f"{version}/models{rest}" for version in ("/v1", "/v1beta") for rest in ("", "/{model}")),
    }

    assert served == paths


@schema.parametrize()
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
def test_nothing_that_is_described_breaks_it(case: Any, house: Running) -> None:
    """Requests of the right shape and of wrong ones: each gets a response as described, never one of a fault."""
    if isinstance(case.body, dict) and isinstance(case.body.get("model"), str) and len(case.body["model"]) % 2:
        case.body["model"] = "fast"
    if case.path_parameters and len(str(case.path_parameters.get("model"))) % 2:
        case.path_parameters["model"] = "fast"
    response = case.call(base_url=f"http://127.0.0.1:{house.port}", timeout=20)

    case.validate_response(response, checks=CHECKS)


def test_the_description_is_served(house: Running) -> None:
    """As it stands in the source."""
    assert DESCRIPTION == house.ask("/openapi.json", key=None).json
