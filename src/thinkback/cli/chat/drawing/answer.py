"""An answer as it is drawn: the block under way as it arrives, each closed block as Markdown in its place.

Each block is rendered once, when it closes, so that a token costs a write and nothing else. A block whose beginning
has left the screen by then stays as it was written.
"""

from __future__ import annotations

from thinkback.cli.chat.drawing.blocks import Splitter
from thinkback.cli.chat.drawing.column import Column, Plain
from thinkback.cli.chat.drawing.surface import Surface
from thinkback.session.transcripts.ink import Cleaner

# how close to the edge of the screen code may come before it is put in its place
_SPARE_ROWS = 2


class Answer:
    """Text of one answer under way."""

    def __init__(self, surface: Surface) -> None:
        self._pieces: list[str] = []
        self._surface = surface
        self._clean = Cleaner()
        self._splitter = Splitter()
        self._columns = surface.columns
        self._column = Column(self._columns)
        self._plain = Plain(self._columns) if surface.is_terminal else None
        self._rows = 0
        self._stays = False
        self._has_stayed = False
        self._gap = False
        # the first line of the code under way, where part of it stands in its place already
        self._fence = ""

    @property
    def text(self) -> str:
        """All of it by now, clean."""
        return "".join(self._pieces)

    def feed(self, text: str) -> None:
        """A piece of the answer."""
        text = self._clean(text)
        self._pieces.append(text)
        if not self._surface.draws:
            self._surface.write(text if self._plain is None else self._plain.feed(text))
            return
        self._follow_size()
        open_before = self._splitter.size
        closed = self._splitter.feed(text)
        unseen = sum(map(len, closed)) - open_before
        if not closed or (self._has_left and unseen <= 0):
            # what follows a closed block may stand behind it already
            written = self._open(text)
        else:
            written = self._closed(closed, text[:unseen]) + self._open(self._splitter.open)
        self._surface.write(written + self._long_code())

    def close(self) -> None:
        """The answer is over, or broken off."""
        if not self._surface.draws:
            held = "" if self._plain is None else self._plain.end()
            self._surface.write(held + ("" if self.text.endswith("\n") else "\n"))
            return
        self._follow_size()
        rest = self._splitter.end()
        if rest.strip():
            self._surface.write(self._closed([rest], ""))

    def take_back(self) -> bool:
        """Take everything off the screen again; whether that could be done."""
        if not self._surface.draws or self._has_stayed:
            return False
        rows = self._rows + self._column.rows
        if self._surface.columns != self._columns or rows >= self._surface.height:
            return False
        self._surface.write(_back(rows))
        return True

    def _open(self, text: str) -> str:
        """What shows ``text`` of the block under way."""
        if not self._column.is_begun and not self._fence:
            text = self._skip_blank(text)
            if not text:
                return ""
        return self._take_gap() + self._column.feed(text)

    def _closed(self, blocks: list[str], unseen: str) -> str:
        """What puts ``blocks`` in the place of the block under way; ``unseen`` is what was not shown of them yet."""
        column, stays = self._column, self._has_left
        self._column, self._stays = Column(self._columns), False
        if stays:
            self._has_stayed, self._fence = True, ""
            written = column.feed(unseen) + column.end()
            self._rows += column.rows
            self._gap = _is_apart(blocks[-1])
            return written
        out = _back(column.rows) if column.is_begun else ""
        for at, block in enumerate(blocks):
            rendered = self._rendered(block, shown=not at and column.is_begun)
            if rendered:
                out += self._take_gap() + rendered
                self._rows += rendered.count("\n")
            self._gap = self._gap or _is_apart(block)
        return out

    def _rendered(self, block: str, *, shown: bool) -> str:
        """A closed block, laid out; ``shown``: it was under way, and stands apart from what is above already."""
        fence, self._fence = self._fence, ""
        if not fence:
            return self._surface.render(block.lstrip("\n") if shown else self._skip_blank(block))
        is_end = not block.strip(" \n`~")
        return "" if is_end else self._surface.render(fence + block)

    @property
    def _has_left(self) -> bool:
        """Whether the beginning of the block under way cannot be written over any more."""
        return self._stays or self._column.rows >= self._surface.height

    def _skip_blank(self, text: str) -> str:
        """``text`` without the blank lines before it, which part it from what stands above."""
        found = text.lstrip("\n")
        self._gap = self._gap or (len(found) < len(text) and self._rows > 0)
        return found

    def _long_code(self) -> str:
        """Put code that is about to leave the screen in its place while it can be, to go on behind it."""
        if self._has_left or not self._splitter.is_code or self._column.rows < self._surface.height - _SPARE_ROWS:
            return ""
        block = self._splitter.chop()
        fence = self._fence or block.partition("\n")[0] + "\n"
        written = self._closed([block], "")
        self._fence, self._gap = fence, False
        return written + self._open(self._splitter.open)

    def _take_gap(self) -> str:
        if not self._gap:
            return ""
        self._gap = False
        self._rows += 1
        return self._surface.line_end

    def _follow_size(self) -> None:
        if self._surface.columns != self._columns:
            self._columns = self._surface.columns
            self._column.resize(self._columns)
            # nobody knows what the terminal made of the rows that were there
            self._stays = self._column.is_begun
            self._has_stayed = True


def _is_apart(block: str) -> bool:
    """Whether blank lines stand behind a block."""
    return len(block[len(block.rstrip()) :].split("\n")) > 2


def _back(rows: int) -> str:
    """To the beginning of the row ``rows`` above, everything from there on cleared."""
    return f"\r\x1b[{rows}A\x1b[J" if rows else "\r\x1b[J"
