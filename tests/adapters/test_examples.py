"""The programs in ``examples`` that need a framework; the others run in tests/docs/test_programs_page.py."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.examples import NAMES, run
from tests.adapters.hosts import need
from tests.docs.test_programs_page import HERE
from thinkback_referee import Referee

for module in ("agents", "langchain_openai", "llm", "pydantic_ai"):
    need(module)


def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    """One after another in one folder, as a person tries them: nothing is refused, and no log is in another's way."""
    names = [name for name in NAMES if name not in HERE]
    with Referee() as referee:
        shown = run(sys.executable, names, referee, tmp_path)
        statuses = {exchange.status for exchange in referee.requests}
    assert {200} == statuses
    assert len(names) <= shown.count("code word")
