"""``usage`` from the command line."""

from __future__ import annotations

import pytest

import thinkback
from tests.cli.command import Command


@pytest.mark.parametrize(("by", "rows"), [("model", 1), ("turn", 1), ("step", 2), ("session", 1)])
def test_tokens_by(talked: Command, by: str, rows: int) -> None:
    """The parts add up to the whole, in JSON and as a table."""
    told = talked("usage", "--by", by, "--json").json
    assert (rows, 2) == (len(told[f"by_{by}"]), told["total"]["steps"])
    assert told["total"]["output"] == sum(row["output"] for row in told[f"by_{by}"])
    shown = talked("usage", "--by", by).out.splitlines()
    assert shown[0].split() == [by, "input", "cached", "output", "reasoning"]
    assert "all" == shown[rows + 1].split()[0]


def test_context_and_budget(talked: Command) -> None:
    """What the next request carries, and what was spent of the budget where there is one."""
    told = talked("usage").out
    assert ("context:" in told, "then warn" in told) == (True, False)
    with thinkback.open(talked.db) as store:
        store.session("talk").set("reasoning.budget", 100_000)
    assert "of 100,000, then warn" in talked("usage", "--family").out
    assert 100_000 == talked("usage", "--json").json["budget"]["limit"]
