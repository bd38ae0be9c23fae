"""What a person should know of how a conversation goes, and what to do about it. A function of its turns."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkback.turn.spending import TurnUse

TURNS = 5
"""How many turns in a row must be so before it is said."""
EXCESSIVE = 0.8
"""The share of its output that a model may reason before that is excessive."""


class Hint(msgspec.Struct, frozen=True):
    """One thing worth knowing: ``kind`` for programs, ``text`` and ``next_actions`` for people."""

    kind: str
    text: str
    next_actions: tuple[str, ...]


def hints(turns: Sequence[TurnUse], effort: str | None = None, efforts: Sequence[str] = ()) -> list[Hint]:
    """What is worth saying of ``turns``. ``efforts`` are those that can be asked for, lowest first; ``effort`` is set.

    Reasoning is excessive where it is over 80 % of the output of the last five turns together.
    """
    last = [turn for turn in turns if turn.use.output or turn.use.reasoning][-TURNS:]
    reasoning = sum(turn.use.reasoning or 0 for turn in last)
    output = sum(max(turn.use.output or 0, turn.use.reasoning or 0) for turn in last)
    if len(last) < TURNS or reasoning <= EXCESSIVE * output:
        return []
    about = "about " if any(turn.use.estimated for turn in last) else ""
    text = f"{about}{reasoning * 100 // output} % of the output of the last {TURNS} turns was reasoning"
    return [Hint("excessive_reasoning", text, (*_lower(effort, efforts), *_ADVICE))]


_ADVICE = (
    "remove from the system prompt repetitions, and requests for more thinking than the task needs",
    "set reasoning.maxTokens or reasoning.budget to bound it",
)


# Where nobody said an effort the provider's own is in force, and more than these might be more than that.
_MODEST = ("minimal", "low", "medium")


def _lower(effort: str | None, efforts: Sequence[str]) -> tuple[str, ...]:
    """To ask for less effort, where there is less to ask for."""
    usable = [word for word in efforts if word != "none"]
    below = usable[: usable.index(effort)] if effort in usable else usable[:-1]
    if effort is None:
        below = [word for word in below if word in _MODEST]
    return (f"set reasoning.effort to {below[-1]}",) if below else ()
