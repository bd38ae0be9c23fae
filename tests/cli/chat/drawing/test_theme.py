"""Light or dark, and how many colours."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.cli.chat.drawing.theme import Rgb, Theme, ask, depth_of, parse, theme_for, without_answers

PART = st.integers(0, 255)


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (b"\x1b]11;rgb:1e1e/2020/ffff\x1b\\", ((30, 32, 255), b"")),
        (b"\x1b]11;rgb:1e/20/ff\x07", ((30, 32, 255), b"")),
        (b"\x1b]11;rgb:f/0/8\x07", ((255, 0, 136), b"")),
        (b"\x1b]11;rgba:ffff/ffff/ffff/8000\x1b\\", ((255, 255, 255), b"")),
        (b"he\x1b]11;rgb:0/0/0\x07llo\r", ((0, 0, 0), b"hello\r")),
        (b"hello", (None, b"hello")),
        (b"he\x1b]11;rgb:00", (None, b"he")),
        (b"", (None, b"")),
    ],
)
def test_the_answer_is_found_among_what_is_typed(received: bytes, expected: tuple[Rgb | None, bytes]) -> None:
    """In each of the forms that terminals have; half an answer is eaten too."""
    assert expected == parse(received)


@pytest.mark.parametrize(
    ("environment", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "true"),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, "true"),
        ({"TERM": "xterm-direct"}, "true"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "xterm"}, "256"),
        ({"TERM": "linux"}, "16"),
        ({"TERM": "vt220"}, "16"),
    ],
)
def test_colours_are_as_many_as_the_terminal_says(environment: dict[str, str], depth: str) -> None:
    """``COLORTERM`` first, then ``TERM``; simple terminals get italics without a shade."""
    assert depth == depth_of(environment)
    theme = theme_for("dark", io.StringIO(), environment).theme
    assert {"true": "48;2;", "256": "48;5;", "16": ""}[depth] in theme.thinking
    assert ("48" in theme.thinking) == (depth != "16")
    assert "3" in theme.thinking


@given(PART, PART, PART)
def test_every_shade_stands_out_on_its_side_of_the_background(red: int, green: int, blue: int) -> None:
    """Lighter on dark, darker on light, also among 256 colours, and letters that can be read on it."""

    def brightness(colour: Rgb) -> float:
        return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]

    theme = Theme((red, green, blue), "256")
    number = int(theme.thinking.removesuffix("m").rpartition(";")[2])
    grey = 8 + 10 * (number - 232)
    behind = brightness(theme.background)
    shades = [brightness(theme.shade), brightness((grey, grey, grey))]
    assert all(shade > behind for shade in shades) if theme.is_dark else all(shade < behind for shade in shades)


def test_only_a_terminal_is_asked() -> None:
    """A pipe gets no question."""
    stream = io.StringIO()
    assert ask(stream) is None
    assert "" == stream.getvalue()


def test_a_late_answer_is_taken_out_of_what_is_typed() -> None:
    """It is heard, and the keys around it are kept as they are, undecodable ones too."""
    heard: list[Rgb] = []
    typed = iter(["a", "b\udcff\x1b]11;rgb:ff/ff/ff\x07c", "\x1b", "d"])
    read = without_answers(lambda: next(typed), heard.append)

    assert ["a", "b\udcffc", "\x1b", "d"] == [read(), read(), read(), read()]
    assert [(255, 255, 255)] == heard
