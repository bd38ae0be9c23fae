"""Logs of playbooks are closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.proxy.playbook import LOGS


@pytest.fixture(autouse=True)
def closed_logs() -> Iterator[None]:
    """Newer Pythons warn of databases that nobody closed."""
    yield
    while LOGS:
        LOGS.pop().close()
