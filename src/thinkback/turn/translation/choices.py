"""Which tools the model is to call, in the words of each dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from thinkback.model.target import lookup, merge
from thinkback.turn.translation.paths import Params, nested

Word: TypeAlias = Literal["auto", "none", "required"]


class Choice(NamedTuple):
    """Whether the model is to call a tool; ``names`` are those it may choose among, empty for all."""

    word: Word
    names: tuple[str, ...] = ()


class _Said(NamedTuple):
    """How a dialect says it: where, the words, one tool by name, several of them."""

    path: str
    words: Mapping[Word, Any]
    one: Callable[[str], Any] | None = None
    several: Callable[[Word, Sequence[str]], Any] | None = None


def _function(name: str) -> Any:
    return {"type": "function", "function": {"name": name}}


def _allowed(word: Word, names: Sequence[str]) -> Any:
    return {"type": "allowed_tools", "mode": word, "tools": [{"type": "function", "name": name} for name in names]}


_PLAIN: Mapping[Word, Any] = {"auto": "auto", "none": "none", "required": "required"}
_SAID: Mapping[str, _Said] = {
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
        lambda word, names: {
            "mode": "ANY" if word == "required" else "VALIDATED",
            "allowedFunctionNames": list(names),
        },
    ),
    "gemini-interactions": _Said(
        "generation_config.tool_choice",
        {"auto": "auto", "none": "none", "required": "any"},
        lambda name: {"allowed_tools": {"mode": "any", "tools": [name]}},
        lambda word, names: {
            "allowed_tools": {"mode": "any" if word == "required" else "validated", "tools": list(names)}
        },
    ),
    "mistral": _Said("tool_choice", {**_PLAIN, "required": "any"}, _function),
    "openai-chat": _Said("tool_choice", _PLAIN, _function),
    "openai-responses": _Said("tool_choice", _PLAIN, lambda name: {"type": "function", "name": name}, _allowed),
}
_WORDS: Mapping[str, Word] = {
    "any": "required",
    "auto": "auto",
    "none": "none",
    "required": "required",
    "validated": "auto",
}
_NAMED = ("name", "function.name", "tool.name")
_LISTED = ("allowedFunctionNames", "allowed_tools.tools", "tools")
_KNOWN = frozenset({"allowedFunctionNames", "allowed_tools", "any", "auto", "function", "mode", "name", "tool"}) | {
    "tools",
    "type",
}
# Where calls beside each other are allowed or forbidden; with Anthropic a part of the choice, and the other way round.
_BESIDE = "parallel_tool_calls"
_ALONE = "tool_choice.disable_parallel_tool_use"
_HAVE_BESIDE = frozenset({"mistral", "openai-chat", "openai-responses"})


def read(dialect: str, params: Params, seen: set[str]) -> Choice | None:
    """The choice in native ``params``; what is understood of it is noted in ``seen``."""
    said = _SAID.get(dialect)
    value = lookup(params, said.path) if said else None
    if said is None or value is None:
        return None
    if isinstance(value, str):
        word = _WORDS.get(value.lower())
        seen.update({said.path} if word else ())
        return Choice(word) if word else None
    if not isinstance(value, dict):
        return None
    names = _names(value)
    word = _word(value) or ("required" if names else None)
    if word is None:
        return None
    seen.update(f"{said.path}.{key}" for key in value if key in _KNOWN)
    return Choice(word, names)


def _word(value: dict[str, Any]) -> Word | None:
    words = (lookup(value, path) for path in ("mode", "allowed_tools.mode", "type"))
    given = [word for word in words if isinstance(word, str)] or list(value)[:1]
    return next((_WORDS[word.lower()] for word in given if word.lower() in _WORDS), None)


def _names(value: dict[str, Any]) -> tuple[str, ...]:
    for path in _NAMED:
        found = lookup(value, path)
        if isinstance(found, str):
            return (found,)
    for path in _LISTED:
        found = lookup(value, path)
        if isinstance(found, list):
            named = (tool if isinstance(tool, str) else _names(tool)[:1] for tool in found if tool)
            return tuple(name if isinstance(name, str) else "".join(name) for name in named if name)
    return ()


def write(dialect: str, choice: Choice | None, lost: list[str]) -> Params:
    """Native parameters for ``choice``; what there is no word for is told in ``lost``. ``auto`` goes without saying."""
    if choice is None or choice == Choice("auto"):
        return {}
    word, names = choice
    said = _SAID.get(dialect)
    if said is not None and said.one is not None and word == "required" and len(names) == 1:
        return nested(said.path, said.one(names[0]))
    if said is not None and said.several is not None and names and word != "none":
        return nested(said.path, said.several(word, names))
    if names and word != "none":
        lost.append(f"tool_choice {', '.join(names)}: {dialect} has no word for it")
    value = said.words.get(word) if said is not None else None
    if said is None or value is None:
        if word != "auto" and not names:
            lost.append(f"tool_choice {word}: {dialect} has no word for it")
        return {}
    return nested(said.path, value)


def read_beside(dialect: str, params: Params, seen: set[str]) -> bool | None:
    """Whether calls may stand beside each other; ``None`` where nothing is said."""
    path = _ALONE if dialect == "anthropic" else _BESIDE if dialect in _HAVE_BESIDE else ""
    value = lookup(params, path) if path else None
    if not isinstance(value, bool):
        return None
    seen.add(path)
    return value != (dialect == "anthropic")


def write_beside(dialect: str, beside: bool | None, params: Params, lost: list[str]) -> Params:
    """``params`` with the word for one call at a time; several are what every model makes unless told otherwise."""
    if beside is not False:
        return params
    if dialect in _HAVE_BESIDE:
        return merge(params, {_BESIDE: False})
    if dialect != "anthropic":
        lost.append(f"{_BESIDE} false: {dialect} has no word for it")
    elif lookup(params, "tool_choice.type") != "none":
        return merge(merge({"tool_choice": {"type": "auto"}}, params), nested(_ALONE, True))
    return params
