"""The referee as a pytest fixture. pytest loads this plugin by itself where the distribution is installed.

A test that takes ``referee`` gets a fresh one on a free port of loopback; requests it refused are in
``referee.requests`` with the provider's own text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .server import Referee


@pytest.fixture
def referee() -> Iterator[Referee]:
    """A running referee without a script: its models answer by the house script."""
    from .server import Referee  # only where a test wants it: pytest loads the plugin in every run

    with Referee() as running:
        yield running
