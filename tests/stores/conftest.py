"""Stores for the conformance suite: every kind, opened and closed around each test."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stores.model.store import MemoryStore
from tests.stores.postgres_server import Server
from thinkback.log.protocol import Store
from thinkback.stores import open_store

OPENERS: dict[str, Callable[[Path], Store]] = {
    "model": lambda place: MemoryStore(),
    "memory": lambda place: open_store(":memory:"),
    "sqlite-full": lambda place: open_store(place / "log.db"),
    "sqlite-normal": lambda place: open_store(place / "log.db", "normal"),
}


@pytest.fixture(params=[*OPENERS, "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """One store of each kind, empty."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        opened = open_store(server.url(), tenant=secrets.token_hex(8))
    else:
        opened = OPENERS[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a log may be made that several processes open: a file, or a database."""
    return str(tmp_path / "log.db") if request.param == "sqlite" else str(request.getfixturevalue("database"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a log may be made."""
    return tmp_path / "log.db"
