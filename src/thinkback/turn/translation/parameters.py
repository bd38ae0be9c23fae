"""Common parameters of a request, out of one dialect and into another: a table of names, and what is not in it.

Reasoning is not translated by name: it becomes settings, which the target's rule row says in its own words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from thinkback.model.target import Settings, Target, lookup, merge
from thinkback.turn.translation import choices, forms, reasoning
from thinkback.turn.translation.choices import Choice
from thinkback.turn.translation.forms import Form
from thinkback.turn.translation.paths import Params, first, leaves, nested, within
from thinkback.turn.translation.refused import HANDLED, goes_without_saying

# Where each dialect has a parameter: the first name is written, all are read.
_SAMPLING = {"temperature": ("temperature",), "top_p": ("top_p",)}
_PENALTIES = {"presence_penalty": ("presence_penalty",), "frequency_penalty": ("frequency_penalty",)}
_SHARED = {"prompt_cache_key": ("prompt_cache_key",), "service_tier": ("service_tier",)}
NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "anthropic": {
        **_SAMPLING,
        "end_user": ("metadata.user_id",),
        "max_tokens": ("max_tokens",),
        "stop": ("stop_sequences",),
        "top_k": ("top_k",),
    },
    "bedrock": {
        "max_tokens": ("inferenceConfig.maxTokens",),
        "temperature": ("inferenceConfig.temperature",),
        "top_p": ("inferenceConfig.topP",),
        "stop": ("inferenceConfig.stopSequences",),
    },
    "cohere": {
        **_PENALTIES,
        "max_tokens": ("max_tokens",),
        "seed": ("seed",),
        "stop": ("stop_sequences",),
        "temperature": ("temperature",),
        "top_k": ("k",),
        "top_p": ("p",),
    },
    "gemini": {
        name: (f"generationConfig.{key}",)
        for name, key in (
            ("frequency_penalty", "frequencyPenalty"),
            ("max_tokens", "maxOutputTokens"),
            ("presence_penalty", "presencePenalty"),
            ("seed", "seed"),
            ("stop", "stopSequences"),
            ("temperature", "temperature"),
            ("top_k", "topK"),
            ("top_p", "topP"),
        )
    },
    "gemini-interactions": {
        "max_tokens": ("generation_config.max_output_tokens",),
        "seed": ("generation_config.seed",),
        "stop": ("generation_config.stop_sequences",),
        "temperature": ("generation_config.temperature",),
        "top_p": ("generation_config.top_p",),
    },
    "mistral": {
        **_SAMPLING,
        **_PENALTIES,
        "max_tokens": ("max_tokens",),
        "seed": ("random_seed",),
        "stop": ("stop",),
    },
    "ollama": {
        name: (f"options.{key}",)
        for name, key in (
            ("frequency_penalty", "frequency_penalty"),
            ("max_tokens", "num_predict"),
            ("presence_penalty", "presence_penalty"),
            ("seed", "seed"),
            ("stop", "stop"),
            ("temperature", "temperature"),
            ("top_k", "top_k"),
            ("top_p", "top_p"),
        )
    },
    "openai-chat": {
        **_SAMPLING,
        **_PENALTIES,
        "end_user": ("user",),
        "max_tokens": ("max_tokens", "max_completion_tokens"),
        "seed": ("seed",),
        "stop": ("stop",),
    },
    "openai-responses": {
        **_SAMPLING,
        **_PENALTIES,
        **_SHARED,
        "end_user": ("user",),
        "max_tokens": ("max_output_tokens",),
        "metadata": ("metadata",),
    },
}
# What clients of a dialect say to some of its endpoints and a translated request does not; read before the other names.
_READ_ONLY: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "gemini": {"end_user": ("labels.user_id", "labels.user")},
    "openai-chat": {
        **_SHARED,
        "end_user": ("safety_identifier",),
        "metadata": ("metadata",),
        "top_k": ("top_k",),
    },
    "openai-responses": {"end_user": ("safety_identifier",), "stop": ("stop",)},
}
# Endpoints with a name of their own for something.
_OPENAI = {"max_tokens": "max_completion_tokens", **{name: name for name in _SHARED}}
_OWN_NAMES: Mapping[str, Mapping[str, str]] = {
    "openai-chat": {**_OPENAI, "end_user": "safety_identifier"},
    "azure-openai-chat": _OPENAI,
}
_UNIT = (0, 1)
# The smallest and the largest value, where another dialect allows more.
_RANGES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "anthropic": {"temperature": _UNIT},
    "bedrock": {"temperature": _UNIT},
    "cohere": {
        "frequency_penalty": _UNIT,
        "presence_penalty": _UNIT,
        "temperature": _UNIT,
        "top_k": (0, 500),
        "top_p": (0.01, 0.99),
    },
    "mistral": {"temperature": (0, 1.5)},
}
# What every model does unless told otherwise.
_NEUTRAL = {"frequency_penalty": 0, "presence_penalty": 0}
_LONGEST_USER = {"openai-chat": 64, "openai-responses": 64}


class Wishes(NamedTuple):
    """What a request asks for, whatever its dialect calls it; ``rest`` are the dotted paths of all else.

    ``beside``: calls may stand beside each other.
    """

    common: Params
    choice: Choice | None = None
    settings: Settings = Settings()
    rest: tuple[str, ...] = ()
    form: Form | None = None
    beside: bool | None = None


def read(dialect: str, params: Params) -> Wishes:
    """The wishes in the native ``params`` of ``dialect``, spelt as the wire has them."""
    common: Params = {}
    seen = set(HANDLED.get(dialect, ()))
    for name, paths in (*_READ_ONLY.get(dialect, {}).items(), *NAMES[dialect].items()):
        found = first(params, paths)
        if found is not None and common.get(name) in (None, found[1]):
            common[name] = [found[1]] if name == "stop" and isinstance(found[1], str) else found[1]
            seen.add(found[0])
    choice = choices.read(dialect, params, seen)
    beside = choices.read_beside(dialect, params, seen)
    form = forms.read(dialect, params, seen)
    settings = reasoning.read(dialect, params, seen)
    rest = (path for path in leaves(params) if not within(path, seen))
    said = tuple(path for path in rest if not goes_without_saying(dialect, path, lookup(params, path)))
    return Wishes(common, choice, settings, said, form, beside)


def write(target: Target, wishes: Wishes) -> tuple[Params, list[str]]:
    """(native parameters, what there is no name for) of ``wishes`` for ``target``; settings are not among them."""
    params: Params = {}
    lost: list[str] = []
    dialect = target.endpoint.dialect
    own = _OWN_NAMES.get(target.endpoint.id, {})
    for name, value in wishes.common.items():
        paths = NAMES[dialect].get(name)
        path = own.get(name, paths[0] if paths is not None else "")
        if name == "end_user" and paths is not None:
            path = target.rule.guard.end_user or path
        if path:
            params = merge(params, nested(path, _fitting(dialect, name, value, lost)))
        elif value != _NEUTRAL.get(name):
            lost.append(f"{name}: {dialect} has no name for it")
    params = merge(params, choices.write(dialect, wishes.choice, lost))
    params = choices.write_beside(dialect, wishes.beside, params, lost)
    return merge(params, forms.write(dialect, wishes.form, lost)), lost


def _fitting(dialect: str, name: str, value: Any, lost: list[str]) -> Any:
    """``value``, or the nearest that the dialect takes."""
    span = _RANGES.get(dialect, {}).get(name)
    if span is not None and isinstance(value, int | float) and not span[0] <= value <= span[1]:
        nearest = min(max(value, span[0]), span[1])
        lost.append(f"{name} {value}: {dialect} takes it from {span[0]} to {span[1]}, {nearest} is sent")
        return nearest
    longest = _LONGEST_USER.get(dialect) if name == "end_user" else None
    if longest is not None and isinstance(value, str) and len(value) > longest:
        lost.append(f"{name}: {dialect} takes {longest} characters, its SHA-256 is sent")
        return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return value
