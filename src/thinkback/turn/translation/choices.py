"""Which tools the model is to call, in the words of each dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from thinkback.model.target import lookup, merge
from thinkback.turn.translation.paths import nested
from thinkback.wire.dialect import Dialect
from thinkback.wire.parameters import Params, ToolChoice, Word


class Choice(NamedTuple):
    """Whether the model is to call a tool; ``names`` are those it may choose among, empty for all."""

    word: Word
    names: tuple[str, ...] = ()


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


def read(words: ToolChoice | None, params: Params, seen: set[str]) -> Choice | None:
    """The choice in native ``params``; what is understood of it is noted in ``seen``."""
    value = lookup(params, words.path) if words is not None else None
    if words is None or value is None:
        return None
    if isinstance(value, str):
        word = _WORDS.get(value.lower())
        seen.update({words.path} if word else ())
        return Choice(word) if word else None
    if not isinstance(value, dict):
        return None
    names = _names(value)
    word = _word(value) or ("required" if names else None)
    if word is None:
        return None
    seen.update(f"{words.path}.{key}" for key in value if key in _KNOWN)
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


def write(dialect: Dialect, choice: Choice | None, lost: list[str]) -> Params:
    """Native parameters for ``choice``; ``lost`` gets a sentence where there is no word. ``auto`` is the default."""
    if choice is None or choice == Choice("auto"):
        return {}
    word, names = choice
    words = dialect.parameters.choice
    if words is not None and words.one is not None and word == "required" and len(names) == 1:
        return nested(words.path, words.one(names[0]))
    if words is not None and words.several is not None and names and word != "none":
        return nested(words.path, words.several(word, names))
    if names and word != "none":
        lost.append(f"tool_choice {', '.join(names)}: {dialect.name} has no word for it")
    value = words.words.get(word) if words is not None else None
    if words is None or value is None:
        if word != "auto" and not names:
            lost.append(f"tool_choice {word}: {dialect.name} has no word for it")
        return {}
    return nested(words.path, value)


def read_beside(words: ToolChoice | None, params: Params, seen: set[str]) -> bool | None:
    """Whether calls may stand beside each other; ``None`` where nothing is said."""
    path = words.parallel or words.single if words is not None else ""
    value = lookup(params, path) if path else None
    if words is None or not isinstance(value, bool):
        return None
    seen.add(path)
    return value if words.parallel else not value


def write_beside(dialect: Dialect, beside: bool | None, params: Params, lost: list[str]) -> Params:
    """``params`` with the word for one call at a time; several are what every model makes unless told otherwise."""
    words = dialect.parameters.choice
    if beside is not False:
        return params
    if words is not None and words.parallel:
        return merge(params, nested(words.parallel, False))
    if words is None or not words.single:
        lost.append(f"parallel_tool_calls false: {dialect.name} has no word for it")
    elif lookup(params, words.path) != words.words["none"]:
        return merge(merge(nested(words.path, words.words["auto"]), params), nested(words.single, True))
    return params
