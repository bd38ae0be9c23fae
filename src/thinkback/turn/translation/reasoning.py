"""What a request says of reasoning, as settings: by name in no dialect, so that the target's rule row says it."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model.target import Settings, Target
from thinkback.turn.translation.paths import first
from thinkback.wire.parameters import Params, Reasoning

# Values that say whether the client is to see reasoning.
_YES, _NO = ("summarized", "auto", "concise", "detailed", True), ("omitted", "none", False)
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# What is asked for above all of them is the highest: hosts that know the word read it so (DeepSeek).
_HIGHEST = {"ultra": "max"}
_ON, _OFF = ("enabled", "adaptive", "auto", True), ("disabled", False)
_FIELDS = {
    "reasoning.enabled": "enabled",
    "reasoning.effort": "effort",
    "reasoning.maxTokens": "max_tokens",
    "reasoning.includeInResponse": "include_in_response",
    "text.verbosity": "verbosity",
}


def read(places: Reasoning, params: Params, seen: set[str]) -> Settings:
    """Reasoning in native ``params`` as neutral settings, ``explicit`` where something is said; noted in ``seen``."""
    said: dict[str, Any] = {}
    found = first(params, places.effort)
    if found is not None:
        word = str(found[1]).lower()
        word = _HIGHEST.get(word, word)
        if word in _EFFORTS:
            said["reasoning.effort"] = word
            seen.add(found[0])
    found = first(params, places.budget)
    if found is not None and isinstance(found[1], int) and not isinstance(found[1], bool):
        seen.add(found[0])
        if found[1] > 0:
            said["reasoning.maxTokens"] = found[1]
        else:  # a negative one leaves it to the model
            said["reasoning.enabled"] = found[1] < 0
    found = first(params, places.switch)
    if found is not None and (_is(found[1], _ON) or _is(found[1], _OFF)):
        seen.add(found[0])
        is_on = said.get("reasoning.enabled", True) and _is(found[1], _ON)
        if not is_on or not said:
            said["reasoning.enabled"] = is_on
    _read_shown(places, params, said, seen)
    return Settings(explicit=frozenset(said), **{_FIELDS[key]: value for key, value in said.items()})


def _read_shown(places: Reasoning, params: Params, said: dict[str, Any], seen: set[str]) -> None:
    found = first(params, places.shown)
    if found is not None and (_is(found[1], _YES) or _is(found[1], _NO)):
        seen.add(found[0])
        said["reasoning.includeInResponse"] = _is(found[1], _YES) != found[0].endswith("exclude")
    found = first(params, (places.verbosity,) if places.verbosity else ())
    if found is not None and found[1] in ("low", "medium", "high"):
        seen.add(found[0])
        said["text.verbosity"] = found[1]


def _is(value: Any, words: tuple[Any, ...]) -> bool:
    """Whether ``value`` is one of ``words``; 1 is not ``True``."""
    return any(value is word or (isinstance(word, str) and value == word) for word in words)


def hidden_by_default(places: Reasoning, settings: Settings) -> Settings:
    """``settings`` under what a client expects that requests nothing, unless somebody said otherwise."""
    if not places.hidden_by_default or "reasoning.includeInResponse" in settings.explicit:
        return settings
    return msgspec.structs.replace(settings, include_in_response=False)


def wanted(settings: Settings, wished: Settings, target: Target, left: list[str]) -> Settings:
    """``settings`` with what a request itself asks for, as far as ``target`` has a word for it.

    A budget where there are none still asks for reasoning; none of it is the same as off where only that can be said.
    """
    asked = {field: getattr(wished, field) for key, field in _FIELDS.items() if key in wished.explicit}
    controls, explicit = target.rule.controls, set(wished.explicit)
    if wished.max_tokens is not None and controls.budget is None and not controls.max_tokens:
        left.append(f"a budget of {wished.max_tokens} tokens: {target.endpoint.id} takes none for {target.model}")
        del asked["max_tokens"]
        asked["enabled"] = wished.enabled
        explicit = explicit - {"reasoning.maxTokens"} | {"reasoning.enabled"}
    if wished.effort == "none" and controls.off and not controls.effort.get("none"):
        del asked["effort"]
        asked["enabled"] = False
        explicit = explicit - {"reasoning.effort"} | {"reasoning.enabled"}
    return msgspec.structs.replace(settings, **asked, explicit=settings.explicit | explicit)
