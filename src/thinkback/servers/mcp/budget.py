"""The token budget of a server process: what may still be used, and what a question is charged.

Fails closed: a question reserves the most it can use before it is sent, and where nobody says what it used, and
reasoning may have been hidden, that is what it is charged.
"""

from __future__ import annotations

from thinkback.errors import BudgetSpent
from thinkback.turn.usage import TokenUse

_BYTES_PER_TOKEN = 2
"""Fewer than of prose in any script: what is sent is rather taken for more than for less."""


class TokenBudget:
    """Tokens that may be used, counted over all questions. For one event loop: nothing here waits."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0
        self._reserved = 0

    @property
    def left(self) -> int:
        """Tokens that are neither spent nor reserved."""
        return max(0, self.limit - self.spent - self._reserved)

    def reserve(self, tokens: int) -> None:
        """Set ``tokens`` aside. Raises ``BudgetSpent`` where that many are not left; nothing is reserved then."""
        if tokens > self.left:
            raise BudgetSpent(
                f"the token budget of this server does not allow it: {tokens:,} needed, {self.left:,} of "
                f"{self.limit:,} left",
                details={"spent": self.spent, "budget": self.limit, "needed": tokens},
                next_actions=(
                    "ask for less: a smaller max_output_tokens",
                    "or let a person start the server with a larger --token-budget",
                ),
            )
        self._reserved += tokens

    def settle(self, reserved: int, used: int) -> None:
        """A question that had ``reserved`` tokens set aside is over, and used ``used``."""
        self._reserved -= reserved
        self.spent += used


def charge(use: TokenUse, asked: int, said: int, most: int, hidden: bool) -> int:
    """What a question is charged whose answer used ``use`` as far as that was reported.

    ``asked`` and ``said`` are estimates of what went and came, ``most`` is the output limit; ``hidden``: the model may
    have reasoned where nobody sees it.
    """
    given = use.input if use.input is not None else asked
    if use.output is None:
        return given + (most if hidden else said)
    # Where nobody says whether the number includes the reasoning, it is taken not to.
    is_beside = use.inside is None or (use.inside is False and use.estimated)
    return given + use.output + ((use.reasoning or 0) if is_beside else 0)


def estimated(text: str) -> int:
    """The most tokens that ``text`` is likely to be, in any script."""
    return len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1
