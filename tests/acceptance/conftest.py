"""Fixtures of the acceptance tests: a log in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import thinkback
from thinkback.session.store import SessionStore


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """An open log in memory."""
    with thinkback.open(":memory:") as opened:
        yield opened
