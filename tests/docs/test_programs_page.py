"""The transport's page and the programs in ``examples``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import thinkback
from bench.examples import NAMES, PLACE, run
from thinkback_referee import Referee

ROOT = Path(__file__).parents[2]
HERE = ("anthropic_tools", "google_genai", "openai_async_chat", "openai_responses")
"""Those whose packages are installed for work on thinkback; `make programs` runs all of them."""


def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    """They keep texts and calls alone, at providers that demand reasoning: nothing is refused, and the model knows."""
    with Referee() as referee:
        shown = run(sys.executable, HERE, referee, tmp_path)
        statuses = [exchange.status for exchange in referee.requests]
    assert {200} == set(statuses)
    assert 14 == len(statuses)
    assert 3 == len(re.findall(r"still known; code word [a-z]+-[0-9]+ still known", shown))
    assert len(HERE) == shown.count("recorded in session")
    with thinkback.open(tmp_path / "chats.db") as store:
        names = [info.name for info in store.sessions()]
    assert len(HERE) == len(names)
    assert "weather" in names


def test_every_example_is_short_and_on_the_page() -> None:
    """At most 40 lines each."""
    page = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
    assert {name for name in NAMES if f"(../examples/{name}.py)" in page} == set(NAMES)
    assert max(len((PLACE / f"{name}.py").read_text(encoding="utf-8").splitlines()) for name in NAMES) <= 40
