"""The terminal as the chat's output uses it: lines that stay, and one line at its end that is drawn over.

The line at the end says what runs and how to stop it. It takes the place of the next line, or, as a footer, the row
below text that is under way.

Promises: without a terminal, with ``NO_COLOR``, on a dumb terminal or with the theme ``plain`` no escape code is
written at all. Everything written in one call goes out in one piece.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, TextIO

from thinkback.cli.chat.drawing.look import Look
from thinkback.cli.chat.drawing.theme import Rgb, Theme, theme_for, without_answers
from thinkback.session.transcripts.ink import CODES, Style, clean, columns_of, fit, one_line, pen

if TYPE_CHECKING:
    from prompt_toolkit.input import Input

_CLEAR = "\r\x1b[0m\x1b[K"


class Surface:
    """``draws``: escape codes are welcome. ``typed`` is what a person typed while the terminal was asked.

    ``hint`` says how to stop what runs.
    ``asks``: the terminal may be asked for its background, by somebody who reads what is typed afterwards, as its
    answer may come late.
    """

    def __init__(self, stream: TextIO, look: Look, *, asks: bool = True) -> None:
        self.stream = stream
        self.typed = b""
        self._asks = asks
        self._is_owed = False
        self._has_status = False
        self._footer = ""
        self.hint = ""
        self._look: Look | None = None
        self.theme = Theme((0, 0, 0), "16")
        self.draws = False
        self.take(look)

    def take(self, look: Look) -> None:
        """Go by ``look`` from here on."""
        before, self._look = self._look, look
        wanted = pen(self.stream).paints if look.colours is None else look.colours
        self.draws = wanted and look.theme != "plain"
        if self.draws and (before is None or (before.theme, before.colours) != (look.theme, look.colours)):
            found = theme_for(look.theme, self.stream if self._asks else None, os.environ)
            self.theme, self._is_owed = found.theme, found.is_owed
            self.typed += found.typed

    def listen(self, keyboard: Input) -> None:
        """Take an answer of the terminal that comes late for what it is, not for typing."""
        reader = getattr(keyboard, "stdin_reader", None)
        if self._is_owed and reader is not None:
            reader.read = without_answers(reader.read, self._hear)

    def _hear(self, background: Rgb) -> None:
        self.theme = self.theme._replace(background=background)

    @property
    def columns(self) -> int:
        """Columns to lay out for: those chosen, never more than there are."""
        chosen = self._look.width if self._look is not None else 0
        there = self._size().columns
        return min(chosen, there) if chosen else there

    @property
    def height(self) -> int:
        """Rows for text: those of the terminal, without that of a footer."""
        return self._size().lines - bool(self._footer)

    @property
    def is_terminal(self) -> bool:
        return self.stream.isatty()

    def write(self, text: str) -> None:
        """Write what is clean already, in the place of the status; a footer stands below it."""
        if self._has_status:
            text, self._has_status = _CLEAR + text, False
        if self._footer and text:
            text = f"{_BELOW}{text}{_MAKE_ROOM}{self._footer}{_BACK}"
        if text:
            self.stream.write(text)
            self.stream.flush()

    def line(self, text: str, *styles: Style) -> None:
        """A line that stays, broken between words."""
        text = clean(text)
        rows = fit(text, self.columns - 1).split("\n") if self.is_terminal else [text]
        self.write("".join(self.painted(row, *styles) + self.line_end for row in rows))

    def noted(self, text: str) -> None:
        """A line about thinking that stays."""
        self.line(text if self.draws else f"({text})", "dim", "italic")

    def render(self, block: str) -> str:
        """A block of Markdown, laid out."""
        from thinkback.cli.chat.drawing.markdown import render

        return render(block, self.columns - 1, self.theme)

    def status(self, text: str, style: str = "", last: str = "") -> None:
        """The line at the end, drawn over by whatever comes next; nothing where nothing can be drawn over.

        ``last`` are words of which the last ones are shown, as far as there is room.
        """
        if self.draws:
            self.write("")
            self.stream.write(
                f"{_CLEAR}{style or _code('dim')}{_FILL if style else ''}{self._hinted(text, last)}\x1b[0m"
            )
            self.stream.flush()
            self._has_status = True

    def footer(self, text: str) -> None:
        """The same below text that is under way, until it is taken away by an empty one."""
        if self.draws and (text or self._footer):
            had, self._footer = self._footer, f"{_code('dim')}{self._hinted(text)}\x1b[0m" if text else ""
            below = f"{_MAKE_ROOM}{self._footer}{_BACK}" if text else ""
            self.stream.write((_BELOW if had else "") + below)
            self.stream.flush()

    def _hinted(self, text: str, last: str = "") -> str:
        """``text``, how to stop what it tells of, and the end of ``last``, in one row."""
        room = self.columns - 2
        hint = f" · {self.hint}" if self.hint else ""
        shown = " ".join(clean(text).split())
        while columns_of(shown + hint) > room and (cut := shown.rpartition(" ")[0]):
            shown = cut.rstrip(",:")
        shown = one_line(shown, max(room - columns_of(hint), 1)) + hint
        words: list[str] = []
        left = room - columns_of(shown) - len(_GAP)
        for word in reversed(clean(last).split()):
            left -= columns_of(word) + 1
            if left < 0:
                break
            words.insert(0, word)
        return f"{shown}{_GAP}{' '.join(words)}" if words else shown

    def painted(self, text: str, *styles: Style) -> str:
        return f"{_code(*styles)}{text}\x1b[0m" if self.draws and styles and text else text

    @property
    def line_end(self) -> str:
        return "\r\n" if self.draws else "\n"

    def _size(self) -> os.terminal_size:
        try:
            found = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            return shutil.get_terminal_size((80, 24))
        return found if found.columns and found.lines else os.terminal_size((80, 24))


_FILL = "\x1b[K "
_GAP = " · … "
# clears what stands below; makes a row there and keeps the place; and goes back to it
_BELOW, _MAKE_ROOM, _BACK = "\x1b[J", "\x1bD\x1bM\x1b7\x1b[B\r\x1b[2K", "\x1b8"


def _code(*styles: Style) -> str:
    return f"\x1b[{';'.join(CODES[style] for style in styles)}m"
