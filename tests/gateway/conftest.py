"""Fixtures of the gateway's tests: a private CA, and both event loops."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.drive.conftest import authority as authority
from tests.gateway.harness.upstreams import LOOPS


@pytest.fixture(params=["asyncio", "uvloop"])
def either_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test runs on both event loops, with ``in_loop``."""
    if request.param == "uvloop":
        LOOPS.append(pytest.importorskip("uvloop").new_event_loop)
    yield
    del LOOPS[1:]
