"""The frameworks that adapters are for: what may be installed, and what their tests run with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOSTS = {
    "langchain": "langchain",
    "llm": "llm",
    "openai-agents": "openai-agents",
    "pydantic-ai": "pydantic-ai-slim",
}
"""The extra of each adapter, and the package of its framework."""


def test_each_extra_asks_for_what_the_tests_run_with() -> None:
    """At least the release line that is pinned for `make adapters`: what nobody has tested is not promised."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pins = re.findall(r"^(\S+)==(\d+\.\d+)", (ROOT / "requirements" / "clients.txt").read_text(), re.MULTILINE)

    pinned = dict(pins)
    assert {"hypothesis", "pytest"} < pinned.keys()
    asked = {extra: f"{name}>={pinned[name]}" for extra, name in HOSTS.items()}
    assert asked == {extra: extras[extra][0] for extra in HOSTS}
