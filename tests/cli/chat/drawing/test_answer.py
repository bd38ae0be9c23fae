"""An answer that streams onto a screen: the same at the end however it was cut, and nothing lost or written twice."""

from __future__ import annotations

import io
import os
import unicodedata
from collections import Counter
from unittest.mock import patch

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.cli.chat.drawing.answer import Answer
from thinkback.cli.chat.drawing.look import Look
from thinkback.cli.chat.drawing.surface import Surface

LINES = (
    "",
    "",
    "words *and* more words that take more than a row",
    "# Title",
    "- item",
    "  - inner",
    "7. number",
    "```python",
    "```",
    "x = 'code'  ",
    "",
    "> quote",
    "| a | b |",
    "|---|---|",
    "語語語語語語語語語語語語語語語語語語語語",
    "<b>",
)
texts = st.lists(st.sampled_from(LINES), max_size=14).map("\n".join)


def drawn(text: str, size: int, rows: int, columns: int = 30) -> list[str]:
    """The rows that an answer leaves, those that left the screen too."""
    with patch.dict(os.environ, {"COLUMNS": str(columns), "LINES": str(rows)}):
        stream = io.StringIO()
        answer = Answer(Surface(stream, Look(theme="dark", colours=True)))
        for at in range(0, len(text), size):
            answer.feed(text[at : at + size])
        answer.close()
    screen = pyte.HistoryScreen(columns, rows, history=1000)
    pyte.Stream(screen).feed(stream.getvalue())
    assert 0 == screen.cursor.x
    above = ["".join(row[at].data for at in range(columns)) for row in screen.history.top]
    lines = [line.rstrip() for line in [*above, *screen.display]]
    while lines and not lines[-1]:
        lines.pop()
    return lines


@given(texts, st.integers(1, 9))
def test_it_is_the_same_however_it_was_cut(text: str, size: int) -> None:
    """On a screen with room, pieces leave what the whole leaves."""
    assert drawn(text, len(text) + 1, 100) == drawn(text, size, 100)


@given(texts, st.integers(1, 9), st.integers(3, 8))
def test_a_low_screen_loses_nothing_and_says_nothing_twice(text: str, size: int, rows: int) -> None:
    """Whatever scrolls away while a block is under way, each letter stands there once."""

    def letters(lines: list[str]) -> Counter[str]:
        return Counter(letter for letter in "".join(lines) if unicodedata.category(letter).startswith("L"))

    # the word behind a fence is not shown once the code is in its place
    text = text.replace("python", "")
    assert letters([text]) == letters(drawn(text, size, rows))


@pytest.mark.parametrize("rows", [4, 10, 100])
def test_code_stays_code_on_every_screen(rows: int) -> None:
    """Lines of code keep their indentation and their blank lines, in one piece or in many."""
    code = [f"{'    ' * (at % 3)}line_{at}" if at % 5 else "" for at in range(1, 40)]
    text = "```\n" + "\n".join(code) + "\n```\n\nEnd"

    shown = drawn(text, 7, rows, 60)

    assert [f"  {line}".rstrip() for line in code] == shown[: len(code)]
    assert ["", "End"] == shown[len(code) :]
