"""The guide to the chat has every command, as it says of itself, and every key that is bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from thinkback.cli.chat.table import table

GUIDE = Path(__file__).parents[3] / "docs" / "chat.md"


def test_the_guide_lists_every_command() -> None:
    """Usage and help in the words of ``/help``, in its order."""
    rows = re.findall(r"^\| `/(.+)` \| (.+) \|$", GUIDE.read_text(), re.MULTILINE)

    assert [(row.usage.replace("|", r"\|"), row.help) for row in table().values()] == rows


@pytest.mark.parametrize(
    "key", ["Enter", "Alt-Enter", "Tab", "Ctrl-C", "Ctrl-D", "Ctrl-T", "Ctrl-O", "Ctrl-R", "Ctrl-X Ctrl-E"]
)
def test_the_guide_lists_every_key(key: str) -> None:
    """Those that the chat binds, and the ones of the input line that people ask for."""
    assert re.search(rf"^\| {key}\b", GUIDE.read_text(), re.MULTILINE)
