"""Stores for the conformance suite: every kind, opened and closed around each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from thinkback.log.protocol import Store
from thinkback.stores import open_store

OPENERS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda place: open_store(":memory:"),
    "sqlite-full": lambda place: open_store(place / "log.db"),
    "sqlite-normal": lambda place: open_store(place / "log.db", "normal"),
}


@pytest.fixture(params=OPENERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """One store of each kind, empty."""
    opened = OPENERS[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a log may be made."""
    return tmp_path / "log.db"
