"""Text that streams into rows."""

from __future__ import annotations

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.cli.chat.drawing.column import Column
from thinkback.session.transcripts.ink import clean

STYLE = "\x1b[0;3;48;2;1;2;3m"


def shown(written: list[str], columns: int = 20) -> list[str]:
    """What a terminal shows, its last empty rows left out; the first row is row 0."""
    screen = pyte.HistoryScreen(columns, 60, history=1000)
    stream = pyte.Stream(screen)
    for piece in written:
        stream.feed(piece)
    assert 0 == screen.cursor.x
    lines = [line.rstrip() for line in screen.display]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def flowed(pieces: list[str], columns: int = 20, *, shaded: bool = False) -> tuple[list[str], int]:
    """Rows that ``pieces`` make, and how many the column counted."""
    column = Column(columns, STYLE if shaded else "", shaded=shaded)
    written = [column.feed(piece) for piece in pieces]
    return shown([*written, column.end()], columns), column.rows


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@given(st.text("ab \n\t語é", max_size=120), st.integers(1, 7), st.booleans())
def test_rows_do_not_depend_on_the_pieces(text: str, size: int, shaded: bool) -> None:
    """A letter at a time or all at once: the same rows, none too long, and every word in its order."""
    rows, _ = flowed(cut(text, size), shaded=shaded)

    assert rows == flowed([text], shaded=shaded)[0]
    assert all(len(row) < 20 for row in rows)
    assert "".join(text.split()) == "".join("".join(rows).split())


@given(st.text("ab \n\t語", max_size=120), st.integers(1, 7))
def test_it_counts_its_rows(text: str, size: int) -> None:
    """So that what it wrote can be taken back: the cursor is that many rows below the first."""
    column = Column(20)
    screen = pyte.Screen(20, 200)
    stream = pyte.Stream(screen)
    for piece in cut(text, size):
        stream.feed(column.feed(piece))
        assert column.rows == screen.cursor.y


@given(st.text(max_size=60))
def test_a_row_is_never_wider_than_any_terminal_takes_it_for(text: str) -> None:
    """Whatever letters: no row reaches the last column, so that no terminal wraps it by itself."""
    column = Column(20)
    screen = pyte.Screen(20, 200)
    stream = pyte.Stream(screen)
    stream.feed(column.feed(clean(text)))
    assert column.rows == screen.cursor.y


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("words that are wrapped by words", ["words that are", "wrapped by words"]),
        ("a" * 25, ["a" * 19, "a" * 6]),
        ("so " + "a" * 25, ["so", "a" * 19, "a" * 6]),
        ("  indented\n\nand apart", ["  indented", "", "and apart"]),
        ("a\tb\tc", ["a   b   c"]),
        ("語" * 12, ["語" * 9, "語" * 3]),
        ("e\u0301" * 19 + "x", ["\u00e9" * 19, "x"]),
        ("שלום עולם, שלום שלום", ["שלום עולם, שלום", "שלום"]),
        ("\nends\n\n", ["", "ends"]),
    ],
)
def test_words_are_wrapped(text: str, rows: list[str]) -> None:
    """By words where there are any, wide letters and marks counted as they stand; line ends at the end wait."""
    assert rows == flowed([text])[0]


def test_a_shade_fills_each_row_from_its_first_letter_on() -> None:
    """The whole row has the shade, also the row under way and the empty one between two paragraphs."""
    column = Column(20, STYLE, shaded=True)
    screen = pyte.Screen(20, 10)
    stream = pyte.Stream(screen)
    stream.feed(column.feed("One\n\nTwo"))

    backgrounds = [{screen.buffer[row][at].bg for at in range(20)} for row in range(4)]
    assert [{"010203"}, {"010203"}, {"010203"}, {"default"}] == backgrounds
    assert screen.buffer[2][1].italics
    assert not screen.cursor.attrs.italics


def test_a_narrower_terminal_goes_on_in_a_new_row() -> None:
    """After a resize nothing is written beyond the edge, and a row that still fits goes on."""
    column = Column(40)
    column.feed("these words are thirty long..")
    column.resize(20)
    assert "\r\nnext" == column.feed("next")
    column.resize(60)
    assert " here" == column.feed(" here")
