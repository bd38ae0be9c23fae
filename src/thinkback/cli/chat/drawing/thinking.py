"""A piece of thinking as it is drawn: whole on a shade, as one line that counts and can be unfolded, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkback.cli.chat.drawing.column import Column, Plain
from thinkback.cli.chat.drawing.look import Mode
from thinkback.cli.chat.drawing.surface import Surface
from thinkback.model.texts import BETWEEN_THOUGHTS
from thinkback.session.transcripts.ink import Cleaner

if TYPE_CHECKING:
    from thinkback.settings.labels import Words

_CHARACTERS_PER_TOKEN = 4
_SECONDS_BETWEEN_COUNTS = 0.2
# letters of the thought that the one line may end in
_LAST = 200


class Thinking:
    """Thinking under way; ``now`` is seconds of any steady clock."""

    def __init__(self, surface: Surface, mode: Mode, said: Words, now: float) -> None:
        self._surface = surface
        self._mode = mode
        self._said = said
        self._began = now
        self._counted = now - _SECONDS_BETWEEN_COUNTS
        self._characters = 0
        self._pieces: list[str] = []
        self._index: int | None = None
        self._clean = Cleaner()
        self._columns = surface.columns
        self._column = Column(self._columns, surface.theme.thinking, shaded=surface.theme.depth != "16")
        self._plain = Plain(self._columns) if surface.is_terminal else None
        self._ends_line = True
        if mode == "full" and not surface.draws:
            surface.line(f"{said.live}:")

    def feed(self, text: str, index: int, now: float) -> None:
        """A piece of the thinking; another ``index`` begins a paragraph."""
        self._characters += len(text)
        text = self._clean(text)
        if self._index not in (None, index):
            text = f"{BETWEEN_THOUGHTS}{text.lstrip()}"
        self._index = index
        self._pieces.append(text)
        if self._mode == "full":
            self._write(text)
        elif now - self._counted >= _SECONDS_BETWEEN_COUNTS:
            self.tick(now)

    def tick(self, now: float) -> None:
        """Say how long it takes by now, where the text is not shown."""
        self._counted = now
        seconds = now - self._began
        if self._mode == "collapsed":
            last = "".join(self._pieces[-_LAST:])[-_LAST:]
            self._surface.status(self._said.so_far(seconds, self._tokens), self._surface.theme.thinking, last)
        elif self._mode == "hidden":
            self._surface.status(f"{self._said.working}, {round(seconds)} s")
        else:
            self._surface.footer(self._said.so_far(seconds, self._tokens))

    def fold(self, mode: Mode) -> None:
        """Go on in another mode; in full, what came before is shown first."""
        if mode == self._mode:
            return
        if self._mode == "full":
            self._end_row()
            self._surface.footer("")
        self._mode = mode
        if mode == "full":
            self._surface.write("")
            self._column = Column(self._columns, self._surface.theme.thinking, shaded=self._surface.theme.depth != "16")
            self._write("".join(self._pieces))

    def close(self, now: float) -> None:
        """The thinking is over."""
        self._surface.footer("")
        if self._mode == "hidden":
            self._surface.write("")
            return
        if self._mode == "full":
            self._end_row()
        self._surface.noted(self._said.done(now - self._began, self._tokens, estimated=True))

    def whole(self, text: str) -> None:
        """A thought that is over, without a word on how long it took."""
        self.feed(text, 0, self._began)
        self._end_row()

    def _end_row(self) -> None:
        held = "" if self._plain is None else self._plain.end()
        plain = held + ("" if self._ends_line else "\n")
        self._surface.write(self._column.end() if self._surface.draws else plain)

    @property
    def _tokens(self) -> int:
        return max(1, round(self._characters / _CHARACTERS_PER_TOKEN))

    def _write(self, text: str) -> None:
        surface = self._surface
        if not surface.draws:
            surface.write(text if self._plain is None else self._plain.feed(text))
            self._ends_line = text.endswith("\n") if text else self._ends_line
            return
        if surface.columns != self._columns:
            self._columns = surface.columns
            self._column.resize(self._columns)
        surface.write(self._column.feed(text if self._column.is_begun else text.lstrip("\n")))
