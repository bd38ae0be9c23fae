"""Common parameters of a request, out of one dialect and into another: a table of names, and what is not in it.

Reasoning is not translated by name: it becomes settings, which the target's rule row says in its own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from thinkback.model.target import Settings, lookup, merge

Params = dict[str, Any]

# Where each dialect has a parameter: the first name is written, all are read.
_SAMPLING = {"temperature": ("temperature",), "top_p": ("top_p",)}
NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "anthropic": {
        **_SAMPLING,
        "max_tokens": ("max_tokens",),
        "stop": ("stop_sequences",),
        "stream": ("stream",),
    },
    "bedrock": {
        "max_tokens": ("inferenceConfig.maxTokens",),
        "temperature": ("inferenceConfig.temperature",),
        "top_p": ("inferenceConfig.topP",),
        "stop": ("inferenceConfig.stopSequences",),
    },
    "cohere": {
        "max_tokens": ("max_tokens",),
        "temperature": ("temperature",),
        "top_p": ("p",),
        "stop": ("stop_sequences",),
        "stream": ("stream",),
    },
    "gemini": {
        "max_tokens": ("generationConfig.maxOutputTokens",),
        "temperature": ("generationConfig.temperature",),
        "top_p": ("generationConfig.topP",),
        "stop": ("generationConfig.stopSequences",),
    },
    "gemini-interactions": {
        "max_tokens": ("generation_config.max_output_tokens",),
        "temperature": ("generation_config.temperature",),
        "top_p": ("generation_config.top_p",),
        "stop": ("generation_config.stop_sequences",),
        "stream": ("stream",),
    },
    "mistral": {**_SAMPLING, "max_tokens": ("max_tokens",), "stop": ("stop",), "stream": ("stream",)},
    "ollama": {
        "max_tokens": ("options.num_predict",),
        "temperature": ("options.temperature",),
        "top_p": ("options.top_p",),
        "stop": ("options.stop",),
        "stream": ("stream",),
    },
    "openai-chat": {
        **_SAMPLING,
        "max_tokens": ("max_tokens", "max_completion_tokens"),
        "stop": ("stop",),
        "stream": ("stream",),
    },
    "openai-responses": {**_SAMPLING, "max_tokens": ("max_output_tokens",), "stream": ("stream",)},
}
# Endpoints with a name of their own for something.
_OWN_NAMES = {
    "openai-chat": {"max_tokens": "max_completion_tokens"},
    "azure-openai-chat": {"max_tokens": "max_completion_tokens"},
}
_EFFORT: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("output_config.effort",),
    "bedrock": (
        "additionalModelRequestFields.output_config.effort",
        "additionalModelRequestFields.reasoning_effort",
        "additionalModelRequestFields.reasoning_config",
    ),
    "gemini": ("generationConfig.thinkingConfig.thinkingLevel",),
    "gemini-interactions": ("generation_config.thinking_level",),
    "mistral": ("reasoning_effort",),
    "ollama": ("think",),
    "openai-chat": ("reasoning_effort", "reasoning.effort"),
    "openai-responses": ("reasoning.effort",),
}
_BUDGET: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("thinking.budget_tokens",),
    "bedrock": ("additionalModelRequestFields.thinking.budget_tokens",),
    "cohere": ("thinking.token_budget",),
    "gemini": ("generationConfig.thinkingConfig.thinkingBudget",),
    "openai-chat": ("reasoning.max_tokens", "thinking_budget"),
}
_SWITCH: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("thinking.type",),
    "bedrock": ("additionalModelRequestFields.thinking.type",),
    "cohere": ("thinking.type",),
    "ollama": ("think",),
    "openai-chat": ("thinking.type", "enable_thinking"),
}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_ON, _OFF = ("enabled", "adaptive", True), ("disabled", False)


class Choice(NamedTuple):
    """Which tool the model is to call: ``auto``, ``none``, ``required``, or ``named`` with the name of one."""

    word: str
    name: str = ""


class _Said(NamedTuple):
    """How a dialect says it: where, the words, and a tool by name."""

    path: str
    words: Mapping[str, Any]
    named: Callable[[str], Any] | None = None


def _function(name: str) -> Any:
    return {"type": "function", "function": {"name": name}}


_PLAIN = {"auto": "auto", "none": "none", "required": "required"}
_CHOICES: Mapping[str, _Said] = {
    "anthropic": _Said(
        "tool_choice",
        {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}},
        lambda name: {"type": "tool", "name": name},
    ),
    "bedrock": _Said(
        "toolConfig.toolChoice", {"auto": {"auto": {}}, "required": {"any": {}}}, lambda name: {"tool": {"name": name}}
    ),
    "cohere": _Said("tool_choice", {"none": "NONE", "required": "REQUIRED"}),
    "gemini": _Said(
        "toolConfig.functionCallingConfig",
        {"auto": {"mode": "AUTO"}, "none": {"mode": "NONE"}, "required": {"mode": "ANY"}},
        lambda name: {"mode": "ANY", "allowedFunctionNames": [name]},
    ),
    "gemini-interactions": _Said(
        "generation_config.tool_choice",
        {"auto": "auto", "none": "none", "required": "any"},
        lambda name: {"allowed_tools": {"mode": "any", "tools": [name]}},
    ),
    "mistral": _Said("tool_choice", {**_PLAIN, "required": "any"}, _function),
    "openai-chat": _Said("tool_choice", _PLAIN, _function),
    "openai-responses": _Said("tool_choice", _PLAIN, lambda name: {"type": "function", "name": name}),
}


class Wishes(NamedTuple):
    """What a request asks for, whatever its dialect calls it; ``rest`` are the dotted paths of all else."""

    common: Params
    choice: Choice | None
    settings: Settings
    rest: tuple[str, ...]


def read(dialect: str, params: Params) -> Wishes:
    """The wishes in the native ``params`` of ``dialect``."""
    common: Params = {}
    seen: set[str] = set()
    for name, paths in NAMES[dialect].items():
        found = _first(params, paths)
        if found is not None:
            common[name] = [found[1]] if name == "stop" and isinstance(found[1], str) else found[1]
            seen.add(found[0])
    choice = _choice(dialect, params)
    if choice is not None:
        seen.add(_CHOICES[dialect].path)
    settings = _settings(dialect, params, seen)
    return Wishes(common, choice, settings, tuple(path for path in _leaves(params) if not _within(path, seen)))


def write(dialect: str, endpoint: str, wishes: Wishes) -> tuple[Params, list[str]]:
    """(native parameters, what there is no name for) of ``wishes`` for ``endpoint``, which speaks ``dialect``."""
    params: Params = {}
    lost: list[str] = []
    own = _OWN_NAMES.get(endpoint, {})
    for name, value in wishes.common.items():
        paths = NAMES[dialect].get(name)
        if paths is not None:
            params = merge(params, _nested(own.get(name, paths[0]), value))
        else:
            lost.append("stream: the address says it" if name == "stream" else f"{name}: {dialect} has no name for it")
    if wishes.choice is not None:
        said = _CHOICES.get(dialect)
        word, name = wishes.choice
        value = None
        if said is not None:
            value = said.words.get(word) if not name else said.named(name) if said.named else None
        if said is None or value is None:
            if word != "auto":  # everywhere else nothing at all means the same
                lost.append(f"tool_choice {name or word}: {dialect} has no word for it")
        else:
            params = merge(params, _nested(said.path, value))
    return params, lost


def without(params: Params, path: str) -> Params:
    """``params`` without what stands at the dotted ``path``."""
    key, _, below = path.partition(".")
    if not below:
        return {name: value for name, value in params.items() if name != key}
    inner = params.get(key)
    if not isinstance(inner, dict):
        return params
    left = without(inner, below)
    return {**params, key: left} if left else without(params, key)


def _settings(dialect: str, params: Params, seen: set[str]) -> Settings:
    """Reasoning as neutral settings; what is understood is noted in ``seen``."""
    effort, budget, enabled = None, None, True
    explicit: set[str] = set()
    found = _first(params, _EFFORT.get(dialect, ()))
    if found is not None and str(found[1]).lower() in _EFFORTS:
        effort = str(found[1]).lower()
        seen.add(found[0])
        explicit.add("reasoning.effort")
    found = _first(params, _BUDGET.get(dialect, ()))
    if found is not None and isinstance(found[1], int) and not isinstance(found[1], bool) and found[1] >= 0:
        seen.add(found[0])
        budget, enabled = found[1] or None, found[1] > 0
        explicit.add("reasoning.maxTokens" if budget else "reasoning.enabled")
    found = _first(params, _SWITCH.get(dialect, ()))
    if found is not None and any(found[1] is value or found[1] == value for value in (*_ON, *_OFF)):
        seen.add(found[0])
        enabled = enabled and found[1] not in _OFF
        if not enabled or not explicit:
            explicit.add("reasoning.enabled")
    return Settings(enabled=enabled, effort=effort, max_tokens=budget, explicit=frozenset(explicit))


def _choice(dialect: str, params: Params) -> Choice | None:
    said = _CHOICES.get(dialect)
    value = lookup(params, said.path) if said else None
    if said is None or value is None:
        return None
    name = _name(value)
    if name:
        return Choice("named", name)
    return next((Choice(word) for word, form in said.words.items() if _is(value, form)), None)


def _is(value: Any, form: Any) -> bool:
    """Whether ``value`` says ``form``, whatever else it says."""
    if isinstance(value, dict) and isinstance(form, dict):
        return all(key in value and value[key] == expected for key, expected in form.items())
    return bool(value == form) or (form == "any" and value == "required")


def _name(value: Any) -> str:
    """The one tool that a choice names; nothing where it names none, or several."""
    paths = ("name", "function.name", "tool.name", "allowedFunctionNames", "allowed_tools.tools")
    for path in paths if isinstance(value, dict) else ():
        found = lookup(value, path)
        if isinstance(found, str):
            return found
        if isinstance(found, list) and len(found) == 1 and isinstance(found[0], str):
            return found[0]
    return ""


def _first(params: Params, paths: tuple[str, ...]) -> tuple[str, Any] | None:
    found = ((path, lookup(params, path)) for path in paths)
    return next(((path, value) for path, value in found if value is not None), None)


def _nested(path: str, value: Any) -> Params:
    for part in reversed(path.split(".")):
        value = {part: value}
    return dict(value)


def _leaves(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def _within(path: str, seen: set[str]) -> bool:
    return any(path == known or path.startswith(f"{known}.") for known in seen)
