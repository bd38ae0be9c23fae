"""SECURITY.md: each promise names tests that there are."""

from __future__ import annotations

import re

from tests.docs.test_examples import ROOT

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_promise_names_its_tests() -> None:
    """Each row has at least one, and each is a function of its file."""
    section = PAGE.partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    named = [re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row) for row in rows]

    assert [] == [row for row, tests in zip(rows, named, strict=True) if not tests]
    missing = [
        f"{file}::{name}"
        for tests in named
        for file, name in tests
        if not re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert [] == missing


def test_the_page_is_found() -> None:
    """The README and the page for contributors lead to it."""
    for page in ("README.md", "CONTRIBUTING.md"):
        assert "(SECURITY.md)" in (ROOT / page).read_text(encoding="utf-8")
