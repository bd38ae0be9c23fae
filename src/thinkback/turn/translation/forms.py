"""The form that an answer has to have: JSON, or JSON of a schema, in the words of each dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from thinkback.model import canonical
from thinkback.model.target import lookup, merge
from thinkback.turn.dialects import dialect as spoken_as
from thinkback.turn.translation.paths import Params, nested
from thinkback.wire.result import WantedOptions


class Form(NamedTuple):
    """JSON, of ``schema`` where there is one. ``strict``: the provider is to hold the model to it."""

    schema: Mapping[str, Any] | None = None
    name: str = ""
    strict: bool | None = None
    description: str = ""


_PLACES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("output_config.format", "output_format"),
    "bedrock": ("outputConfig.textFormat",),
    "cohere": ("response_format",),
    "gemini-interactions": ("response_format",),
    "mistral": ("response_format",),
    "ollama": ("format",),
    "openai-chat": ("response_format",),
    "openai-responses": ("text.format",),
}
_JSON: Mapping[str, Params] = {
    "cohere": {"response_format": {"type": "json_object"}},
    "gemini": {"generationConfig": {"responseMimeType": "application/json"}},
    "gemini-interactions": {"response_format": {"type": "text", "mime_type": "application/json"}},
    "mistral": {"response_format": {"type": "json_object"}},
    "ollama": {"format": "json"},
    "openai-chat": {"response_format": {"type": "json_object"}},
    "openai-responses": {"text": {"format": {"type": "json_object"}}},
}
# Where the name, the strictness and the description of a schema stand.
_ABOUT: Mapping[str, tuple[str, frozenset[str]]] = {
    "mistral": ("response_format.json_schema", frozenset({"strict"})),
    "openai-chat": ("response_format.json_schema", frozenset({"strict", "description"})),
    "openai-responses": ("text.format", frozenset({"strict", "description"})),
}
_KNOWN = frozenset({"description", "json_schema", "mime_type", "name", "schema", "strict", "structure", "type"})
_MIME, _SCHEMAS = "generationConfig.responseMimeType", ("responseJsonSchema", "responseSchema")
_JSON_TYPE = "application/json"
# Google writes these as text, because they are 64 bits wide.
_COUNTS = frozenset({"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"})


def read(dialect: str, params: Params, seen: set[str]) -> Form | None:
    """The form in native ``params``; what is understood of it is noted in ``seen``."""
    if dialect == "gemini":
        return _read_gemini(params, seen)
    for path in _PLACES[dialect]:
        value = lookup(params, path)
        form = _form_of(value) if value is not None else None
        if form is not None or (isinstance(value, dict) and _is_text(value)):
            known = [f"{path}.{key}" for key in value if key in _KNOWN] if isinstance(value, dict) else []
            seen.update(known if known and (form is None or form.schema is not value) else [path])
            return form
    return None


def _is_text(value: dict[str, Any]) -> bool:
    return value.get("type") == "text" and value.get("mime_type", "text/plain") == "text/plain"


def _form_of(value: Any) -> Form | None:
    """Whatever a dialect puts in the one place for it."""
    if value == "json":
        return Form()
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    inner = lookup(value, "structure.jsonSchema")
    for holder in (value.get("json_schema"), inner, value):
        schema = _parsed(holder.get("schema")) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(schema, dict):
            strict, name, about = holder.get("strict"), holder.get("name"), holder.get("description")
            return Form(
                schema,
                name if isinstance(name, str) else "",
                strict if isinstance(strict, bool) else None,
                about if isinstance(about, str) else "",
            )
    if kind == "json_object":
        held = value.get("json_schema")
        return Form(held if isinstance(held, dict) else None)
    if kind == "text" and value.get("mime_type") == _JSON_TYPE:
        return Form()
    # Ollama has the schema itself there.
    return Form(value) if kind in ("object", "array") or "properties" in value or "$ref" in value else None


def _parsed(schema: Any) -> Any:
    """Converse has schemas as text."""
    if not isinstance(schema, str):
        return schema
    try:
        return canonical.decode(schema)
    except msgspec.DecodeError:
        return None


def _read_gemini(params: Params, seen: set[str]) -> Form | None:
    mime = lookup(params, _MIME)
    if mime == "text/plain":
        seen.add(_MIME)
    if mime not in (_JSON_TYPE, "text/x.enum"):
        return None
    seen.add(_MIME)
    for name in _SCHEMAS:
        schema = lookup(params, f"generationConfig.{name}")
        if isinstance(schema, dict):
            seen.add(f"generationConfig.{name}")
            return Form(schema if name == "responseJsonSchema" else json_schema(schema))
    return Form()


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of Google's own kind as JSON Schema: small letters, ``null`` as a type, numbers as numbers."""
    told: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            told[key] = value.lower()
        elif key in ("propertyOrdering", "property_ordering", "nullable"):
            continue
        elif key == "properties" and isinstance(value, dict):
            told[key] = {name: json_schema(one) if isinstance(one, dict) else one for name, one in value.items()}
        elif key in ("anyOf", "any_of") and isinstance(value, list):
            told["anyOf"] = [json_schema(one) if isinstance(one, dict) else one for one in value]
        elif isinstance(value, dict) and key == "items":
            told[key] = json_schema(value)
        elif key in _COUNTS and isinstance(value, str) and value.isdecimal():
            told[key] = int(value)
        else:
            told[key] = value
    if schema.get("nullable") is True and isinstance(told.get("type"), str):
        told["type"] = [told["type"], "null"]
    return told


def write(dialect: str, form: Form | None, lost: list[str]) -> Params:
    """Native parameters for ``form``; what there is no word for is told in ``lost``."""
    if form is None:
        return {}
    if form.schema is None:
        if dialect not in _JSON:
            lost.append(f"JSON without a schema: {dialect} has no word for it")
        return _JSON.get(dialect, {})
    wanted = WantedOptions(schema=form.schema, schema_name=form.name or "answer")
    params = {key: value for key, value in spoken_as(dialect).options(wanted).items() if key != "stream"}
    path, named = _ABOUT.get(dialect, ("", frozenset()))
    if form.strict is not None and "strict" in named:
        params = merge(params, nested(f"{path}.strict", form.strict))
    if form.description and "description" in named:
        params = merge(params, nested(f"{path}.description", form.description))
    elif form.description:
        lost.append(f"the description of the answer's schema: {dialect} has no name for it")
    return params
