"""The key of the tests' upstreams."""

from __future__ import annotations

import pytest

from tests.servers.gateway.harness.engines import KEY


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
