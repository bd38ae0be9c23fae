"""Text that arrives in pieces, laid into rows: wrapped by words, shaded over the whole row if it is to be.

Pure: gives what is to be written. A word is shown from its first letter on; when it turns out not to fit, its row is
written again without it. Rows end one column early, so that no terminal wraps by itself, and widths are taken to be
the widest that any terminal gives them: a row may be shorter than it could be, never longer than the terminal.
"""

from __future__ import annotations

import re

from thinkback.session.transcripts.ink import columns_of

RESET = "\x1b[0m"
CLEAR_ROW = "\x1b[K"
_PARTS = re.compile(r"([ \t\n])")
_TAB = 4
_NARROWEST = 8


class Plain:
    """Text that arrives in pieces, broken between words without an escape code: a word is given once it is whole."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._used = 0
        self._gap = ""
        self._word = ""

    def feed(self, text: str) -> str:
        """What to write for a piece of clean text."""
        written = []
        for part in _PARTS.split(text):
            if part == "\n":
                written.append(self.end() + part)
                self._used = 0
            elif part in (" ", "\t"):
                written.append(self._take())
                self._gap += part
            else:
                self._word += part
        return "".join(written)

    def end(self) -> str:
        """What is held back."""
        rest = self._take() + self._gap
        self._gap = ""
        return rest

    def _take(self) -> str:
        word, gap = self._word, self._gap
        if not word:
            return ""
        self._word = self._gap = ""
        size = columns_of(word)
        if self._used and self._used + len(gap) + size > self._columns:
            self._used = size
            return f"\n{word}"
        self._used += len(gap.expandtabs(_TAB)) + size
        return gap + word


class Column:
    """``style`` is the escape sequence for its letters; ``shaded`` fills each row with the style's background.

    ``rows`` counts the line ends written since the beginning.
    """

    def __init__(self, columns: int, style: str = "", *, shaded: bool = False) -> None:
        self.rows = 0
        self._style = style
        self._shaded = shaded
        self._margin = " " if shaded else ""
        self._width = 0
        self._line = ""
        self._word = ""
        self._used = 0
        self._begun = False
        self._soft = False
        self._overfull = False
        self._ends = 0
        self._out: list[str] = []
        self.resize(columns)

    def resize(self, columns: int) -> None:
        """Go on for a terminal of ``columns``; a row that is too long by now is left behind."""
        self._width = max(columns - 1 - 2 * len(self._margin), _NARROWEST)
        self._overfull = self._begun and self._used > self._width

    def feed(self, text: str) -> str:
        """What to write for a piece of clean text. Line ends at its end wait for what follows."""
        for part in _PARTS.split(text):
            if part == "\n":
                self._ends += 1
            elif part in (" ", "\t"):
                self._space(_TAB - self._used % _TAB if part == "\t" else 1)
            elif part:
                self._letters(part)
        written = "".join(self._out)
        self._out.clear()
        return f"{self._style}{written}{RESET}" if self._style and written else written

    @property
    def is_begun(self) -> bool:
        """Whether anything was written."""
        return self._begun or self.rows > 0

    def end(self) -> str:
        """What ends the last row."""
        return self._line_end() if self._begun else ""

    def _space(self, count: int) -> None:
        self._settle()
        if self._soft and not self._used:
            return
        self._line += self._word
        self._word = ""
        count = min(count, self._width - self._used)
        self._line += " " * count
        self._used += count
        self._begin()
        self._out.append(" " * count)

    def _letters(self, part: str) -> None:
        self._settle()
        needed = columns_of(part)
        if self._used + needed > self._width and self._line.strip():
            self._carry_word()
        self._begin()
        if self._used + needed <= self._width:
            self._put(part, needed)
            return
        for letter in part:
            wide = columns_of(letter)
            if self._used + wide > self._width:
                self._line, self._word = "", ""
                self._break(soft=True)
            self._put(letter, wide)

    def _put(self, letters: str, columns: int) -> None:
        self._out.append(letters)
        self._word += letters
        self._used += columns

    def _carry_word(self) -> None:
        """The word under way goes to a row of its own."""
        word = self._word
        if word:
            self._out.append(f"\r{self._style}{CLEAR_ROW}{self._margin}{self._line.rstrip()}")
        self._line, self._word = "", ""
        self._break(soft=True)
        if word:
            self._put(word, columns_of(word))

    def _settle(self) -> None:
        """Write the line ends that waited."""
        if self._overfull and not self._ends:
            self._line, self._word = "", ""
            self._break(soft=True)
        self._overfull = False
        for _ in range(self._ends):
            self._begin()
            self._line, self._word = "", ""
            self._break(soft=False)
        self._ends = 0

    def _break(self, *, soft: bool) -> None:
        self._out.append(self._line_end())
        self._begun, self._used, self._soft = False, 0, soft
        self._begin()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._out.append(f"{self._style}{CLEAR_ROW}{self._margin}" if self._shaded else self._style)

    def _line_end(self) -> str:
        self.rows += 1
        return f"{RESET}\r\n" if self._style else "\r\n"
