"""The frameworks that adapters are for: what their tests run with."""

from __future__ import annotations

import re
from pathlib import Path

PINS = Path(__file__).parents[2] / "requirements" / "clients.txt"
HOSTS = ("llm", "openai-agents", "pydantic-ai-slim")
"""The packages of the frameworks."""


def test_each_framework_is_pinned() -> None:
    """In the environment of `make adapters`, with what its tests run by."""
    pinned = re.findall(r"^(\S+)==", PINS.read_text(encoding="utf-8"), re.MULTILINE)

    assert [] == [name for name in (*HOSTS, "hypothesis", "pytest") if name not in pinned]
