"""What tests of adapters share: a log, and a strict provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from thinkback_referee import Referee


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a log is, or will be."""
    return tmp_path / "chats.db"


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    """A strict provider."""
    with Referee() as found:
        yield found
