"""The form that an answer has to have: JSON, or JSON of a schema, in the words of each dialect."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.target import lookup, merge
from thinkback.turn.translation.paths import nested
from thinkback.wire.dialect import Dialect
from thinkback.wire.parameters import AnswerForm, Form, Params
from thinkback.wire.result import WantedOptions

_KNOWN = frozenset({"description", "json_schema", "mime_type", "name", "schema", "strict", "structure", "type"})


def read(place: AnswerForm, params: Params, seen: set[str]) -> Form | None:
    """The form in native ``params``; what is understood of it is noted in ``seen``."""
    if place.read is not None:
        found, understood = place.read(params)
        seen.update(understood)
        return found
    for path in place.paths:
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
    if kind == "text" and value.get("mime_type") == "application/json":
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


def write(dialect: Dialect, form: Form | None, lost: list[str]) -> Params:
    """Native parameters for ``form``; what there is no word for is told in ``lost``."""
    if form is None:
        return {}
    place = dialect.parameters.form
    if form.schema is None:
        if place.json is None:
            lost.append(f"JSON without a schema: {dialect.name} has no word for it")
        return place.json or {}
    wanted = WantedOptions(schema=form.schema, schema_name=form.name or "answer")
    params = {key: value for key, value in dialect.options(wanted).items() if key != "stream"}
    if form.strict is not None and "strict" in place.takes:
        params = merge(params, nested(f"{place.about}.strict", form.strict))
    elif form.strict:
        lost.append(f"strict of the answer's schema: {dialect.name} has no name for it")
    if form.description and "description" in place.takes:
        params = merge(params, nested(f"{place.about}.description", form.description))
    elif form.description:
        lost.append(f"the description of the answer's schema: {dialect.name} has no name for it")
    return params
