"""Attributes of spans as values, and the messages that OpenInference spreads over them, as parts of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thinkback.formats.parts import items_of
from thinkback.wire.values import members_of, plain

_VALUES = ("stringValue", "boolValue", "intValue", "doubleValue", "bytesValue")
_SNAKE = ("string_value", "bool_value", "int_value", "double_value", "bytes_value")
_INTEGERS = frozenset({"intValue", "int_value"})
_SEALED = ("signature", "encrypted_content", "data", "id")


def attributes_of(given: object) -> dict[str, Any]:
    """Attributes by their dotted names, from a list of keys with typed values or from an object."""
    if isinstance(given, dict):
        return dict(_flat("", given))
    pairs = [members_of(each) for each in items_of(given)]
    return {plain(pair.get("key")): _value(pair.get("value")) for pair in pairs}


def _value(given: object) -> Any:
    value = members_of(given)
    for name in (*_VALUES, *_SNAKE):
        if name in value:
            found = value[name]
            is_text = name in _INTEGERS and isinstance(found, str) and found.isascii() and found.isdigit()
            return int(found) if is_text and len(found) < 20 else found
    for name in ("arrayValue", "array_value"):
        if name in value:
            return [_value(each) for each in items_of(members_of(value[name]).get("values"))]
    for name in ("kvlistValue", "kvlist_value"):
        if name in value:
            pairs = [members_of(each) for each in items_of(members_of(value[name]).get("values"))]
            return {plain(pair.get("key")): _value(pair.get("value")) for pair in pairs}
    return None


def _flat(name: str, value: object) -> Iterator[tuple[str, Any]]:
    """Objects in objects as dotted names; lists only where OpenInference counts them."""
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list) and name.startswith("llm."):
        inside = enumerate(value)
    if not inside:
        yield name, value
    else:
        for key, each in inside:
            yield from _flat(f"{name}.{key}" if name else str(key), each)


def messages_of(said: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The messages that attributes of this prefix spread out, in their order, as OpenTelemetry writes messages."""
    found = _numbered(said, prefix)
    return [_message({name.removeprefix("message."): value for name, value in each.items()}) for each in found]


def _numbered(fields: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """What stands behind each number that names go on with after ``prefix``, by number."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        at, _, rest = name.removeprefix(prefix).partition(".")
        if rest and name.startswith(prefix) and at.isascii() and at.isdigit() and len(at) < 10:
            found.setdefault(int(at), {})[rest] = value
    return [found[at] for at in sorted(found)]


def _message(fields: dict[str, Any]) -> dict[str, Any]:
    role, content = plain(fields.get("role")), plain(fields.get("content"))
    if role in ("tool", "function"):
        part = {"type": "tool_call_response", "id": fields.get("tool_call_id"), "response": content}
        return {"role": "tool", "parts": [{**part, "name": fields.get("name")}]}
    parts = [_part(each) for each in _numbered(fields, "contents.")]
    if content and not any(part["type"] == "text" for part in parts):
        parts.append({"type": "text", "content": content})
    calls = [_call(each) for each in _numbered(fields, "tool_calls.")]
    known = {part.get("id") for part in parts if part["type"] == "tool_call"}
    parts += [each for each in calls if each["id"] not in known]
    return {"role": role, "parts": parts}


def _part(fields: dict[str, Any]) -> dict[str, Any]:
    own = {name.removeprefix("message_content."): value for name, value in fields.items()}
    sealed = {name: own[name] for name in _SEALED if plain(own.get(name))}
    match own.get("type"):
        case "reasoning":
            return {"type": "reasoning", "content": plain(own.get("text")), **sealed}
        case "tool_use":
            return _call(own)
        case "image":
            url = plain(own.get("image.image.url"))
            kind, _, data = url.removeprefix("data:").partition(";base64,")
            if data and url.startswith("data:"):
                return {"type": "blob", "mime_type": kind, "content": data}
            return {"type": "uri", "modality": "image", "uri": url}
        case "text" | None:
            return {"type": "text", "content": plain(own.get("text")), **sealed}
    return own


def _call(fields: dict[str, Any]) -> dict[str, Any]:
    own = {name.removeprefix("tool_call."): value for name, value in fields.items()}
    part = {"type": "tool_call", "id": own.get("id"), "name": own.get("function.name")}
    signature = plain(own.get("reasoning_signature"))
    return {
        **part,
        "arguments": own.get("function.arguments", "{}"),
        **({"reasoning_signature": signature} if signature else {}),
    }
