"""Offices for the conformance suite: each kind, empty, and where several processes may open one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.state import GatewayState


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A directory, or the address of an empty database."""
    return str(tmp_path / "store") if request.param == "sqlite" else str(request.getfixturevalue("database"))


@pytest.fixture
def office(place: str) -> Iterator[GatewayState]:
    """One office of each kind, empty."""
    opened = open_gateway_state(place)
    yield opened
    opened.close()
