"""What one request wants of earlier reasoning: the rule row and the settings, resolved once per request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from thinkback.compile import guard
from thinkback.model.blocks import Origin
from thinkback.model.commits import RECIPE, Repair
from thinkback.model.rule import Form, MissingStep, Rule, Switch, stand_ins
from thinkback.model.target import Settings, Target, lookup

_STRIP = {"all": 0, "allButLast": 1, "none": None}
_INCLUDE = "reasoning.includeInContext"
_BROKEN = "; it went along before, so a prompt cache ends at this message"


class Inputs(msgspec.Struct, frozen=True):
    """What compile builds for. ``params`` are the native parameters of the request, ``tools`` whether it has any.

    ``prefix`` are digests of system and tools where the rule binds reasoning to them. ``recipe`` as in the
    records of requests: what earlier versions sent is built again as they built it. ``custom``: the host has tools
    that take any text; ``None`` where calls of such tools stay as they came.
    """

    target: Target
    settings: Settings
    params: dict[str, Any]
    tools: bool
    prefix: tuple[str, str] = ("", "")
    recipe: int = RECIPE
    custom: bool | None = None


class ResponseContext(msgspec.Struct, frozen=True, gc=False):
    """Where a response stands.

    In the turn under way or a finished one, in a turn that used tools, out of reach of ``keepLast``, followed by
    more of its turn (so that it was sent while that turn was under way), with calls of its own.
    """

    is_open: bool
    used_tools: bool
    stripped: bool
    followed: bool
    has_calls: bool


class Stance(NamedTuple):
    """What holds for the reasoning of a response in its place.

    ``required``: the endpoint demands it. ``against`` is why it stays away, empty where it goes, and ``why`` is why it
    goes. ``fill``: something must stand in where there is nothing to send. ``tells``: foreign text may be told as prose
    all the same.
    """

    required: bool
    against: str
    why: str
    fill: bool
    tells: bool


class Policy:
    """The answers that hold for a whole request, so that the fold asks each only once.

    Of the ``repairs`` that hold for this target, ``repaired`` names the stages; ``restore`` demands reasoning on every
    assistant message, because the endpoint refused a request without it, and a second one goes past what stood in for
    it, because that was refused too. ``flat`` are the responses (commit hashes) that go as text, because it refused
    them in any other form, ``invalid`` the blocks that it named in a refusal.
    """

    def __init__(self, inputs: Inputs, repairs: Sequence[Repair] = ()) -> None:
        rule = inputs.target.rule
        holding = [repair for repair in repairs if applies(repair, inputs.target)]
        self.repaired = repaired = [repair.stage for repair in holding]
        self.flat = _named(holding, flat=True)
        self.invalid = _named(holding, flat=False)
        self.target: Target = inputs.target
        self.rule: Rule = rule
        self.settings: Settings = inputs.settings
        self.strict = inputs.settings.strict or inputs.target.endpoint.strict
        self.restored = "restore" in repaired
        self.restarted = "server_state" in repaired
        self.thinking = thinks(rule, inputs.params)
        self.keep_last = keep_last(inputs.settings)
        # An endpoint that is said to take nothing, and demanded it, gets it under the name it came in.
        reluctant = self.restored and rule.form == "none"
        self.form: Form = "field" if reluctant else rule.form
        self.field = "" if reluctant else inputs.settings.field_name or rule.field
        self.missing: tuple[MissingStep, ...] = rule.missing
        if self.restored:  # the endpoint did refuse, whatever the rule says
            steps = stand_ins(rule) or _last_resort(rule)
            self.missing = steps[min(repaired.count("restore"), len(steps)) - 1 :]
        self.placeholder = rule.placeholder or " "
        given_tools = rule.placeholder_on == "with-tools" or rule.later == "must-with-tools"
        self.everywhere = rule.placeholder_on == "all" or (given_tools and inputs.tools)
        self._params = inputs.params
        self._kept_natively = bool(rule.keeps_when) and _holds(rule.keeps_when, inputs.params)
        self._asked = _INCLUDE in inputs.settings.explicit or inputs.settings.client_reasons
        self.asks = self._asked and inputs.settings.include_in_context
        end_user = lookup(inputs.params, rule.guard.end_user) if rule.guard.end_user else None
        self._end_user = end_user if isinstance(end_user, str) else ""
        self._stances: dict[ResponseContext, Stance] = {}
        self.server = rule.server_state if inputs.settings.server_state and not self.restarted else None
        self.binds = binds(rule, inputs.settings)
        switch = rule.keep_switch
        self.counts_later = rule.reads_later if switch is None else self.thinking and self.wants(switch)
        self.recipe = inputs.recipe
        self.custom = inputs.custom
        self.appends = appends(inputs)

    def excludes(self, switch: Switch) -> bool:
        """Whether the request has a parameter that ``switch`` does not go with."""
        return any(lookup(self._params, path) is not None for path in switch.unless)

    def wants(self, switch: Switch) -> bool:
        """True if ``switch`` goes along as the settings are, and the request does not exclude it."""
        return (self.asks or not switch.asked) and not self.excludes(switch)

    def conflicts(self, place: ResponseContext) -> bool:
        """Whether nothing may be sent where the endpoint demands it and takes nothing in its place."""
        if not self.strict or not self.thinking or "none" in self.missing:
            return False
        in_scope = place.has_calls or self.rule.scope != "tool-calls"
        return in_scope and self._demand(place) == "must"

    def verdict(self, origin: Origin) -> guard.Verdict:
        """The guard's answer for ``origin``."""
        return guard.check(origin, self.target, self._end_user, self.recipe)

    def calibrates(self, origin: Origin) -> bool:
        """Whether what was counted for a response of ``origin`` says something about this target's model."""
        minted = (origin.requested_model, origin.served_model)
        return origin.endpoint == self.target.base_url and self.target.model in minted

    def stance(self, place: ResponseContext) -> Stance:
        """What holds in ``place``."""
        known = self._stances.get(place)
        if known is None:
            known = self._stances[place] = self._decide(place)
        return known

    def lifted(self, place: ResponseContext) -> Stance:
        """What holds in ``place`` for reasoning that an annotation asks for: settings do not count against it."""
        return self._decide(place, lifted=True)

    def keeps_later(self) -> bool:
        """Whether reasoning of finished turns is wanted, not merely demanded: the endpoint's own switch says so."""
        places = (ResponseContext(False, True, self.keep_last == 0, False, has_calls) for has_calls in (True, False))
        return any(not self._against(place) for place in places)

    def _decide(self, place: ResponseContext, *, lifted: bool = False) -> Stance:
        required = self._is_required(place)
        against = "" if required else self._against(place, lifted=lifted)
        tells = self.everywhere or (self.rule.placeholder_on == "tool-calls" and place.has_calls)
        fill = self.thinking and (required or (tells and bool(self.missing)))
        if self.form == "native" and not place.is_open:  # what was refused is the turn under way
            fill = fill and self._demand(place) == "must"
        guessed = ", guessed" if self.target.guessed else ""
        asked = "an annotation asks for it" if lifted and self._against(place) else self._why(place, required)
        why = "" if against else f"{asked} (rule {self.rule.id}{guessed})"
        return Stance(required, against, why, fill, self._tells(place))

    def _is_required(self, place: ResponseContext) -> bool:
        """Whether the endpoint demands reasoning on this message."""
        if not self.thinking or self.strict:
            return False
        if self.restored:
            return True
        if self.rule.scope == "tool-calls" and not place.has_calls:
            return False
        return self._demand(place) == "must"

    def _word(self, place: ResponseContext) -> str:
        """The rule's word for this place: ``must``, ``should``, ``may`` or ``never``."""
        word = self.rule.open_turn if place.is_open else self.rule.later
        if word == "must-after-tools":
            return "must" if place.used_tools else "may"
        if word == "must-with-tools":
            return "must" if place.used_tools or self.everywhere else "may"
        return word

    def _demand(self, place: ResponseContext) -> str:
        """That word, after what the request itself asks of the endpoint."""
        word = self._word(place)
        # Where the field is wanted in any case, its own text costs no more of the cache than a placeholder.
        if word == "may" and (self.everywhere or (self._kept_natively and not place.is_open)):
            return "should"
        return word

    def _against(self, place: ResponseContext, *, lifted: bool = False) -> str:
        """Why reasoning that is not required stays away; empty where it goes (precedence 4 and 5).

        ``lifted``: an annotation asks for it (precedence 3), so that only the endpoint may be against it.
        """
        demand, settings = self._demand(place), self.settings
        if self.strict:
            return "reasoning.strict: nothing about reasoning is sent"
        if not settings.enabled and not lifted:
            return "reasoning.enabled is false"
        if self.form == "none":
            return "the endpoint takes no reasoning back"
        if demand == "never":
            return (
                f"the endpoint must not see reasoning of {'the turn under way' if place.is_open else 'finished turns'}"
            )
        if lifted:
            return ""
        if place.stripped:
            number = settings.keep_last
            named = (
                f"keepLast is {number}" if number is not None else f"stripFromContext is {settings.strip_from_context}"
            )
            said = f"the app carries the last {number}" if settings.carry else f"reasoning.{named}"
            return said + self._cost(place)
        if settings.include_in_context or (demand in ("must", "should") and not self._asked):
            return ""
        if self._asked:
            return f"{_INCLUDE} is false" + self._cost(place)
        return f"the endpoint does not need it (rule {self.rule.id}), and {_INCLUDE} is not set"

    def _tells(self, place: ResponseContext) -> bool:
        """Prose is content, so any endpoint takes it, also one that takes no reasoning here, if the user opted in."""
        settings = self.settings
        asked_not = self._asked and not settings.include_in_context
        opted_in = settings.enabled and settings.foreign != "drop" and not self.rule.forbid_foreign_text
        return opted_in and not place.stripped and not asked_not

    def _cost(self, place: ResponseContext) -> str:
        """What a setting costs that takes away what was sent before."""
        asked_not = self._asked and not self.settings.include_in_context
        kept_before = place.stripped and bool(self.keep_last) and not asked_not
        sent_open = place.followed and not place.is_open
        if sent_open:
            before = msgspec.structs.replace(place, is_open=True, stripped=False)
            sent_open = self._is_required(before) or not self._against(before)
        return _BROKEN if kept_before or sent_open else ""

    def _why(self, place: ResponseContext, required: bool) -> str:
        if self.restored and required:
            return "the endpoint refused a request without it"
        if required:
            return "the endpoint requires it"
        if self._word(place) in ("must", "should"):
            return "the endpoint keeps it"
        if self.everywhere:
            return "the endpoint wants the field on every assistant message"
        if self.settings.client_reasons:
            return "the request brought reasoning of its own, which asks for it"
        if self._asked:
            return f"you asked for it with {_INCLUDE}"
        if self._demand(place) == "should":
            return f"you asked the endpoint to keep it with {', '.join(self.rule.keeps_when)}"
        return f"the endpoint's settings ask for it with {_INCLUDE}"


def applies(repair: Repair, target: Target) -> bool:
    """A repair holds until the target differs."""
    return repair.endpoint == target.base_url and repair.model == target.model


def _named(repairs: Sequence[Repair], *, flat: bool) -> frozenset[str]:
    """What ``repairs`` name: the responses that go as text, or the blocks that must not go."""
    named = (repair.blocks for repair in repairs if (repair.stage == "flatten") == flat)
    return frozenset(hash for blocks in named for hash in blocks)


def _last_resort(rule: Rule) -> tuple[MissingStep, ...]:
    """What stands in where a rule has nothing and the endpoint refused: only a field can hold a placeholder."""
    if rule.form != "native":
        return ("placeholder",)
    return ("thinking-off-for-this-turn",) if rule.thinking_off else ("none",)


def binds(rule: Rule, settings: Settings) -> bool:
    """Whether what is sent depends on what stood before it when it was made."""
    return rule.prefix_bound or (settings.server_state and rule.server_state is not None)


def appends(inputs: Inputs) -> bool:
    """True if system messages stay where they came: asked for, of use, and nothing that the endpoint refuses."""
    rule = inputs.target.rule
    return inputs.settings.system_changes == "append" and rule.prefix_bound and rule.system == "late"


def keep_last(settings: Settings) -> int | None:
    """How many responses of finished turns keep their reasoning; ``None`` means all."""
    return settings.keep_last if settings.keep_last is not None else _STRIP[settings.strip_from_context]


def thinks(rule: Rule, params: dict[str, Any]) -> bool:
    """Whether the model thinks on a request with ``params``."""
    if any(_holds(condition, params) for condition in rule.thinks_unless):
        return False
    return not rule.thinks_when or any(_holds(condition, params) for condition in rule.thinks_when)


def _holds(condition: dict[str, Any], params: dict[str, Any]) -> bool:
    return bool(condition) and all(lookup(params, path) == value for path, value in condition.items())
