"""The form of an answer: JSON, or JSON of a schema, out of each dialect and into each other one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turn.translation.test_parameters import target
from thinkback.turn.translation import parameters
from thinkback.turn.translation.parameters import Wishes
from thinkback.wire.parameters import Form
from thinkback.wire.registry import PACKAGES

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize("dialect", PACKAGES)
@pytest.mark.parametrize("form", [Form(SCHEMA, "mine", True, "About it."), Form(SCHEMA), Form()])
def test_a_form_is_read_as_it_is_written(dialect: str, form: Form) -> None:
    """The schema arrives everywhere; what a dialect has no place for is told, unless it goes without saying."""
    params, lost = parameters.write(target(dialect), Wishes({}, form=form))

    read = parameters.read(dialect, params)
    assert () == read.rest
    if read.form is None:
        assert (None, [f"JSON without a schema: {dialect} has no word for it"]) == (form.schema, lost)
    else:
        assert (form.schema, form.description if not lost else "") == (read.form.schema, read.form.description)
        assert read.form.name in (form.name, "answer", "")


@pytest.mark.parametrize(
    ("dialect", "params", "form"),
    [
        ("openai-chat", {"response_format": {"type": "json_object"}}, Form()),
        ("openai-chat", {"response_format": {"type": "text"}}, None),
        ("openai-chat", {"response_format": {"type": "json_object", "schema": SCHEMA}}, Form(SCHEMA)),
        ("openai-responses", {"text": {"format": {"type": "text"}}}, None),
        ("anthropic", {"output_format": {"type": "json_schema", "schema": SCHEMA}}, Form(SCHEMA)),
        ("anthropic", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}, Form(SCHEMA)),
        ("cohere", {"response_format": {"type": "json_object", "json_schema": SCHEMA}}, Form(SCHEMA)),
        ("ollama", {"format": SCHEMA}, Form(SCHEMA)),
        ("ollama", {"format": "json"}, Form()),
        ("gemini-interactions", {"response_format": {"type": "text", "mime_type": "application/json"}}, Form()),
        ("gemini", {"generationConfig": {"responseMimeType": "text/plain"}}, None),
        (
            "gemini",
            {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
            Form(SCHEMA),
        ),
        (
            "gemini",
            {
                "generationConfig": {
                    "responseMimeType": "text/x.enum",
                    "responseSchema": {"type": "STRING", "enum": ["a"]},
                }
            },
            Form({"type": "string", "enum": ["a"]}),
        ),
        ("gemini", {"generationConfig": {"responseMimeType": "application/json", "responseSchema": None}}, Form()),
    ],
)
def test_every_way_to_ask_for_a_form_is_understood(dialect: str, params: dict[str, Any], form: Form | None) -> None:
    """Each dialect's words for it, the older ones and those of other hosts included."""
    read = parameters.read(dialect, params)

    assert (form, ()) == (read.form, read.rest)


@pytest.mark.parametrize(
    ("dialect", "params"),
    [
        ("openai-chat", {"response_format": {"type": "grammar", "grammar": "x"}}),
        ("openai-chat", {"response_format": 3}),
        ("openai-chat", {"response_format": {"type": "json_object", "grammar": "x"}}),
        ("bedrock", {"outputConfig": {"textFormat": {"structure": {"jsonSchema": {"schema": "{no JSON"}}}}}),
        ("gemini", {"generationConfig": {"responseMimeType": "image/png"}}),
        ("gemini", {"generationConfig": {"responseSchema": {"type": "OBJECT"}}}),
    ],
)
def test_what_is_not_understood_is_told(dialect: str, params: dict[str, Any]) -> None:
    """It stays among the rest."""
    read = parameters.read(dialect, params)

    assert (True, True) == (read.form in (None, Form()), bool(read.rest))
