"""Fixtures of sessions: a log in memory, the referee, and a private CA."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import thinkback
from tests.drive.conftest import authority as authority
from thinkback.session.store import SessionStore


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """An open log in memory."""
    with thinkback.open(":memory:") as opened:
        yield opened
