"""Tools: function declarations and what Gemini runs itself, there and back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.commits import Tool

NAME = "gemini"
_DECLARATIONS = ("functionDeclarations", "function_declarations")
_SCHEMAS = ("parametersJsonSchema", "parameters_json_schema")
_NAME = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")


def tools_of(tools: Sequence[Tool]) -> list[bytes]:
    """The entries of ``tools``: neighbouring functions share one, what stood in an entry of its own has it again.

    Raises ``UnsupportedContent`` for a name that no function can have.
    """
    entries: list[bytes] = []
    functions: list[bytes] = []
    for tool in tools:
        verbatim = tool.wire if tool.dialect in ("", NAME) else ""
        if not verbatim:
            functions.append(_declaration(tool))
        elif _is_function(canonical.decode(verbatim)):
            functions.append(canonical.raw(verbatim))
        else:
            entries += [*_grouped(functions), canonical.raw(verbatim)]
            functions = []
    return [*entries, *_grouped(functions)]


def _is_function(definition: Any) -> bool:
    return isinstance(definition, Mapping) and "name" in definition


def _grouped(functions: Sequence[bytes]) -> list[bytes]:
    return [b'{"functionDeclarations":[%b]}' % b",".join(functions)] if functions else []


def _declaration(tool: Tool) -> bytes:
    if _NAME.fullmatch(tool.name) is None:
        raise UnsupportedContent(
            f"Gemini takes no function named {tool.name!r}",
            details={"tool": tool.name, "dialect": NAME},
            next_actions=("use at most 64 letters, digits, underscores, dots, colons and dashes",),
        )
    field = b'"name":' + canonical.string(tool.name)
    if tool.description:
        field += b',"description":' + canonical.string(tool.description)
    if tool.parameters.strip() != "{}":
        field += b',"parametersJsonSchema":' + canonical.raw(tool.parameters)
    return b"{%b}" % field


def read_tools(entries: Any) -> tuple[Tool, ...]:
    """The tools of a request: each function, and each of those that Gemini runs, by its own name."""
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        return ()
    return tuple(tool for entry in entries for tool in _read_entry(entry))


def _read_entry(entry: Any) -> Iterator[Tool]:
    if not isinstance(entry, Mapping):
        yield Tool("", wire=canonical.source(entry), dialect=NAME)
        return
    for key, value in entry.items():
        if key in _DECLARATIONS and isinstance(value, Sequence):
            yield from map(_read_function, value)
        elif value is not None:
            yield Tool(key, wire=canonical.source({key: value}), dialect=NAME)


def _read_function(declaration: Any) -> Tool:
    if not isinstance(declaration, Mapping):
        return Tool("", wire=canonical.source(declaration), dialect=NAME)
    schema = next((declaration[key] for key in _SCHEMAS if declaration.get(key)), None)
    if schema is None:
        schema = _json_schema(declaration.get("parameters") or {})
    return Tool(
        str(declaration.get("name") or ""),
        str(declaration.get("description") or ""),
        canonical.encode(schema).decode(),
        canonical.source(dict(declaration)),
        NAME,
    )


def _json_schema(schema: Any) -> Any:
    """Gemini's own kind of schema as a JSON schema: types in lower case, ``nullable`` as a type."""
    if isinstance(schema, list):
        return [_json_schema(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {key: value for key, value in schema.items() if key not in ("nullable", "propertyOrdering")}
    for key in ("items", "anyOf"):
        if key in found:
            found[key] = _json_schema(found[key])
    properties = found.get("properties")
    if isinstance(properties, Mapping):
        found["properties"] = {name: _json_schema(value) for name, value in properties.items()}
    kind = found.get("type")
    if isinstance(kind, str):
        found["type"] = [kind.lower(), "null"] if schema.get("nullable") is True else kind.lower()
    return found
