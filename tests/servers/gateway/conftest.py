"""Fixtures of the gateway's tests: a private CA, both event loops, and a referee with a key for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.drive.conftest import authority as authority
from tests.servers.gateway.harness.engines import KEY
from tests.servers.gateway.harness.offices import close_all
from tests.servers.gateway.harness.upstreams import LOOPS
from thinkback_referee import Referee


@pytest.fixture(params=["asyncio", "uvloop"])
def either_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test runs on both event loops, with ``in_loop``."""
    if request.param == "uvloop":
        LOOPS.append(pytest.importorskip("uvloop").new_event_loop)
    yield
    del LOOPS[1:]


@pytest.fixture(autouse=True)
def closed_offices() -> Iterator[None]:
    """Newer Pythons warn of databases that nobody closed."""
    yield
    close_all()


@pytest.fixture
def referee(monkeypatch: pytest.MonkeyPatch) -> Iterator[Referee]:
    """A referee, and the key that the gateway has for it."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "*")
    with Referee() as running:
        yield running
