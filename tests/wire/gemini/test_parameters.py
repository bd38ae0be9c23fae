"""The parameters of ``generateContent``: two spellings, the form of an answer, Google's own kind of schema."""

from __future__ import annotations

from typing import Any

import pytest

from thinkback.wire.gemini.parameters import camel, json_schema, read_form
from thinkback.wire.parameters import Form

MIME = "generationConfig.responseMimeType"


def test_both_spellings_of_a_parameter_are_one() -> None:
    """Members of Google's own are spelt as in JSON; labels and schemas keep their names."""
    params = {
        "generation_config": {"max_output_tokens": 9, "thinking_config": {"include_thoughts": True}},
        "labels": {"user_id": "u"},
        "toolConfig": {"function_calling_config": {"allowed_function_names": ["a_b"]}},
    }

    assert {
        "generationConfig": {"maxOutputTokens": 9, "thinkingConfig": {"includeThoughts": True}},
        "labels": {"user_id": "u"},
        "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["a_b"]}},
    } == camel(params)


@pytest.mark.parametrize(
    ("config", "form", "understood"),
    [
        ({}, None, set()),
        ({"responseMimeType": "image/png"}, None, set()),
        ({"responseMimeType": "text/plain"}, None, {MIME}),
        ({"responseMimeType": "application/json"}, Form(), {MIME}),
        (
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}},
            Form({"type": "object"}),
            {MIME, "generationConfig.responseJsonSchema"},
        ),
        (
            {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a"]}},
            Form({"type": "string", "enum": ["a"]}),
            {MIME, "generationConfig.responseSchema"},
        ),
    ],
)
def test_the_form_of_an_answer_is_spread_over_members(
    config: dict[str, Any], form: Form | None, understood: set[str]
) -> None:
    """The type says that it is JSON, a schema of either kind says which."""
    assert (form, frozenset(understood)) == read_form({"generationConfig": config})


def test_a_schema_of_googles_own_kind_becomes_json_schema() -> None:
    """Types in small letters, what may be null as a type, numbers as numbers; names of properties stay as they are."""
    schema = {
        "type": "OBJECT",
        "propertyOrdering": ["type", "list"],
        "properties": {
            "type": {"type": "STRING", "nullable": True, "maxLength": "7"},
            "list": {"type": "ARRAY", "items": {"anyOf": [{"type": "INTEGER"}, {"type": "NUMBER"}]}, "minItems": 1},
            "odd": True,
        },
    }

    assert {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "maxLength": 7},
            "list": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "number"}]}, "minItems": 1},
            "odd": True,
        },
    } == json_schema(schema)
