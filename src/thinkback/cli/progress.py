"""How far long work has come, as one line on a terminal: how much is done, how fast, and how long the rest takes.

Promises: nothing is drawn where standard error is no terminal, none for what is done within half a second, and the line
is gone when the work ends, however it ends.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TextIO

from thinkback.cli import terminal

if TYPE_CHECKING:
    from thinkback.log.progress import Progress

_FIRST, _EVERY = 0.5, 0.1
_UNITS = ((3_600, "h"), (60, "min"), (1, "s"))


@contextmanager
def progress_line(what: str) -> Iterator[Progress | None]:
    """A function that shows how far ``what`` has come; none where nobody looks."""
    if not _is_watched():
        yield None
        return
    line = Line(what, sys.stderr, time.monotonic)
    try:
        yield line
    finally:
        line.clear()


@contextmanager
def upgrade_line() -> Iterator[Progress | None]:
    """A function that shows how far a log's upgrade has come, which may begin at some time while the block runs.

    The line begins with the report of nothing done, and goes once nothing is left to do. One step may take nearly all
    the time: meanwhile the line counts seconds by itself.
    """
    if not _is_watched():
        yield None
        return
    lines: list[Line] = []
    with ExitStack() as shown:

        def tell(done: int, total: int, unit: str) -> None:
            if done == total:
                shown.close()
                return
            if not done:
                lines[:] = [shown.enter_context(_ticking(Line("upgrading the log", sys.stderr, time.monotonic)))]
            lines[0](done, total, unit)

        yield tell


@contextmanager
def _ticking(line: Line) -> Iterator[Line]:
    over = threading.Event()

    def tick() -> None:
        while not over.wait(_EVERY):
            line.again()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield line
    finally:
        over.set()
        ticker.join()
        line.clear()


def _is_watched() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Line:
    """The line on ``stream``, by ``clock`` (seconds). A unit that changes is counted anew. Any thread may call it."""

    def __init__(self, what: str, stream: TextIO, clock: Callable[[], float]) -> None:
        self._what = what
        self._stream = stream
        self._clock = clock
        self._unit = ""
        self._began = clock()
        self._next = self._began + _FIRST
        self._shown = 0
        self._told = 0, 0
        self._lock = threading.Lock()

    def __call__(self, done: int, total: int, unit: str) -> None:
        """So much is done, of so much (0: not known)."""
        with self._lock:
            self._told = done, total
            if unit != self._unit:
                self._unit, self._began = unit, self._clock()
            self._draw()

    def again(self) -> None:
        """Draw what was reported last, with the time that has passed since."""
        with self._lock:
            self._draw()

    def _draw(self) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _EVERY
        self._write(terminal.one_line(self._text(*self._told, now - self._began), terminal.width() - 1))

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _text(self, done: int, total: int, seconds: float) -> str:
        rate = done / seconds if seconds > 0 else 0
        count = f"{done:,} of {total:,}" if total else f"{done:,}"
        parts = [f"{self._what}: {count} {self._unit}"]
        if rate >= 1:
            parts.append(f"{rate:,.0f}/s")
            if total:
                parts.append(f"{_duration((total - done) / rate)} left")
        elif seconds >= 1:
            parts.append(f"{_duration(seconds)} so far")
        return ", ".join(parts)

    def _write(self, text: str) -> None:
        self._stream.write(f"\r{terminal.pad(text, self._shown)}")
        self._stream.flush()
        self._shown = terminal.columns_of(text)


def _duration(seconds: float) -> str:
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{seconds / size:.0f} {unit}"
