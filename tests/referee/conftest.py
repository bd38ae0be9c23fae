"""Fixtures of the referee's own tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from thinkback.referee import Ledger, Referee


@pytest.fixture
def referee() -> Iterator[Referee]:
    """A serving referee with the house script."""
    with Referee() as serving:
        yield serving


@pytest.fixture
def ledger() -> Ledger:
    """An empty ledger."""
    return Ledger()
