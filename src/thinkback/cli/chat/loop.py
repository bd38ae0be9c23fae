"""The loop: a line is a slash command or a message to the model; what goes wrong is told, and the next one is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from thinkback.cli import exits, terminal
from thinkback.cli.chat import table, turns
from thinkback.errors import ThinkbackError

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat


def run(chat: Chat) -> int:
    """Read and answer until it is over; returns the exit code, which is that of the last turn where nobody watched."""
    for line in chat.reader.lines(chat):
        handle(chat, line)
        if chat.is_over:
            break
        if chat.code == exits.INTERRUPTED and not chat.reader.is_live:
            break
    return 0 if chat.reader.is_live else chat.code


def handle(chat: Chat, line: str) -> None:
    """One line. ``//`` begins a message that begins with a slash."""
    if not line.strip():
        return
    if line.startswith("//") or not line.startswith("/"):
        turns.ask(chat, line.removeprefix("/") if line.startswith("//") else line)
        return
    try:
        table.run(chat, line)
    except (click.ClickException, ThinkbackError, OSError) as error:
        chat.code = exits.FAILED
        complain(error)
    except (KeyboardInterrupt, EOFError):
        terminal.note("given up")


def complain(error: click.ClickException | ThinkbackError | OSError) -> None:
    """Tell why a command did nothing."""
    terminal.complain(error.format_message() if isinstance(error, click.ClickException) else str(error))
