"""Are the thinking controls ones that the model takes?"""

from __future__ import annotations

from ..jsons import as_text
from ..verdict import Verdict
from .errors import refuse, refuse_value
from .profiles import BAD_BUDGET, BAD_LEVEL, BOTH_CONTROLS, LEVELS, NO_BUDGET, NO_LEVEL, NO_OFF, NO_THINKING
from .request import Request

_LEVEL_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel"
_PLACE = "generation_config.thinking_config"
# -1 leaves the budget to the model.
_AUTOMATIC = -1


def no_thinking(request: Request) -> Verdict | None:
    """Refuse to configure what the model does not do."""
    profile = request.profile
    if request.thinking and not profile.levels and profile.budgets is None:
        return refuse(NO_THINKING.format(model=profile.model), "thinking is not supported")
    return None


def both_controls(request: Request) -> Verdict | None:
    """Refuse a level and a budget in one request."""
    if {"thinkingLevel", "thinkingBudget"} <= request.thinking.keys():
        return refuse(BOTH_CONTROLS, "both thinking controls")
    return None


def bad_level(request: Request) -> Verdict | None:
    """Refuse a level that does not exist, or that the model does not take."""
    if "thinkingLevel" not in request.thinking:
        return None
    value = request.thinking["thinkingLevel"]
    level = as_text(value).upper()
    if level not in LEVELS:
        return refuse_value(f"{_PLACE}.thinking_level", _LEVEL_TYPE, f'"{value}"')
    if level in request.profile.levels:
        return None
    text = BAD_LEVEL.format(level=level) if request.profile.levels else NO_LEVEL
    return refuse(text, "unsupported thinking level")


def bad_budget(request: Request) -> Verdict | None:
    """Refuse a budget where the model takes none, one out of its range, and 0 where thinking cannot be off."""
    if "thinkingBudget" not in request.thinking:
        return None
    value = request.thinking["thinkingBudget"]
    if not isinstance(value, int) or isinstance(value, bool):
        return refuse_value(f"{_PLACE}.thinking_budget", "TYPE_INT32", f'"{value}"')
    if request.profile.budgets is None:
        return refuse(NO_BUDGET, "unsupported thinking budget")
    low, high = request.profile.budgets
    if value == 0:
        return None if request.profile.off else refuse(NO_OFF, "thinking cannot be off")
    if value == _AUTOMATIC or low <= value <= high:
        return None
    return refuse(BAD_BUDGET.format(budget=value, low=low, high=high), "thinking budget out of range")


def bad_switch(request: Request) -> Verdict | None:
    """Refuse an ``includeThoughts`` that is not a boolean."""
    value = request.thinking.get("includeThoughts", False)
    return None if isinstance(value, bool) else refuse_value(f"{_PLACE}.include_thoughts", "TYPE_BOOL", f'"{value}"')
