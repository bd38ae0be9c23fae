"""What one request wants of earlier reasoning: the rule row and the settings, resolved once per request."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.compile import guard
from thinkback.model.blocks import Origin
from thinkback.model.target import Demand, Rule, Settings, Target, lookup

_STRIP = {"all": 0, "allButLast": 1, "none": None}


class Inputs(msgspec.Struct, frozen=True):
    """What compile builds for. ``params`` are the native parameters of the request, ``tools`` whether it has any."""

    target: Target
    settings: Settings
    params: dict[str, Any]
    tools: bool


class Policy:
    """The answers that hold for a whole request, so that the fold asks each only once.

    ``repaired`` names the stages of repair that hold for this target; ``restore`` demands reasoning on every
    assistant message, because the endpoint refused a request without it.
    """

    def __init__(self, inputs: Inputs, repaired: frozenset[str] = frozenset()) -> None:
        self.repaired = repaired
        self.inputs = inputs
        self.target = inputs.target
        self.rule: Rule = inputs.target.rule
        self.settings = inputs.settings
        self.thinking = _thinks(self.rule, inputs.params)
        restored = "restore" in repaired
        self.missing: tuple[str, ...] = self.rule.missing or (("placeholder",) if restored else ())
        self.placeholder = self.rule.placeholder or " "
        self.keep_last = keep_last(inputs.settings)
        self.always = self.rule.placeholder_on == "all" or (self.rule.placeholder_on == "with-tools" and inputs.tools)
        self.open_wanted = self._wanted(self.rule.open_turn)
        self.kept_natively = bool(self.rule.keeps_when) and _holds(self.rule.keeps_when, inputs.params)
        self._verdicts: dict[Origin, guard.Verdict] = {}

    def verdict(self, origin: Origin) -> guard.Verdict:
        """The guard's answer for ``origin``."""
        known = self._verdicts.get(origin)
        if known is None:
            known = self._verdicts[origin] = guard.check(origin, self.target)
        return known

    def required(self, is_open: bool, has_calls: bool, turn_used_tools: bool) -> bool:
        """Whether the endpoint demands reasoning on this message (DESIGN 3.5, precedence 2)."""
        if not self.thinking:
            return False
        if self.always or "restore" in self.repaired:
            return True
        if self.rule.scope == "tool-calls" and not has_calls:
            return False
        demand = self.rule.open_turn if is_open else self.rule.later
        return demand == "must" or (demand == "must-after-tools" and turn_used_tools)

    def wanted(self, is_open: bool, turn_used_tools: bool) -> bool:
        """Whether settings and endpoint data include reasoning that is not demanded (precedence 5)."""
        if is_open:
            return self.open_wanted
        later = self.rule.later
        if later == "must-after-tools":
            later = "should" if turn_used_tools else "may"
        return self._wanted("should" if self.kept_natively and later == "may" else later)

    def keeps_later(self) -> bool:
        """Whether reasoning of finished turns goes along, so that the endpoint's own switch must say so."""
        return self.settings.enabled and self.keep_last != 0 and self.wanted(False, True)

    def _wanted(self, demand: Demand | str) -> bool:
        if demand == "never" or not self.settings.enabled:
            return False
        if "reasoning.includeInContext" in self.settings.explicit:
            return self.settings.include_in_context
        return demand in ("must", "should") or self.settings.include_in_context


def keep_last(settings: Settings) -> int | None:
    """How many responses of finished turns keep their reasoning; ``None`` means all (DESIGN 3.6)."""
    return settings.keep_last if settings.keep_last is not None else _STRIP[settings.strip_from_context]


def _thinks(rule: Rule, params: dict[str, Any]) -> bool:
    """Whether the model thinks in a request with ``params``; only then does the endpoint demand anything."""
    if any(_holds(condition, params) for condition in rule.thinks_unless):
        return False
    return not rule.thinks_when or any(_holds(condition, params) for condition in rule.thinks_when)


def _holds(condition: dict[str, Any], params: dict[str, Any]) -> bool:
    return bool(condition) and all(lookup(params, path) == value for path, value in condition.items())
