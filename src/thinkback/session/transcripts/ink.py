"""Text laid out for people: plain ANSI where it is welcome, words wrapped, columns, nothing a terminal would obey.

Promises: no escape sequence of ours where the output is no terminal, ``NO_COLOR`` is set or ``TERM`` is dumb; none
of a model's or a provider's in anything that went through ``clean``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import textwrap
import time
import unicodedata
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, TextIO, TypeAlias

Style: TypeAlias = Literal["bold", "dim", "italic", "red", "green", "yellow", "cyan"]

CODES: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}
SHORT_HASH = 8
"""How many digits of a hash are shown."""
# Everything that moves the cursor, rings, turns the direction of writing or says something that nobody sees; newline
# and tab stay.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]")
# What a pen writes.
_PAINT = re.compile(rf"(\x1b\[(?:(?:0|{'|'.join(CODES.values())})[;m])+)")
_NARROW, _WIDE = 40, 100
# marks that stand on other letters, and formatting that shows nothing
_WIDTHLESS = frozenset({"Mn", "Me", "Cf"})


class Pen(NamedTuple):
    """Paints text for one stream, or leaves it plain."""

    paints: bool

    def __call__(self, text: str, *styles: Style) -> str:
        if not self.paints or not styles or not text:
            return text
        return f"\x1b[{';'.join(CODES[style] for style in styles)}m{text}\x1b[0m"


def pen(stream: TextIO) -> Pen:
    """The pen for ``stream``."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    return Pen(wanted and stream.isatty())


def width() -> int:
    """Columns to lay out for."""
    return max(_NARROW, min(_WIDE, shutil.get_terminal_size((80, 24)).columns))


def short(hash: str) -> str:
    """The beginning of a hash, by which people name it."""
    return hash[:SHORT_HASH]


def clean(text: str) -> str:
    """``text`` without anything a terminal would obey."""
    return _UNFIT.sub("\ufffd", text)


def clean_line(text: str) -> str:
    """``text`` without anything a terminal would obey, save the colours of a pen."""
    if text.isprintable():
        return text
    return "".join(part if at % 2 else clean(part) for at, part in enumerate(_PAINT.split(text)))


def clean_json(text: str) -> str:
    """JSON that means the same, in which a terminal would obey nothing."""
    return _UNFIT.sub(lambda found: json.dumps(found[0])[1:-1], text)


class Cleaner:
    """Cleans text that arrives in pieces: a line end of two characters is one, also where it was cut in two."""

    def __init__(self) -> None:
        self._held = ""

    def __call__(self, piece: str) -> str:
        text = self._held + piece
        self._held = "\r" if text.endswith("\r") else ""
        return clean(text.removesuffix("\r").replace("\r\n", "\n"))


def one_line(text: str, limit: int) -> str:
    """The first words of ``text``, clean, at most ``limit`` columns."""
    line = " ".join(clean(text).split())
    if columns_of(line) <= limit:
        return line
    kept, used = [], 1
    for letter in line:
        used += columns_of(letter)
        if used > limit:
            break
        kept.append(letter)
    return "".join(kept).rstrip() + "…"


def columns_of(text: str) -> int:
    """How many columns ``text`` takes: two for the wide letters of East Asia, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(letter) in _WIDTHLESS else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def pad(text: str, columns: int, right: bool = False) -> str:
    """``text`` filled up with blanks."""
    blanks = " " * (columns - columns_of(text))
    return blanks + text if right else text + blanks


def table(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """``rows`` as lines of equal columns; ``right`` names the columns that are aligned to the right."""
    if not rows:
        return []
    widths = [max(columns_of(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(pad(cell, widths[at], at in right) for at, cell in enumerate(row)).rstrip() for row in rows]


def wrap(text: str, indent: int = 0) -> str:
    """``text`` wrapped to the terminal, each line behind ``indent`` blanks; its own line ends stay."""
    blanks = " " * indent
    lines = [
        textwrap.fill(line, width(), initial_indent=blanks, subsequent_indent=blanks, break_on_hyphens=False)
        for line in clean(text).splitlines()
    ]
    return "\n".join(lines)


def fit(line: str, columns: int) -> str:
    """``line`` broken between words where it is wider than ``columns``; what follows stands under its first word.

    The colours of a pen take no room. A word that is wider than all of it stays whole.
    """
    shown = _PAINT.sub("", line)
    if columns_of(shown) <= columns:
        return line
    indent = " " * min(len(shown) - len(shown.lstrip(" ")), columns // 2)
    rows, used = [""], 0
    for piece in re.findall(r" *[^ ]+", line):
        size = columns_of(_PAINT.sub("", piece))
        if used and used + size > columns:
            rows.append(indent)
            piece, used = piece.lstrip(" "), len(indent)
            size = columns_of(_PAINT.sub("", piece))
        rows[-1] += piece
        used += size
    return "\n".join(rows)


def fitted(text: str, stream: TextIO) -> str:
    """``text`` as it fits a terminal, broken between words; elsewhere as it is."""
    if not stream.isatty():
        return text
    columns = shutil.get_terminal_size((80, 24)).columns
    return "\n".join(fit(line, columns) for line in text.split("\n"))


def clock(microseconds: int) -> str:
    """A time as people read it, where they are."""
    return time.strftime("%m-%d %H:%M:%S", time.localtime(microseconds // 1_000_000))


def iso(microseconds: int) -> str:
    """A time as programs read it, UTC."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:06d}Z"


def readable(microseconds: int) -> str:
    """A time as people read it, wherever they are."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(microseconds // 1_000_000))
