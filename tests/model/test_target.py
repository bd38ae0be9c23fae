"""Look-up in targets: model patterns, nested parameters."""

from __future__ import annotations

import fnmatch
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.model.rule import Endpoint
from thinkback.model.target import lookup, merge, model_matches, name_conversation, without


@pytest.mark.parametrize(
    ("model", "patterns", "expected"),
    [
        ("deepseek-v4-pro", ("deepseek-v4*",), True),
        ("DeepSeek-V4-Pro", ("deepseek-v4*",), True),
        ("vendor/deepseek-v4", ("deepseek-v4*", "*/DeepSeek-V4*"), True),
        ("gpt-5", ("deepseek*",), False),
        ("gpt-5", (), False),
        ("", ("*",), True),
    ],
)
def test_a_model_matches_a_glob_in_any_case(model: str, patterns: tuple[str, ...], expected: bool) -> None:
    """Any one pattern is enough; upper and lower case are alike."""
    assert expected is model_matches(model, patterns)


_LETTERS = st.text("ab-.", max_size=6)


@given(_LETTERS, st.lists(_LETTERS | st.sampled_from(["*", "?", "[ab]", "["]), max_size=6).map("".join))
def test_a_glob_means_what_it_means_in_a_shell(model: str, pattern: str) -> None:
    """The standard library's matching is the judge."""
    assert fnmatch.fnmatchcase(model, pattern) == model_matches(model, (pattern,))


@pytest.mark.parametrize(
    ("path", "expected"),
    [("a", {"b": {"c": 1}, "n": None}), ("a.b.c", 1), ("a.x", None), ("x", None), ("a.b.c.d", None), ("a.n", None)],
)
def test_a_dotted_path_finds_its_value(path: str, expected: Any) -> None:
    """Where a step is missing, or is no table, there is nothing."""
    assert expected == lookup({"a": {"b": {"c": 1}, "n": None}}, path)


def test_tables_are_merged_and_everything_else_is_replaced() -> None:
    """Neither side is changed."""
    base, over = {"a": {"x": 1, "y": 2}, "b": [1], "c": 1}, {"a": {"y": 3, "z": 4}, "b": [2], "c": {"d": 1}}

    assert {"a": {"x": 1, "y": 3, "z": 4}, "b": [2], "c": {"d": 1}} == merge(base, over)
    assert {"a": {"x": 1, "y": 2}, "b": [1], "c": 1} == base


TABLES = st.recursive(
    st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=6
).filter(lambda value: isinstance(value, dict))


@given(TABLES, TABLES)
def test_what_lies_on_top_is_found(base: dict[str, Any], over: dict[str, Any]) -> None:
    """Laying a table on another leaves its own values in force, and laying it twice changes nothing."""
    merged = merge(base, over)

    assert merged == merge(merged, over)
    assert merge({}, over) == over
    assert all(lookup(merged, key) == value for key, value in over.items() if not isinstance(value, dict))


def test_what_stands_at_a_path_is_taken_away_with_tables_it_leaves_empty() -> None:
    """Where there is nothing, nothing changes."""
    params = {"a": {"b": {"c": 1}}, "d": {"e": 1, "f": 2}, "g": 3}

    assert {"d": {"e": 1, "f": 2}, "g": 3} == without(params, "a.b.c")
    assert {"a": {"b": {"c": 1}}, "d": {"e": 1}, "g": 3} == without(params, "d.f")
    assert params == without(params, "g.h") == without(params, "x.y") == without(params, "x")


def test_a_conversation_is_named_where_its_endpoint_demands_it() -> None:
    """Once: a client's own id stays, in whatever letters its header is spelt."""
    plain = Endpoint("e", "E", "https://e.example")
    demanding = msgspec.structs.replace(plain, conversation_header="x-session")
    assert {} == name_conversation(plain, {}, "c")
    assert {"x-session": "c"} == name_conversation(demanding, {}, "c")
    assert {"X-Session": "own"} == name_conversation(demanding, {"X-Session": "own"}, "c")
