"""What each setting does to the next request: the value in force, who decides it, by scope, and what others change.

Promises: what is shown is what happens. It is found by trying: each value of a key is given to the code that builds
requests, and the one that makes no difference is the one in force; set explicitly, it changes no byte. Where there is
none, the setting is unset. Must not: read the log, or send anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from thinkback.compile.policy import Inputs, Policy, ResponseContext, Stance, keep_last
from thinkback.errors import SettingError
from thinkback.model.plan import Control
from thinkback.model.rule import Switch
from thinkback.model.target import Settings, Target, merge, merge_headers, overlay
from thinkback.settings import Layer, Layers, Value, find, to_text
from thinkback.settings.layers import WRITABLE
from thinkback.turn.controls import Resolver, effort_sent

OPEN, FINISHED = "open turn", "finished turns"
_ENABLED, _EFFORT, _FOREIGN = "reasoning.enabled", "reasoning.effort", "reasoning.foreign"
_INCLUDE, _STRICT, _TAGS = "reasoning.includeInContext", "reasoning.strict", "reasoning.tags"
_REPLAY = frozenset({_INCLUDE, _STRICT, "reasoning.enabled", "reasoning.stripFromContext", "reasoning.keepLast"})
_REQUEST = frozenset(
    {
        *("reasoning.enabled", "reasoning.effort", "reasoning.maxTokens", "reasoning.display", "reasoning.summary"),
        *("text.verbosity", "session.serverState"),
    }
)
_OTHERS = {
    "drop": "reasoning of other models is not sent",
    "summary": "summaries of other models are sent as text",
    "text": "reasoning of other models is sent as text",
}
_SENT = frozenset({"emitted", "represented"})


class Scope(msgspec.Struct, frozen=True):
    """What happens in one scope (``open turn``, ``finished turns``, or ``request``), and who decides it."""

    name: str
    effect: str
    by: str

    def __str__(self) -> str:
        return f"{self.name}: {self.effect}" + (f", {self.by}" if self.by else "")


class Effect(msgspec.Struct, frozen=True):
    """One setting as surfaces show it.

    ``value`` is in force (``None``: unset), ``layer`` is where it was set, ``by`` says who decides. ``changes`` are
    what other values would do, by value.
    """

    key: str
    value: Value | None
    layer: Layer
    by: str
    scopes: tuple[Scope, ...] = ()
    changes: Mapping[str, str] = {}

    def __str__(self) -> str:
        """The scopes in a line; empty where the value says it all."""
        return "; ".join(map(str, self.scopes))


class _Outcome(NamedTuple):
    """What a request does under some settings: all that its bytes depend on. ``refused`` is why there is none."""

    params: dict[str, Any]
    headers: dict[str, str]
    replay: tuple[object, ...]
    refused: str = ""


class _Tried(NamedTuple):
    """An outcome with what explains it, which has no part in comparisons."""

    outcome: _Outcome
    controls: tuple[Control, ...] = ()
    policy: Policy | None = None
    settings: Settings = Settings()


def effects(
    layers: Layers,
    endpoint_data: Mapping[str, object],
    target: Target,
    params: dict[str, Any],
    *,
    tools: bool = False,
) -> dict[str, Effect]:
    """Each setting's effect on the next request to ``target``; ``params`` are its native parameters.

    ``tools``: it offers some.
    """
    base = _try(layers.effective(endpoint_data), target, params, tools=tools)
    return {key: _effect(key, layers, endpoint_data, target, params, base, tools=tools) for key in layers.keys}


def configured_effects(layers: Layers, endpoint_data: Mapping[str, object]) -> dict[str, Effect]:
    """The same where no target is known: what was set, and nothing of what a rule row makes of it."""
    found = ((key, layers.origin(key, endpoint_data)) for key in layers.keys)
    return {key: Effect(key, value, layer, layer) for key, (value, layer) in found}


def _effect(
    key: str,
    layers: Layers,
    endpoint_data: Mapping[str, object],
    target: Target,
    params: dict[str, Any],
    base: _Tried,
    *,
    tools: bool,
) -> Effect:
    value, layer = layers.origin(key, endpoint_data)
    rule = f"rule {target.rule.id}"
    if key == _TAGS and value is None:
        return Effect(key, target.rule.tags, layer, rule)
    if key not in _REPLAY | _REQUEST | {_FOREIGN}:
        return Effect(key, value, layer, layer)
    tried = {
        word: _try(layers.set("call", key, word).effective(endpoint_data), target, params, tools=tools)
        for word in _values(key)
    }
    changes = {
        to_text(word): _difference(base, other) for word, other in tried.items() if other.outcome != base.outcome
    }
    scopes = tuple(_scopes(key, base, target, layer))
    if layer in WRITABLE:
        return Effect(key, value, layer, layer, scopes, changes)
    same = [word for word in tried if to_text(word) not in changes]
    shown = _in_force(key, base, target, same, value)
    decides = (scope.by for scope in scopes if scope.by)
    by = layer if shown == value and changes else rule
    return Effect(key, shown, layer, by if by == layer else next(decides, by), scopes, changes)


def _values(key: str) -> tuple[Value, ...]:
    """The values that a key may have, where they can be told."""
    row = find(key)
    return (True, False) if row.type == "boolean" else row.choices


def _in_force(key: str, base: _Tried, target: Target, same: list[Value], default: Value | None) -> Value | None:
    """Of the values that make no difference the one that says what happens."""
    happens = default
    if base.policy is not None and key == _INCLUDE:
        happens = all(_goes(stance) for place, stance in _stances(base.policy) if not place.stripped)
    elif base.policy is not None and key == _STRICT:
        happens = base.policy.strict
    elif key == _EFFORT:
        happens = effort_sent(target, base.outcome.params)
    if happens in same or not _values(key):
        return happens
    return same[0] if len(same) == 1 else None


def _try(settings: Settings, target: Target, params: dict[str, Any], *, tools: bool) -> _Tried:
    try:
        resolved = Resolver(settings, target, params, tools=tools)
    except SettingError as error:
        return _Tried(_Outcome({}, {}, (), error.message), settings=settings)
    policy = Policy(Inputs(target, settings, resolved.params, tools))
    said, controls, headers = resolved.params, tuple(resolved.controls), dict(resolved.headers)
    for switch in _switches(policy):
        said, headers = merge(switch.params, said), merge_headers(headers, switch.headers)
    if tools and target.rule.off_with_tools:
        said = overlay(said, target.rule.thinking_off)
        reason = f"{target.endpoint.id} refuses tools together with reasoning for {target.model}"
        controls += (Control(_ENABLED, "true", "suppressed", reason),)
    return _Tried(_Outcome(said, headers, _replay(policy, settings)), controls, policy, settings)


def _switches(policy: Policy) -> Iterator[Switch]:
    """What goes along with reasoning of finished turns, and with a conversation that the provider keeps."""
    rule = policy.rule
    if policy.strict:
        return
    switch = rule.keep_switch if policy.keeps_later() else rule.drop_switch
    if switch is not None and policy.thinking and (policy.asks or not switch.asked) and not policy.excludes(switch):
        yield switch
    if rule.server_state is not None:
        yield Switch(rule.server_state.on if policy.server is not None else rule.server_state.off)


def _replay(policy: Policy, settings: Settings) -> tuple[object, ...]:
    """What of earlier reasoning goes back, and what goes along with it."""
    stances = list(_stances(policy))
    whole = [(place, stance) for place, stance in stances if not place.stripped]
    cut = [(place, stance) for place, stance in stances if place.stripped]
    kept = [_what(stance) for _, stance in whole]
    left = [_what(stance) for _, stance in cut]
    cuts = left != [] and left != [_what(stance) for place, stance in whole if not place.is_open]
    return (
        kept,
        (left, policy.keep_last, settings.carry) if cuts else (),
        settings.foreign if any(stance.tells for _, stance in stances) else "",
        [policy.conflicts(place) for place, _ in whole],
        policy.strict,
        policy.form,
        policy.field,
        policy.server is not None,
    )


def _stances(policy: Policy) -> Iterator[tuple[ResponseContext, Stance]]:
    """What holds in each place where reasoning may stand; the turn under way is never stripped."""
    limits = (False,) if policy.keep_last is None else (False, True)
    for is_open, strips in ((True, (False,)), (False, limits)):
        for stripped in strips:
            for bits in range(8):
                place = ResponseContext(
                    is_open=is_open,
                    used_tools=bool(bits & 1),
                    stripped=stripped,
                    followed=bool(bits & 2),
                    has_calls=bool(bits & 4),
                )
                yield place, policy.stance(place)


def _what(stance: Stance) -> tuple[bool, bool, bool, bool]:
    return stance.required, not stance.against, stance.fill, stance.tells


def _goes(stance: Stance) -> bool:
    return stance.required or not stance.against


def _scopes(key: str, tried: _Tried, target: Target, layer: Layer) -> Iterator[Scope]:
    rule = f"rule {target.rule.id}" + (" (guessed)" if target.guessed else "")
    if tried.outcome.refused:
        yield Scope("request", f"refused: {tried.outcome.refused}", rule)
        return
    if key in _REQUEST:
        yield Scope("request", _said_of(key, tried, target), rule)
    if key in _REPLAY and tried.policy is not None:
        yield from _kept_in(tried.policy, tried.settings, rule, layer)


def _said_of(key: str, tried: _Tried, target: Target) -> str:
    """What the request says of ``key``, in its own words."""
    control = next((one for one in reversed(tried.controls) if one.key == key), None)
    if control is not None and control.state not in _SENT:
        return f"not sent: {control.reason}"
    sent = dict(_leaves(tried.outcome.params))
    paths = dict.fromkeys(_paths(key, target, tried.settings))
    told = [f"{path} = {sent[path]}" for path in paths if path in sent]
    return ", ".join(told) or "nothing is sent"


def _paths(key: str, target: Target, settings: Settings) -> Iterator[str]:
    """The dotted paths at which the rule row says ``key``."""
    rule, controls = target.rule, target.rule.controls
    budget = controls.budget.path if controls.budget is not None else controls.max_tokens
    tables: list[dict[str, Any]] = []
    match key:
        case "reasoning.effort":
            tables = [table for word, table in controls.effort.items() if word != "none" or settings.effort == word]
        case "reasoning.enabled":
            tables = [controls.on, controls.off, *([] if controls.on else controls.effort.values())]
        case "reasoning.display" | "reasoning.summary":
            tables = [*controls.display.values(), *controls.display_with_tools.values(), *controls.summary.values()]
        case "text.verbosity":
            tables = [*controls.verbosity.values()]
        case "session.serverState":
            tables = [rule.server_state.on, rule.server_state.off] if rule.server_state is not None else []
        case _:
            pass
    for table in tables:
        yield from (path for path, _ in _leaves(table))
    if budget and (key == "reasoning.maxTokens" or (key in (_EFFORT, _ENABLED) and controls.effort_budgets)):
        yield budget


def _kept_in(policy: Policy, settings: Settings, rule: str, layer: Layer) -> Iterator[Scope]:
    """Whether reasoning of the turn under way, and of finished ones, goes back."""
    limit = keep_last(settings)
    stances = list(_stances(policy))
    for name, is_open in ((OPEN, True), (FINISHED, False)):
        here = [(place, stance) for place, stance in stances if place.is_open == is_open]
        whole = [(place, stance) for place, stance in here if not place.stripped]
        goes = [place for place, stance in whole if _goes(stance)]
        effect = "no" if not goes else "yes" if len(goes) == len(whole) else _where(goes, whole)
        cut = [stance for place, stance in here if place.stripped and not _goes(stance)]
        if goes and cut:
            effect = f"{effect}, of the last {limit} responses" if limit else "no"
        required = any(stance.required for _, stance in whole)
        chosen = layer if layer in WRITABLE else rule
        yield Scope(name, effect, f"required by {rule}" if required and effect != "no" else chosen)


def _where(goes: list[ResponseContext], whole: list[tuple[ResponseContext, Stance]]) -> str:
    """In which places, where not in all."""
    if goes == [place for place, _ in whole if place.has_calls]:
        return "yes, of responses with calls"
    if goes == [place for place, _ in whole if place.used_tools]:
        return "yes, of turns that used tools"
    return "yes, in part"


def _difference(base: _Tried, other: _Tried) -> str:
    """What another value would change."""
    if other.outcome.refused:
        return f"is refused: {other.outcome.refused}"
    old, new = dict(_leaves(base.outcome.params)), dict(_leaves(other.outcome.params))
    told = [f"{path} = {value}" for path, value in new.items() if old.get(path) != value]
    told += [f"no {path}" for path in old if path not in new]
    if base.policy is not None and other.policy is not None:
        before = {scope.name: scope.effect for scope in _kept_in(base.policy, base.settings, "", "built-in")}
        after = {scope.name: scope.effect for scope in _kept_in(other.policy, other.settings, "", "built-in")}
        told += [f"{name}: {effect}" for name, effect in after.items() if before[name] != effect]
        if other.settings.foreign != base.settings.foreign:
            told.append(_OTHERS[other.settings.foreign])
    return ", ".join(told) or "another way of sending what goes back"


def _leaves(table: dict[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
