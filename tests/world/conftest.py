"""The stand-ins, fresh for each test, and the keys that programs have for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Inside
from tests.servers.gateway.conftest import closed_offices as closed_offices
from tests.world.server import World

KEY = "sk-of-the-world"
KEYS = ("AWS_BEARER_TOKEN_BEDROCK", "DEEPSEEK_API_KEY", "MOONSHOT_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
STILL_FAILING: dict[str, str] = {
    "test_erasing.py::test_the_first_page_of_the_viewer_reads_what_it_shows": "pages read every session",
    "test_erasing.py::test_a_command_reads_what_it_shows[sessions": "it reads every session",
    "test_erasing.py::test_a_command_reads_what_it_shows[search -n 20 --project": "it reads every session",
}
"""Why tests fail that a change is under way for, by the beginning of their id behind the folder; each must fail."""
OTHER_KEYS = ("GEMINI_API_KEY", "MISTRAL_API_KEY", "OLLAMA_API_KEY", "COHERE_API_KEY", "WORLD_KEY")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Providers that listen, each with a key in the environment."""
    for name in (*KEYS, *OTHER_KEYS):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("NO_PROXY", "*")
    with World() as running:
        yield running


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    """``thinkback`` in this process, with its log and configuration under ``tmp_path``."""
    return Inside(tmp_path, monkeypatch, capsys)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what still fails."""
    for item in items:
        _, found, id = item.nodeid.partition("tests/world/")
        reasons = [reason for start, reason in STILL_FAILING.items() if found and id.startswith(start)]
        if reasons:
            item.add_marker(pytest.mark.xfail(strict=True, reason=reasons[0]))
