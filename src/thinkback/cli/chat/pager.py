"""What takes more rows than the terminal has goes through the pager of the person, everything else as it is."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import click


@contextmanager
def paged(is_live: bool) -> Iterator[None]:
    """What is printed inside, by pages where a person reads it and it would leave the screen at the top."""
    if not is_live:
        yield
        return
    held = _Held(sys.stdout.isatty())
    with redirect_stdout(held):
        yield
    text = held.getvalue()
    if text.count("\n") < shutil.get_terminal_size().lines:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        click.echo_via_pager(text, color=True)


class _Held(io.StringIO):
    """Is a terminal where what it stands for is one: colours and widths are that one's."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal
