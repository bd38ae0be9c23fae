"""The session's budget of reasoning tokens: when to warn, how to think less, when to stop.

Promises: a pure function of settings, target and what was spent; what it changes is said in a control. Counted is what
providers reported as reasoning, and an estimate where they did not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from thinkback.compile.policy import thinks
from thinkback.errors import BudgetSpent
from thinkback.model.plan import Control
from thinkback.model.target import Settings, Target
from thinkback.turn.controls import Resolver, efforts, nearest

WARN_AT = 80
"""Percent of the budget from which each request says how much is spent."""
# What most providers do where nobody says how hard to think.
_UNSAID = "medium"


class Bounded(NamedTuple):
    """The settings of the next request within the budget, the controls that say so, and what to tell people."""

    settings: Settings
    controls: tuple[Control, ...] = ()
    told: str = ""


def bounded(settings: Settings, target: Target, native: dict[str, Any], spent: int) -> Bounded:
    """``settings`` after ``spent`` tokens of reasoning; ``native`` are the request's own parameters.

    From 80 % of the budget on they are the same and it is said. From 100 % on ``step_down`` lowers effort and
    ``reasoning.maxTokens`` by one step, and one more for each further 10 %; ``stop`` raises ``BudgetSpent``.
    """
    limit = settings.budget
    if limit is None or not settings.enabled or spent * 100 < WARN_AT * limit:
        return Bounded(settings)
    told = f"{spent * 100 // limit} % of the budget is spent: {spent:,} of {limit:,} tokens of reasoning"
    note = Control("reasoning.budget", str(limit), "emitted", told)
    if spent < limit or settings.budget_action == "warn":
        return Bounded(settings, (note,), told)
    if settings.budget_action == "stop":
        raise BudgetSpent(
            told,
            details={"spent": spent, "budget": limit},
            next_actions=(
                "raise reasoning.budget",
                "or go on with reasoning.budgetAction = warn or step_down",
                "or without reasoning: reasoning.enabled = false",
            ),
        )
    steps = (spent - limit) * 10 // limit + 1
    shorter, controls = _shorter(settings, steps)
    lower, more = _lower(shorter, target, native, steps)
    return Bounded(lower, (note, *controls, *more), told)


def _shorter(settings: Settings, steps: int) -> tuple[Settings, tuple[Control, ...]]:
    """Half the maximum for each step."""
    most = settings.max_tokens
    if most is None:
        return settings, ()
    less = max(1, most >> steps)
    return msgspec.structs.replace(settings, max_tokens=less), (_instead("reasoning.maxTokens", str(most), str(less)),)


def _lower(
    settings: Settings, target: Target, native: dict[str, Any], steps: int
) -> tuple[Settings, tuple[Control, ...]]:
    """An effort so many steps lower, as far down as the endpoint goes."""
    known = [word for word in efforts(target) if word != "none"]
    asked = settings.effort
    if asked is None and (settings.max_tokens is not None or not _thinks(settings, target, native)):
        return settings, ()
    at = nearest(asked or _UNSAID, known)
    if at is None:
        reason = f"{target.endpoint.id} has no lower effort for {target.model}"
        return settings, (Control("reasoning.budgetAction", "step_down", "unrepresentable", reason),)
    word = known[max(0, known.index(at) - steps)]
    note = _instead("reasoning.effort", asked or "unset", word)
    return msgspec.structs.replace(settings, effort=word), (note,)


def _thinks(settings: Settings, target: Target, native: dict[str, Any]) -> bool:
    """Whether the model reasons on the next request as it would be without a budget."""
    return thinks(target.rule, Resolver(settings, target, native).params)


def _instead(key: str, value: str, lower: str) -> Control:
    return Control(key, value, "suppressed", f"the budget of reasoning is spent: {lower} is asked for")
