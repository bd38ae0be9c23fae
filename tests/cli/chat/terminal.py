"""A command in a real terminal: a pseudo-terminal with a person's eyes (pyte) and hands.

Nothing here sleeps: ``wait_for`` waits on the terminal's output itself, and a deadline that passes fails with the
screen in the message.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import pyte

DEADLINE = 30.0
DARK = (30, 30, 46)
LIGHT = (250, 244, 237)

Rgb = tuple[int, int, int]

_BACKGROUND_QUERY = re.compile(rb"\x1b\]11;\?(?:\x07|\x1b\\)")


class Cell(NamedTuple):
    """One place of the screen. Colours are as pyte names them: ``default``, a name, or ``rrggbb``."""

    text: str
    italic: bool
    bold: bool
    reverse: bool
    foreground: str
    background: str

    @property
    def rgb(self) -> Rgb:
        """The background as numbers. Raises ``ValueError`` for a named colour."""
        red, green, blue = (int(self.background[at : at + 2], 16) for at in (0, 2, 4))
        return red, green, blue


class Terminal:
    """``line`` running in ``directory`` on a terminal of ``columns`` and ``rows``, which has a scrollback.

    ``background`` is what it answers when asked for its background; ``None`` is a terminal that does not answer.
    ``received`` is everything that was written to it.
    """

    def __init__(
        self,
        line: Sequence[str],
        environment: Mapping[str, str],
        *,
        columns: int = 80,
        rows: int = 24,
        background: Rgb | None = DARK,
        directory: Path | None = None,
    ) -> None:
        self.received = b""
        self._background = background
        self._asked = 0
        self._master, slave = pty.openpty()
        self._set_size(columns, rows)
        self._screen = _Screen(columns, rows, self._write)
        self._stream = pyte.ByteStream(self._screen)
        self.process = subprocess.Popen(
            line,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=dict(environment),
            cwd=directory,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)

    # -- eyes ----------------------------------------------------------------------------------------------------------

    @property
    def lines(self) -> list[str]:
        """What is on the screen, row by row, without blanks at the ends."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """What is on the screen, as one text."""
        return "\n".join(self.lines).rstrip()

    @property
    def everything(self) -> str:
        """What is on the screen, and what has left it at the top."""
        above = ["".join(row[at].data for at in range(self._screen.columns)) for row in self._screen.history.top]
        return "\n".join([*(line.rstrip() for line in above), *self.lines]).rstrip()

    @property
    def title(self) -> str:
        """The window's title."""
        return self._screen.title

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column of the cursor, from 0."""
        return self._screen.cursor.y, self._screen.cursor.x

    @property
    def is_in_line_mode(self) -> bool:
        """Whether it shows what is typed and gives it line by line, as a shell's terminal does."""
        modes: int = termios.tcgetattr(self._master)[3]
        return bool(modes & termios.ICANON) and bool(modes & termios.ECHO)

    def row_of(self, text: str) -> int:
        """The first row that ``text`` stands on."""
        return next(at for at, line in enumerate(self.lines) if text in line)

    def cells(self, row: int) -> list[Cell]:
        """A row of the screen; the second half of a wide letter is a cell without text."""
        found = (self._screen.buffer[row][column] for column in range(self._screen.columns))
        return [Cell(one.data, one.italics, one.bold, one.reverse, one.fg, one.bg) for one in found]

    def cell(self, text: str) -> Cell:
        """The cell of the first letter of ``text``."""
        for row in range(self._screen.lines):
            cells = self.cells(row)
            written = "".join(cell.text for cell in cells)
            at = written.find(text)
            if at >= 0:
                starts = [sum(len(cell.text) for cell in cells[:column]) for column in range(len(cells))]
                return cells[starts.index(at)]
        raise AssertionError(f"{text!r} is not on the screen:\n{self.text}")

    # -- waiting -------------------------------------------------------------------------------------------------------

    def wait_for(self, text: str, deadline: float = DEADLINE) -> None:
        """Wait until ``text`` is on the screen."""
        self.wait_until(lambda: text in self.text, f"{text!r} on the screen", deadline)

    def wait_for_written(self, text: str) -> None:
        """Wait until ``text`` was written, also where it is gone again: what a turn shows while it runs."""
        self.wait_until(lambda: text.encode() in self.received, f"{text!r}, if only for a moment")

    def wait_until(self, holds: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
        """Wait until what was written makes ``holds`` true; ``what`` is said where it does not."""
        until = time.monotonic() + deadline
        while not holds():
            left = until - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"waited for {what}; the screen is:\n{self.text}")

    def interrupt(self) -> int:
        """Press Ctrl-C until the program ends, and give its exit code: one that comes right before Python reads a line
        is seen with the next key.
        """
        for _ in range(10):
            self.send("\x03")
            with suppress(AssertionError):
                return self.wait_for_end(3)
        raise AssertionError(f"nothing ends it; the screen is:\n{self.text}")

    def wait_for_end(self, deadline: float = DEADLINE) -> int:
        """Read to the end of the output and give the exit code."""
        until = time.monotonic() + deadline
        while self._read(max(until - time.monotonic(), 0)):
            pass
        try:
            return self.process.wait(max(until - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"waited for the end; the screen is:\n{self.text}") from None

    # -- hands ---------------------------------------------------------------------------------------------------------

    def send(self, keys: str | bytes) -> None:
        """Type ``keys``: Enter is a carriage return, Ctrl-C is ``\\x03``."""
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            # what is typed is echoed: whoever only types fills the pipe
            self._read(0)
            data = data[os.write(self._master, data[:512]) :]

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size; the command is told by SIGWINCH."""
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def close(self) -> None:
        """End the command if it still runs, as closing the window does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGHUP)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self._master)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- the terminal itself -------------------------------------------------------------------------------------------

    def _read(self, seconds: float) -> bool:
        """Take what was written, waiting that long for it; ``False`` where nothing came, or no more will."""
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self._master, 65536)
        except OSError:  # Linux says so when the other side has closed
            return False
        self.received += piece
        self._stream.feed(piece)
        self._answer()
        return bool(piece)

    def _answer(self) -> None:
        asked = len(_BACKGROUND_QUERY.findall(self.received))
        for _ in range(asked - self._asked if self._background is not None else 0):
            red, green, blue = (f"{part * 257:04x}" for part in self._background or ())
            self._write(f"\x1b]11;rgb:{red}/{green}/{blue}\x1b\\")
        self._asked = asked

    def _write(self, answer: str) -> None:
        os.write(self._master, answer.encode())

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class _Screen(pyte.HistoryScreen):
    """pyte's screen, which answers where the cursor is."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], None]) -> None:
        self._give = answer
        super().__init__(columns, rows, history=100_000)

    def write_process_input(self, data: str) -> None:
        self._give(data)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # where the tests run in the background, Ctrl-C would be ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)
