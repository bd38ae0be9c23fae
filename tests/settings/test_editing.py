"""Changes to a person's TOML: what was asked for, and nothing else."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.settings.test_values import values_of
from thinkback.settings import KEYS, Value, parse_user_file
from thinkback.settings.editing import edit


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Value]:
    """Any settings of a person's file."""
    keys = draw(st.lists(st.sampled_from(sorted(KEYS)), max_size=6))
    return {key: draw(values_of(KEYS[key]) | st.just("default")) for key in keys}


def test_what_is_not_named_stays_as_it_is() -> None:
    """Comments, order and spelling of everything else are a person's own."""
    text = "# mine\n[reasoning]\nkeepLast = 0x2 # two\neffort   =   'low'\n\n[text]\nverbosity = \"low\"\n"
    changed = edit(text, {"reasoning.effort": "high", "session.profile": "work"})
    assert text.replace("'low'", '"high"') == changed[: len(text) + 1]
    assert {"profile": "work"} == tomllib.loads(changed)["session"]
    assert text == edit(text, {"reasoning.effort": "low", "context.size": None})


@pytest.mark.parametrize(
    "text", ["reasoning.effort = 'low'", "reasoning = {effort = 'low'}", "'reasoning.effort' = 'low'"]
)
def test_a_key_is_found_however_it_is_written(text: str) -> None:
    """In a table, as a dotted key, as a quoted one."""
    assert {"reasoning.effort": "high"} == parse_user_file("f", edit(text, {"reasoning.effort": "high"}))
    assert {} == parse_user_file("f", edit(text, {"reasoning.effort": None}))


@given(settings(), settings(), st.lists(st.sampled_from(sorted(KEYS)), max_size=3))
def test_a_file_says_what_was_changed_and_what_it_said_before(
    old: dict[str, Value], new: dict[str, Value], gone: list[str]
) -> None:
    """Whatever stands there, the changes are made and nothing else is."""
    changes = {**dict.fromkeys(gone), **new}
    expected = {key: value for key, value in {**old, **changes}.items() if value is not None}
    assert expected == parse_user_file("f", edit(edit("", old), changes))
