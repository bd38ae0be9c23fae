"""Fixtures of the referee's own tests."""

from __future__ import annotations

import pytest

from thinkback_referee import Ledger


@pytest.fixture
def ledger() -> Ledger:
    """An empty ledger."""
    return Ledger()
