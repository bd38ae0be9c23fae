"""The loop: a line is a slash command or a message to the model; what goes wrong is told, and the next one is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from thinkback.cli import exits, terminal
from thinkback.cli.chat import failures, table, turns

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat


# What other programs have taught people to leave by.
_LEAVE = ("exit", "quit")


def run(chat: Chat) -> int:
    """Read and answer until it is over; returns the exit code: where nobody watched that of the last turn, or of a
    command that failed after it.
    """
    for line in chat.reader.lines(chat):
        handle(chat, line)
        if chat.is_over:
            break
        if chat.code == exits.INTERRUPTED and not chat.reader.is_live:
            break
    return 0 if chat.reader.is_live else chat.code


def handle(chat: Chat, line: str) -> None:
    """One line."""
    if not line.strip():
        return
    try:
        if chat.reader.is_live and line.strip() in _LEAVE:
            chat.is_over = True
            return
        chat.news.follow(chat)
        if table.is_command(line):
            table.run(chat, line)
        else:
            turns.ask(chat, chat.prompt(line.removeprefix("/") if line.startswith("//") else line))
    except (KeyboardInterrupt, EOFError):
        terminal.note("given up")
    except BrokenPipeError:  # nobody reads any more
        raise
    except Exception as error:  # the outermost loop of a shell: a fault of ours ends no conversation
        if os.environ.get("THINKBACK_DEBUG") == "1" and not isinstance(error, failures.EXPECTED):
            raise
        chat.code, text = failures.report(error)
        terminal.complain(text)
