"""A person's settings file: what it may hold and what its errors say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import RuleFileError
from thinkback.settings import Layers, parse_user_file


def test_a_settings_file_is_a_table_of_reasoning_keys() -> None:
    """Nested keys of TOML types become the registry's keys and load as the layer ``user``."""
    values = parse_user_file("settings.toml", '[reasoning]\nenabled = true\neffort = "high"\nkeepLast = 2\n')
    assert {"reasoning.enabled": True, "reasoning.effort": "high", "reasoning.keepLast": 2} == values
    assert ("high", "user") == Layers().replace("user", values).origin("reasoning.effort")


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "[reasoning]\n"])
def test_an_empty_file_sets_nothing(text: str) -> None:
    """A file without keys is a file without settings."""
    assert {} == parse_user_file("settings.toml", text)


def test_dotted_and_quoted_keys_mean_the_same() -> None:
    """TOML's other ways to write a nested key are understood."""
    assert parse_user_file("a", "reasoning.keepLast = 1") == parse_user_file("a", '"reasoning.keepLast" = 1')


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ('[reasoning]\neffort = "huge"', "reasoning.effort", "allowed: none, minimal, low"),
        ("[reasoning]\nmaxTokens = 0", "reasoning.maxTokens", "a whole number from 1"),
        ("[reasoning]\nmaxTokens = 1.5", "reasoning.maxTokens", "cannot be 1.5"),
        ("[reasoning.effort]\nx = 1", "reasoning.effort", "allowed:"),
        ('[reasoning]\nefort = "low"', "reasoning.efort", "did you mean reasoning.effort"),
        ("colour = 3", "colour", "there is no setting"),
        ("[screen]\nwidth = 3", "screen", "there is no setting"),
        ("[empty]", "empty", "there is no setting"),
        ("reasoning = 5", "reasoning", "there is no setting"),
        ('"reasoning.keepLast" = 1\n[reasoning]\nkeepLast = 2', "reasoning.keepLast", "given twice"),
    ],
)
def test_a_bad_entry_is_refused_with_file_key_and_reason(text: str, key: str, reason: str) -> None:
    """An error in a file can be found without opening the documentation."""
    with pytest.raises(RuleFileError) as caught:
        parse_user_file("settings.toml", text)
    assert ("settings.toml", key) == (caught.value.details["file"], caught.value.details["key"])
    assert str(caught.value).startswith(f"settings.toml: {key}: ")
    assert reason in str(caught.value)


def test_a_bad_entry_keeps_its_value_and_allowed_values() -> None:
    """ERR-001 holds for files too: key, value and allowed values are in the error."""
    with pytest.raises(RuleFileError) as caught:
        parse_user_file("settings.toml", '[reasoning]\nformat = "xml"')
    facts = {"file": "settings.toml", "key": "reasoning.format", "value": "xml", "allowed": ("field", "native")}
    assert facts == caught.value.details


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[reasoning]\neffort = high\n", 2),
        ('[reasoning]\neffort = "low"\neffort = "high"\n', 3),
        ('[reasoning]\n\neffort = """low', 3),
        ("[reasoning]\nmaxTokens = " + "9" * 5000, 0),
        ("a = " + "[" * 20_000, 0),
    ],
)
def test_a_syntax_error_names_file_and_line(text: str, line: int) -> None:
    """What is not TOML is refused with its line, as far as the parser tells it."""
    with pytest.raises(RuleFileError, match=r"^settings\.toml") as caught:
        parse_user_file("settings.toml", text)
    assert {"file": "settings.toml", "line": line} == caught.value.details
    assert (line > 0) == (f"line {line}: not valid TOML" in str(caught.value))


@given(st.text())
def test_any_text_is_either_settings_or_a_file_error(text: str) -> None:
    """No content of a settings file ends in another exception."""
    try:
        values = parse_user_file("settings.toml", f"[reasoning]\n{text}")
    except RuleFileError:
        return
    assert Layers().replace("user", values).effective({}).explicit == set(values)
