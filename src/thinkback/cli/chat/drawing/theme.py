"""Light or dark: what the terminal's background is, and what thinking is shaded with on it.

The terminal is asked (OSC 11) and has 120 ms to answer; else ``COLORFGBG`` is believed, else it is taken to be dark.
Its answer never reaches the input line, be it late, and what a person typed meanwhile is kept.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TextIO, TypeAlias

from thinkback.cli.chat.drawing.look import ThemeChoice

Rgb: TypeAlias = tuple[int, int, int]
Depth: TypeAlias = Literal["true", "256", "16"]

PATIENCE = 0.12
QUERY = "\x1b]11;?\x1b\\"
_ANSWER = re.compile(
    rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})[^\x07\x1b]*(?:\x07|\x1b\\)"
)
_BLACK: Rgb = (18, 18, 18)
_WHITE: Rgb = (255, 255, 255)
# what COLORFGBG calls light: the white ones among its sixteen colours
_LIGHT_NUMBERS = frozenset({7, 15})
# terminals that have neither italics nor more than sixteen colours
_SIMPLE = ("linux", "vt", "ansi", "cons25", "cygwin", "sun")


class Theme(NamedTuple):
    """``background`` is the terminal's, as it said or as it is taken to be."""

    background: Rgb
    depth: Depth

    @property
    def is_dark(self) -> bool:
        return _luminance(self.background) < 128

    @property
    def shade(self) -> Rgb:
        """What thinking is shaded with: lighter than a dark background, darker than a light one."""
        red, green, blue = (
            min(255, part + max(18, round((255 - part) * 0.11)))
            if self.is_dark
            else max(0, part - max(14, round(part * 0.07)))
            for part in self.background
        )
        return red, green, blue

    @property
    def thinking(self) -> str:
        """The escape sequence for thinking: italics, shaded where there are colours enough."""
        if self.depth == "16":
            return "\x1b[0;3m"
        letters: Rgb = (188, 188, 188) if self.is_dark else (68, 68, 68)
        if self.depth == "true":
            return f"\x1b[0;3;38;2;{_joined(letters)};48;2;{_joined(self.shade)}m"
        return f"\x1b[0;3;38;5;{250 if self.is_dark else 238};48;5;{self._grey()}m"

    def _grey(self) -> int:
        """The grey of 256 colours that is nearest to the shade, on its side of the background."""
        behind, wanted = _luminance(self.background), _luminance(self.shade)
        fit = [(level, grey) for level, grey in _GREYS if (level > behind if self.is_dark else level < behind)]
        return min(fit, key=lambda found: abs(found[0] - wanted))[1]


_GREYS = [(8 + 10 * step, 232 + step) for step in range(24)]


class DetectedTheme(NamedTuple):
    """The theme, what was typed while the terminal was asked, and whether its answer is still to come."""

    theme: Theme
    typed: bytes = b""
    is_owed: bool = False


def theme_for(choice: ThemeChoice, stream: TextIO | None, environ: Mapping[str, str]) -> DetectedTheme:
    """The theme; the terminal behind ``stream``, if there is one, is asked where the ``choice`` is left to it."""
    depth = depth_of(environ)
    if choice != "auto":
        return DetectedTheme(Theme(_WHITE if choice == "light" else _BLACK, depth))
    answer = ask(stream) if stream is not None and depth != "16" else None
    if answer is None:
        return DetectedTheme(Theme(_from_environment(environ), depth))
    background, typed = answer
    return DetectedTheme(Theme(background or _from_environment(environ), depth), typed, background is None)


def depth_of(environ: Mapping[str, str]) -> Depth:
    """How many colours the terminal says it has."""
    term = environ.get("TERM", "")
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "true"
    return "16" if term.startswith(_SIMPLE) else "256"


def ask(stream: TextIO) -> tuple[Rgb | None, bytes] | None:
    """The background that the terminal behind ``stream`` names, and what else came in from it meanwhile.

    ``None`` where there is nobody to be asked.
    """
    try:
        import termios
        import tty

        descriptor = stream.fileno()
        # a process in the background would be stopped for touching the terminal
        if not os.isatty(0) or not os.isatty(descriptor) or os.tcgetpgrp(0) != os.getpgrp():
            return None
        before = termios.tcgetattr(0)
    except (ImportError, OSError, ValueError):
        return None
    try:
        tty.setcbreak(0, termios.TCSADRAIN)
        stream.write(QUERY)
        stream.flush()
        return parse(_answer(0))
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def parse(received: bytes) -> tuple[Rgb | None, bytes]:
    """The colour in a terminal's answer, and the bytes around it, which a person typed."""
    found = _ANSWER.search(received)
    if found is None:
        # half an answer is no typing either
        return None, received.partition(b"\x1b]11;")[0]
    red, green, blue = (round(int(part, 16) * 255 / (16 ** len(part) - 1)) for part in found.groups())
    return (red, green, blue), received[: found.start()] + received[found.end() :]


def without_answers(read: Callable[..., str], hear: Callable[[Rgb], None]) -> Callable[..., str]:
    """``read``, which gives what is typed, without answers of the terminal: those go to ``hear``."""

    def reading(*given: Any) -> str:
        text = read(*given)
        found, typed = parse(text.encode(errors="surrogateescape"))
        if found is None:
            return text
        hear(found)
        return typed.decode(errors="surrogateescape")

    return reading


def _answer(descriptor: int) -> bytes:
    received = b""
    until = time.monotonic() + PATIENCE
    while not _ANSWER.search(received):
        left = until - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            break
        piece = os.read(descriptor, 1024)
        if not piece:
            break
        received += piece
    return received


def _from_environment(environ: Mapping[str, str]) -> Rgb:
    last = environ.get("COLORFGBG", "").rpartition(";")[2]
    return _WHITE if last.isdigit() and int(last) in _LIGHT_NUMBERS else _BLACK


def _luminance(colour: Rgb) -> float:
    red, green, blue = colour
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _joined(colour: Rgb) -> str:
    return ";".join(map(str, colour))
