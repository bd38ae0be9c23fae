"""Neutral reasoning settings to an endpoint's own parameters, by data; what cannot be said is reported."""

from __future__ import annotations

from typing import Any

from thinkback.model.plan import Dropped
from thinkback.model.target import Settings, Target, merge


def control_params(settings: Settings, target: Target) -> tuple[dict[str, Any], list[Dropped]]:
    """Parameters for ``settings``, and the controls that were asked for and cannot be sent.

    Only what a person set explicitly is said; the endpoint's own defaults stand otherwise.
    """
    controls = target.rule.controls
    params: dict[str, Any] = {}
    dropped: list[Dropped] = []

    def say(key: str, value: str, words: dict[str, Any] | None) -> None:
        nonlocal params
        if words:
            params = merge(params, words)
        else:
            dropped.append(Dropped(key, value, f"{target.endpoint.id} has no way to say it for {target.model}"))

    if not settings.enabled:
        say("reasoning.enabled", "false", controls.off or controls.effort.get("none"))
        return params, dropped
    if "reasoning.enabled" in settings.explicit and controls.on:
        params = merge(params, controls.on)
    if settings.effort is not None:
        say("reasoning.effort", settings.effort, controls.effort.get(settings.effort))
    if settings.max_tokens is not None:
        tokens, limit = settings.max_tokens, target.info.max_output
        if 0 < limit < tokens and controls.max_tokens:
            reason = f"{target.model} writes at most {limit} tokens: {limit} is sent"
            dropped.append(Dropped("reasoning.maxTokens", str(tokens), reason))
            tokens = limit
        say("reasoning.maxTokens", str(tokens), nested(controls.max_tokens, tokens))
    return params, dropped


def nested(path: str, value: Any) -> dict[str, Any] | None:
    """``value`` at a dotted ``path``; nothing where there is no path."""
    if not path:
        return None
    for part in reversed(path.split(".")):
        value = {part: value}
    return dict(value)
