"""What a request says of reasoning, as settings: by name in no dialect, so that the target's rule row says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from thinkback.model.target import Settings, Target
from thinkback.turn.translation.paths import Params, first

_EFFORT: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("output_config.effort",),
    "bedrock": (
        "additionalModelRequestFields.output_config.effort",
        "additionalModelRequestFields.reasoning_effort",
        "additionalModelRequestFields.reasoning_config",
        "outputConfig.effort",
    ),
    "gemini": ("generationConfig.thinkingConfig.thinkingLevel",),
    "gemini-interactions": ("generation_config.thinking_level",),
    "mistral": ("reasoning_effort",),
    "ollama": ("think",),
    "openai-chat": (
        "reasoning_effort",
        "reasoning.effort",
        "extra_body.google.thinking_config.thinking_level",
        "chat_template_kwargs.reasoning_effort",
    ),
    "openai-responses": ("reasoning.effort",),
}
_BUDGET: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("thinking.budget_tokens",),
    "bedrock": ("additionalModelRequestFields.thinking.budget_tokens",),
    "cohere": ("thinking.token_budget",),
    "gemini": ("generationConfig.thinkingConfig.thinkingBudget",),
    "openai-chat": (
        "reasoning.max_tokens",
        "thinking_budget",
        "thinking.budget_tokens",
        "thinking_token_budget",
        "extra_body.google.thinking_config.thinking_budget",
    ),
    "openai-responses": ("reasoning.max_tokens",),
}
_SWITCH: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("thinking.type",),
    "bedrock": ("additionalModelRequestFields.thinking.type",),
    "cohere": ("thinking.type",),
    "ollama": ("think",),
    "openai-chat": (
        "thinking.type",
        "enable_thinking",
        "reasoning.enabled",
        "chat_template_kwargs.enable_thinking",
        "chat_template_kwargs.thinking",
    ),
    "openai-responses": ("reasoning.enabled",),
}
# Whether the client is to see it, and the values that say so or deny it.
_SHOWN: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("thinking.display",),
    "bedrock": ("additionalModelRequestFields.thinking.display",),
    "gemini": ("generationConfig.thinkingConfig.includeThoughts",),
    "gemini-interactions": ("generation_config.thinking_summaries",),
    "openai-chat": (
        "include_reasoning",
        "reasoning.exclude",
        "reasoning.summary",
        "extra_body.google.thinking_config.include_thoughts",
    ),
    "openai-responses": ("reasoning.summary", "reasoning.generate_summary", "reasoning.exclude"),
}
_YES, _NO = ("summarized", "auto", "concise", "detailed", True), ("omitted", "none", False)
# Where a client that does not ask gets none to see: its program may take the first text for the answer.
_HIDDEN_UNASKED = frozenset({"gemini"})
_VERBOSITY: Mapping[str, str] = {"openai-chat": "verbosity", "openai-responses": "text.verbosity"}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_ON, _OFF = ("enabled", "adaptive", "auto", True), ("disabled", False)
_FIELDS = {
    "reasoning.enabled": "enabled",
    "reasoning.effort": "effort",
    "reasoning.maxTokens": "max_tokens",
    "reasoning.includeInResponse": "include_in_response",
    "text.verbosity": "verbosity",
}


def read(dialect: str, params: Params, seen: set[str]) -> Settings:
    """Reasoning in native ``params`` as neutral settings, ``explicit`` where something is said; noted in ``seen``."""
    said: dict[str, Any] = {}
    found = first(params, _EFFORT.get(dialect, ()))
    if found is not None and str(found[1]).lower() in _EFFORTS:
        said["reasoning.effort"] = str(found[1]).lower()
        seen.add(found[0])
    found = first(params, _BUDGET.get(dialect, ()))
    if found is not None and isinstance(found[1], int) and not isinstance(found[1], bool):
        seen.add(found[0])
        if found[1] > 0:
            said["reasoning.maxTokens"] = found[1]
        else:  # a negative one leaves it to the model
            said["reasoning.enabled"] = found[1] < 0
    found = first(params, _SWITCH.get(dialect, ()))
    if found is not None and (_is(found[1], _ON) or _is(found[1], _OFF)):
        seen.add(found[0])
        is_on = said.get("reasoning.enabled", True) and _is(found[1], _ON)
        if not is_on or not said:
            said["reasoning.enabled"] = is_on
    _read_shown(dialect, params, said, seen)
    return Settings(explicit=frozenset(said), **{_FIELDS[key]: value for key, value in said.items()})


def _read_shown(dialect: str, params: Params, said: dict[str, Any], seen: set[str]) -> None:
    found = first(params, _SHOWN.get(dialect, ()))
    if found is not None and (_is(found[1], _YES) or _is(found[1], _NO)):
        seen.add(found[0])
        said["reasoning.includeInResponse"] = _is(found[1], _YES) != found[0].endswith("exclude")
    path = _VERBOSITY.get(dialect)
    found = first(params, (path,) if path else ())
    if found is not None and found[1] in ("low", "medium", "high"):
        seen.add(found[0])
        said["text.verbosity"] = found[1]


def _is(value: Any, words: tuple[Any, ...]) -> bool:
    """Whether ``value`` is one of ``words``; 1 is not ``True``."""
    return any(value is word or (isinstance(word, str) and value == word) for word in words)


def hidden_unasked(dialect: str, settings: Settings) -> Settings:
    """``settings`` under what a client of ``dialect`` expects that asks for nothing, unless somebody said otherwise."""
    if dialect not in _HIDDEN_UNASKED or "reasoning.includeInResponse" in settings.explicit:
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
