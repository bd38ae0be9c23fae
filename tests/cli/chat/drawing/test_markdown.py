"""Markdown as a terminal shows it."""

from __future__ import annotations

import re
import unicodedata

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.cli.chat.drawing.markdown import render
from thinkback.cli.chat.drawing.theme import Theme
from thinkback.session.transcripts.ink import clean
from thinkback.session.transcripts.markup import rendered

THEME = Theme((0, 0, 0), "true")
_CODES = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str, columns: int = 40) -> str:
    """What it says, without colours."""
    return _CODES.sub("", render(clean(text), columns, THEME)).replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Some *soft* and **hard**\nwords.\n", "Some soft and hard\nwords.\n"),
        ("# A `title`\n", "A title\n"),
        ("- one\n  - two\n", " • one\n    • two\n"),
        ("3. three\n", " 3. three\n"),
        ("98.", " 98.\n"),
        ("-", " •\n"),
        ("- \n  - a\n", " •  • a\n"),
        ("```python\nx = 1\n\n  y\n```\n", "  x = 1\n\n    y\n"),
        ("```\n\nx\n\n\n```\n", "\n  x\n\n\n"),
        ("```\nno language\n", "  no language\n"),
        ("```nonsense\n<b>\n```\n", "  <b>\n"),
        ("[words](https://x.example/a)\n", "words (https://x.example/a)\n"),
        ("a <b>bold</b> claim <kbd>x</kbd></kbd>\n", "a <b>bold</b> claim <kbd>x</kbd></kbd>\n"),
        ("<details>\n<summary>Words</summary>\n</details>\n", "<details>\n<summary>Words</summary>\n</details>\n"),
        ("| a | b |\n|---|--:|\n| 1 | 2 |\n", "a  b\n────\n1  2\n"),
        ("> said\n", "▌ said\n"),
        ("---\n", "─" * 20 + "\n"),
        ("![a picture](http://x.example/y.png)", "🌆 a picture\n"),
        ("", ""),
    ],
)
def test_each_kind_of_block_is_shown(text: str, expected: str) -> None:
    """Marks become a layout; what is no Markdown, HTML too, stays as it was written."""
    assert expected == plain(text)


@pytest.mark.parametrize("formula", [r"\(a_1 * b_1 * c_1\)", r"\[x^2 _y_\]"])
def test_formulas_keep_their_backslashes(formula: str) -> None:
    """In the terminal and on pages; other escapes are read, and a text without an end costs no more than others."""
    assert f"So {formula} holds." in plain(f"So {formula} holds.")
    assert f"<p>So {formula} holds.</p>" == rendered(f"So {formula} holds.").strip()
    assert "<p>(a) *b*</p>" == rendered(r"\(a) \*b\*").strip()
    assert len(rendered(r"\(" * 20_000)) > 20_000


def test_code_is_coloured_and_the_rest_has_attributes_only() -> None:
    """Colours of words would not fit every background."""
    assert "\x1b[1;4mTitle" in render("# Title", 40, THEME)
    assert re.search(r"\x1b\[\d*;?9?\d[^m]*mdef", render("```python\ndef f(): pass\n```", 40, THEME))
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|4[0-7]|[34]8)[0-9;]*m", render("*a* `b` > c\n\n- d", 40, THEME))


@pytest.mark.parametrize("entity", ["&#x202e;", "&#8238;", "&#x2066;", "&#x9b;31m", "&#27;[2J", "&#x2028;", "&#13;"])
@pytest.mark.parametrize("place", ["{}", "`{}`", "[{}](x)", "[x]({})", "# {}", "- {}", "| {} |\n|---|", "<b {}>"])
def test_no_entity_brings_back_what_was_taken_out(entity: str, place: str) -> None:
    """``&#x202e;`` stands for a letter that turns the direction of writing: that is neutralised behind the Markdown."""
    said = plain(place.format(entity))
    assert clean(said) == said


@given(st.text("ab#*_`~<>[]()!|-+1.:\\&;\n\t \u202e\x1b語", max_size=80) | st.text(max_size=80))
def test_no_text_breaks_it_or_the_terminal(text: str) -> None:
    """Any text comes out as rows that fit, with colours as the only escape codes."""
    columns = 30
    written = render(clean(text), columns, THEME)
    left = _CODES.sub("", written).replace("\r\n", "\n")
    assert clean(left) == left
    assert not written or written.endswith("\r\n")
    screen = pyte.Screen(columns + 1, 400)
    pyte.Stream(screen).feed(written)
    assert written.count("\n") == screen.cursor.y


def letters(said: str) -> list[str]:
    """The letters of a text; in a narrow table those of one word are not neighbours any more."""
    return sorted(letter for letter in said if unicodedata.category(letter).startswith("L"))


LINES = ("- a", "  - b", "    - c", "> d", ">> e", "| abcdefghij | b |", "|---|---|", "# f", "g h", "", "![a](b", "<a>")


@given(st.text("abc#*`<>[]|- \n", max_size=60) | st.lists(st.sampled_from(LINES)).map("\n".join), st.integers(8, 60))
def test_no_letter_is_lost(text: str, columns: int) -> None:
    """Marks may go, letters stay, however narrow the terminal."""
    assert letters(text) == letters(plain(text, columns))


@pytest.mark.parametrize(
    "text",
    [
        ">" * 300 + " deep",
        "".join("  " * level + f"- item {level}\n" for level in range(40)),
        "|" + "a|" * 50 + "\n|" + "-|" * 50 + "\n|" + "b|" * 50,
        "| letter |\n|---|\n| " + "x" * 100 + " |",
        "**" * 2000 + "words",
    ],
    ids=["quotes", "lists", "columns", "wide", "marks"],
)
def test_what_cannot_be_laid_out_is_shown_as_it_is(text: str) -> None:
    """Rather the text than a layout that leaves words out."""
    assert letters(text) == letters(plain(text, 60))
