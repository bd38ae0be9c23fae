"""The keyboard between two prompts, and how the terminal is left.

Promises: what is typed while nobody reads is not written into anybody's text and stands at the next prompt, Ctrl-D
too; whatever ends the chat, the terminal is as it was before.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

# What shells add to the number of a signal in an exit code.
SIGNALLED = 128


@contextmanager
def silent_keys(is_live: bool) -> Iterator[None]:
    """While inside, keys are kept one by one and not shown; Ctrl-C is a signal as ever."""
    if not is_live or sys.platform == "win32":
        yield
        return
    import termios

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    quiet = [*before]
    # in line mode the terminal itself would take Ctrl-D, as the end of a line that nobody reads
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    quiet[6] = [*before[6]]
    quiet[6][termios.VMIN], quiet[6][termios.VTIME] = 1, 0
    termios.tcsetattr(keyboard, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """While inside, whoever ends the process or closes its window has it leave as it came."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(SIGNALLED + number)

    ends = [getattr(signal, name) for name in ("SIGHUP", "SIGTERM") if hasattr(signal, name)]
    before = {number: signal.signal(number, leave) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
