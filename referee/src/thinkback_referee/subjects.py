"""What a scripted model understands of a user's words, and how it fills a tool's arguments from them.

Enough to make any function tool look sensibly called: a name or quotation from the text where the schema wants a
string, and the plainest valid value elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from .jsons import JsonObject, as_list, as_object, as_text

_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|(?<!\w)'([^']+)'(?!\w)|`([^`]+)`")
_WORD = re.compile(r"[^\W_][\w'-]*")
_NAME = re.compile(r"\b[^\W\d_a-z][\w-]*(?: [^\W\d_a-z][\w-]*)*")
_DEPTH = 6
_STRING_FORMATS = MappingProxyType({"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "time": "12:00:00"})


def words_of(text: str) -> list[str]:
    """The words of a text, lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def subjects_of(text: str) -> list[str]:
    """What the text is about, in its order: quotations, else names, else its last word."""
    quoted = ["".join(groups) for groups in _QUOTED.findall(text)]
    return quoted or _names(text) or list(_WORD.findall(text)[-1:]) or ["it"]


def _names(text: str) -> list[str]:
    found = []
    for match in _NAME.finditer(text):
        name, before = match.group(), text[: match.start()].rstrip()
        if not before or before[-1] in ".!?":
            # The first word of a sentence is capitalised whatever it is; what follows it may be a name.
            name = name.partition(" ")[2]
        if name and name != "I":
            found.append(name)
    return found


def fill_arguments(schema: Mapping[str, object], subject: str) -> JsonObject:
    """Arguments for a tool: every required property of its JSON schema, or the first one if none is required."""
    value = _value(schema or {"type": "object"}, subject, schema, _DEPTH)
    return value if isinstance(value, dict) else {}


def _value(schema: Mapping[str, object], subject: str, root: Mapping[str, object], depth: int) -> object:
    schema = _resolved(schema, root)
    for name in ("enum", "examples"):
        if listed := as_list(schema.get(name)):
            return listed[0]
    for name in ("const", "default"):
        if schema.get(name) is not None:
            return schema[name]
    options = as_list(schema.get("anyOf")) or as_list(schema.get("oneOf"))
    useful = [as_object(option) for option in options if as_object(option).get("type") != "null"]
    if useful and depth:
        return _value(useful[0], subject, root, depth - 1)
    make = _MAKERS.get(_type(schema))
    return make(schema, subject, root, depth) if make else None


def _resolved(schema: Mapping[str, object], root: Mapping[str, object]) -> Mapping[str, object]:
    path = as_text(schema.get("$ref"))
    if not path.startswith("#/"):
        return schema
    found = root
    for name in path.removeprefix("#/").split("/"):
        found = as_object(found.get(name))
    return found


def _type(schema: Mapping[str, object]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    return as_text(kind) or ("object" if "properties" in schema else "string")


def _object(schema: Mapping[str, object], subject: str, root: Mapping[str, object], depth: int) -> object:
    properties = as_object(schema.get("properties"))
    names = [as_text(name) for name in as_list(schema.get("required"))] or list(properties)[:1]
    if not depth:
        return {}
    return {name: _value(as_object(properties.get(name)), subject, root, depth - 1) for name in names}


def _array(schema: Mapping[str, object], subject: str, root: Mapping[str, object], depth: int) -> object:
    return [_value(as_object(schema.get("items")), subject, root, depth - 1)] if depth else []


def _number(schema: Mapping[str, object], subject: str, root: Mapping[str, object], depth: int) -> object:
    low, high = schema.get("minimum"), schema.get("maximum")
    value = max(1, low) if isinstance(low, int | float) else 1
    return min(value, high) if isinstance(high, int | float) else value


def _string(schema: Mapping[str, object], subject: str, root: Mapping[str, object], depth: int) -> object:
    return _STRING_FORMATS.get(as_text(schema.get("format")), subject)


def _true(schema: Mapping[str, object], subject: str, root: Mapping[str, object], depth: int) -> object:
    return True


_Maker = Callable[[Mapping[str, object], str, Mapping[str, object], int], object]
_MAKERS: MappingProxyType[str, _Maker] = MappingProxyType(
    {"object": _object, "array": _array, "string": _string, "number": _number, "integer": _number, "boolean": _true}
)
