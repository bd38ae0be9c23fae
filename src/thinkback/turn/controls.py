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
        budget: Any = settings.max_tokens
        for part in reversed(controls.max_tokens.split(".")):
            budget = {part: budget}
        say("reasoning.maxTokens", str(settings.max_tokens), budget if controls.max_tokens else None)
    return params, dropped
