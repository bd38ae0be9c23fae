"""Rules of permission as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import SettingError
from thinkback.settings import parse
from thinkback.settings.permissions import Rule, is_like, literal, read_rules, write_rules


def test_rules_are_read_in_order() -> None:
    """White space around names, patterns and commas means nothing."""
    text = " shell = ask, write=deny ,mcp:*=ask, shell( git status* )=allow,"
    assert (
        Rule("shell", "ask"),
        Rule("write", "deny"),
        Rule("mcp:*", "ask"),
        Rule("shell", "allow", " git status* "),
    ) == read_rules(text)


@pytest.mark.parametrize(
    "text", ["", " ", ",", "shell", "shell=maybe", "=ask", "shell=ask write=deny", "a(b=ask", "a(b(c))=ask", "a b=ask"]
)
def test_what_is_no_rule_is_refused_with_what_is(text: str) -> None:
    """The error names the key, the value, and the words that a rule ends in."""
    assert read_rules(text) is None
    with pytest.raises(SettingError, match=r"permissions\.rules cannot be .*allow, ask, deny"):
        parse("permissions.rules", text)


@pytest.mark.parametrize("raw", [7, None, [], ["shell"], [3], {"shell": "ask"}])
def test_what_is_no_text_is_refused(raw: object) -> None:
    """Nor is a list that holds something else than rules."""
    with pytest.raises(SettingError):
        parse("permissions.rules", raw)


def test_a_list_of_rules_is_taken_as_one_text() -> None:
    """That is how a file would have them."""
    assert "shell=ask,write(docs/*)=allow" == parse(
        "permissions.rules", ["shell=ask", "write( docs/*)=allow".replace(" ", "")]
    )


@given(st.text(max_size=20), st.sampled_from(["allow", "ask", "deny"]))
def test_any_text_can_be_a_literal_pattern(text: str, action: str) -> None:
    """What is written down is read back, and means that text alone."""
    rule = Rule("shell", action, literal(text))  # type: ignore[arg-type]
    assert (rule, rule) == read_rules(write_rules([rule, rule]))
    assert is_like(literal(text), text)
    assert not rule.is_wide
    assert not is_like(literal(text), f"{text}x")


def test_an_asterisk_stands_for_anything() -> None:
    """Also for nothing, and for lines; one behind a backslash is itself."""
    assert is_like("git *", "git status\nrm")
    assert is_like("git*", "git")
    assert not is_like("git*", "a git")
    assert not is_like("a.c", "abc")
    assert is_like(r"a\*", "a*")
    assert not is_like(r"a\*", "ab")
    assert is_like("ABC", "abc", any_case=True)
    assert not is_like("ABC", "abc")
    assert Rule("a", "ask", "*").is_wide
    assert not Rule("a", "ask", r"\*").is_wide
    assert not Rule("a", "ask").is_wide
