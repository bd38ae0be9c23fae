"""How the house script fills arguments: from the user's words where it can, from the schema where it must."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback_referee.jsons import as_object
from thinkback_referee.subjects import fill_arguments, subjects_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the weather in Oslo?", ["Oslo"]),
        ("Compare Oslo and New York. Then tell me", ["Oslo", "New York"]),
        ('Search for "deep sea" and `corals`', ["deep sea", "corals"]),
        ("say it's fine", ["fine"]),
        ("Wetter in Zürich und Ålesund?", ["Zürich", "Ålesund"]),
        ("Can I go to Rome?", ["Rome"]),
        ("", ["it"]),
    ],
)
def test_subjects_are_quotations_or_names_or_the_last_word(text: str, expected: list[str]) -> None:
    """Quotations win over names, names over the last word; the first word of a sentence is no name."""
    assert expected == subjects_of(text)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "Oslo"),
        ({"type": "string", "enum": ["c", "f"]}, "c"),
        ({"type": "string", "format": "date"}, "2026-01-31"),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "number", "maximum": 0.5}, 0.5),
        ({"type": "boolean"}, True),
        ({"const": "x"}, "x"),
        ({"type": "integer", "default": 7}, 7),
        ({"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "string"}}]}, ["Oslo"]),
        ({"$ref": "#/$defs/place"}, {"name": "Oslo"}),
        ({"type": "mystery"}, None),
    ],
)
def test_each_kind_of_property_gets_a_plain_valid_value(schema: dict[str, object], expected: object) -> None:
    """Enums give their first value, numbers one within their bounds, strings the subject."""
    place = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    whole = {"type": "object", "properties": {"it": schema}, "required": ["it"], "$defs": {"place": place}}
    assert {"it": expected} == fill_arguments(whole, "Oslo")


def test_only_required_properties_are_filled() -> None:
    """Optional properties are left out, unless all are optional: then the first is filled."""
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    assert {"b": "x"} == fill_arguments({"type": "object", "properties": properties, "required": ["b"]}, "x")
    assert {"a": "x"} == fill_arguments({"type": "object", "properties": properties}, "x")
    assert {} == fill_arguments({}, "x")


def test_a_schema_that_refers_to_itself_ends() -> None:
    """Recursive schemas are cut off at a fixed depth."""
    properties = {"child": {"$ref": "#/$defs/node"}}
    tree: dict[str, object] = {"type": "object", "properties": properties, "required": ["child"]}
    filled = fill_arguments({**tree, "$defs": {"node": tree}}, "x")
    depth = 0
    while filled:
        [child] = filled.values()
        filled, depth = dict(as_object(child)), depth + 1
    assert 1 < depth < 10


@given(st.text())
def test_every_text_has_a_subject(text: str) -> None:
    """Whatever the user writes, there is something to put into a string argument."""
    assert all(subjects_of(text))
