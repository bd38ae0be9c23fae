"""Layout: words that stream into a column, tables, and text made fit for a terminal."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.cli import terminal
from thinkback.cli.chat.drawing.column import Plain
from thinkback.session.transcripts.ink import Cleaner, clean_json


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


@pytest.mark.parametrize(
    "sign",
    [
        *("\x1b", "\r", "\x07", "\x08", "\x7f", "\x00", "\x0b", "\x0c"),
        *("\x85", "\x90", "\x9b", "\x9c", "\x9d", "\x9f"),
        *("\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"),
        *("\u2028", "\u2029", "\u206a", "\u206f", "\ufff9", "\ufffb", "\U000e0001", "\U000e0041", "\U000e007f"),
    ],
    ids=ascii,
)
def test_what_a_terminal_would_obey_is_replaced(sign: str) -> None:
    """Control characters of both tables, the turns of the direction of writing, and signs that nobody sees."""
    assert "a\ufffdb" == terminal.clean(f"a{sign}b")


def test_what_people_write_is_kept() -> None:
    """Newlines, tabs, marks, joined emoji, both directions of writing."""
    text = "a\n\tb e\u0301 👩\u200d👧 שלום\u200f 語"
    assert text == terminal.clean(text)


@given(st.lists(st.sampled_from(["a", "\r", "\n", "\r\n", "\x1b"]), max_size=8), st.integers(1, 3))
def test_text_in_pieces_is_cleaned_as_it_is_whole(parts: list[str], size: int) -> None:
    """A line end of two characters is one line end also where it is cut in two."""
    text = "".join(parts) + "."
    cleaner = Cleaner()
    pieces = [cleaner(text[at : at + size]) for at in range(0, len(text), size)]
    assert terminal.clean(text.replace("\r\n", "\n")) == "".join(pieces)


def test_a_line_has_our_colours_and_nothing_else_to_obey(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever named what it tells of: a session, a model, a rule."""
    pen = terminal.Pen(True)
    terminal.out(pen("talk\x1b]0;x\x07", "bold", "red") + " \x9b2J\u202e" + pen("end", "dim"))
    assert "\x1b[1;31mtalk\ufffd]0;x\ufffd\x1b[0m \ufffd2J\ufffd\x1b[2mend\x1b[0m\n" == capsys.readouterr().out


@given(st.text())
def test_json_means_the_same_and_holds_nothing_to_obey(text: str) -> None:
    """Also where it is read on a terminal."""
    written = clean_json(json.dumps({"a": text}, ensure_ascii=False))
    assert {"a": text} == json.loads(written)
    assert written == terminal.clean(written)


@given(st.text("ab \n\t語", max_size=80), st.integers(1, 7))
def test_plain_text_is_broken_between_words_however_it_is_cut(text: str, size: int) -> None:
    """Whole and in pieces alike, no word is lost, and no line is too long but for a word that is."""
    whole, cut = Plain(12), Plain(12)
    written = whole.feed(text) + whole.end()

    assert written == "".join(cut.feed(text[at : at + size]) for at in range(0, len(text), size)) + cut.end()
    assert text.split() == written.split()
    assert all(
        terminal.columns_of(line.expandtabs(1).strip()) <= 12 or len(line.split()) == 1 for line in written.split("\n")
    )


@pytest.mark.parametrize(
    ("line", "columns", "expected"),
    [
        ("short enough", 12, "short enough"),
        ("allowed: low, high, xhigh", 18, "allowed: low,\nhigh, xhigh"),
        ("  - bedrock, bedrock-claude", 16, "  - bedrock,\n  bedrock-claude"),
        ("\x1b[31mone two\x1b[0m three", 13, "\x1b[31mone two\x1b[0m three"),
        ("\x1b[31mone two\x1b[0m three", 9, "\x1b[31mone two\x1b[0m\nthree"),
        ("averyveryverylongword x", 10, "averyveryverylongword\nx"),
    ],
)
def test_a_line_fits_a_terminal_between_words(line: str, columns: int, expected: str) -> None:
    """Colours take no room; what follows stands under the first word."""
    assert expected == terminal.fit(line, columns)


@pytest.mark.parametrize("told", [terminal.out, terminal.note, terminal.complain])
@pytest.mark.parametrize("watched", [True, False])
def test_what_is_told_is_broken_between_words_for_people_alone(
    told: Callable[[str], None], watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists and errors on a terminal of 40 columns; programs read whole lines."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: watched)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    told("allowed are none, minimal, low, medium, high, xhigh, max")

    lines = stream.getvalue().splitlines()
    assert [watched, watched] == [len(lines) > 1, max(map(len, lines)) <= 40]
    assert "high, xhigh, max" in " ".join(lines)
