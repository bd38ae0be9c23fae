"""The token budget of the MCP server: what is charged, and that it fails closed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import BudgetSpent
from thinkback.servers.mcp.budget import TokenBudget, charge, estimated
from thinkback.turn.usage import TokenUse

ASKED, SAID, MOST = 10, 20, 1000


@pytest.mark.parametrize(
    ("use", "hidden", "charged"),
    [
        (TokenUse(100, None, 50, 30, True), True, 150),
        (TokenUse(100, None, 80, 30, False), True, 180),
        (TokenUse(100, None, 50, 30, False, estimated=True), True, 180),
        (TokenUse(100, None, 50, 30, None), True, 180),
        (TokenUse(None, None, 50, None, True), True, 60),
        (TokenUse(), True, 1010),
        (TokenUse(), False, 30),
        (TokenUse(100, None, None, None, True), True, 1100),
    ],
    ids=["inside", "beside", "beside, guessed", "nobody says", "no input", "nothing", "nothing hidden", "no output"],
)
def test_what_was_used_is_charged_and_what_is_not_known_at_its_most(use: TokenUse, hidden: bool, charged: int) -> None:
    """Reported usage counts, reasoning included wherever it was counted; without it the output limit does."""
    assert charged == charge(use, ASKED, SAID, MOST, hidden)


def test_what_does_not_fit_is_refused_and_reserves_nothing() -> None:
    """A question that might use more than is left is not asked."""
    budget = TokenBudget(100)
    budget.reserve(60)

    with pytest.raises(BudgetSpent):
        budget.reserve(41)

    assert 40 == budget.left


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=20))
def test_at_no_time_more_is_promised_than_there_is(questions: list[tuple[int, int]]) -> None:
    """Whatever is reserved and used, what is left is never below nothing, and everything used is counted."""
    budget = TokenBudget(1000)
    used = 0
    for reserved, charged in questions:
        try:
            budget.reserve(reserved)
        except BudgetSpent:
            assert reserved > budget.left
            continue
        assert budget.left <= max(0, 1000 - used)
        budget.settle(reserved, charged)
        used += charged
    assert (used, max(0, 1000 - used)) == (budget.spent, budget.left)


@pytest.mark.parametrize("letter", ["a", "é", "ж", "語", "🙂", "\ud800"])
def test_what_is_sent_is_not_taken_for_less(letter: str) -> None:
    """A letter of a large script is a token or more, whatever an estimate for English says."""
    least = 1000 if ord(letter) > 0x7FF and letter.isprintable() else 250
    assert least <= estimated(letter * 1000) <= 2001
