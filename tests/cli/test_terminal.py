"""Layout: words that stream into a column, tables, and text made fit for a terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.cli import terminal


def flowed(pieces: list[str]) -> str:
    """What a column of 30 behind a label looks like after ``pieces``."""
    stream = io.StringIO()
    flow = terminal.Flow(stream, "says", 6)
    flow._width = 30
    for piece in pieces:
        flow.feed(piece)
    flow.end()
    return stream.getvalue()


@given(st.text("ab \n\t語", max_size=80), st.integers(1, 7))
def test_streamed_text_is_wrapped_alike_however_it_is_cut(text: str, size: int) -> None:
    """A column looks the same whole and in pieces, keeps every word, and overflows only for words too long."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    whole = flowed([text])

    assert flowed(pieces) == whole
    assert text.split() == whole.removeprefix("says").split()
    assert all(
        terminal.columns_of(line) <= 30 or len(line.removeprefix("says").split()) == 1 for line in whole.splitlines()
    )


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    """Cells are padded by the columns they take, wide letters counting twice."""
    assert ["語  x   1", "ab  x  10"] == terminal.table([("語", "x", "1"), ("ab", "x", "10")], right=(2,))
    assert [] == terminal.table([])


@pytest.mark.parametrize(
    ("text", "line"),
    [("one\ntwo  three", "one two three"), ("x" * 30, "x" * 19 + "…"), ("語" * 30, "語" * 9 + "…"), ("", "")],
)
def test_first_words_fit_the_line(text: str, line: str) -> None:
    """Text is put on one line and cut at the number of columns it may take."""
    assert line == terminal.one_line(text, 20)


def test_keys_are_taken_out_of_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of a variable named like a secret is replaced by the variable's name, also where it is quoted."""
    monkeypatch.setenv("SOME_API_KEY", "abcdefgh\nijkl")

    told = terminal.without_keys(f"illegal {'abcdefgh' + chr(10) + 'ijkl'!r} and abcdefgh\nijkl")

    assert "illegal '<SOME_API_KEY>' and <SOME_API_KEY>" == told
