"""The referee as a pytest fixture: ``pytest_plugins = ["thinkback.referee.fixture"]`` in a conftest.

A test that takes ``referee`` gets a fresh one on a free port of loopback; requests it refused are in
``referee.requests`` with the provider's own text.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .server import Referee


@pytest.fixture
def referee() -> Iterator[Referee]:
    """A running referee without a script: its models answer by the house script."""
    with Referee() as running:
        yield running
