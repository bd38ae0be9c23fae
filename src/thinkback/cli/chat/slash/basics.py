"""``/help``, ``/sessions``, ``/resume`` and ``/quit``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from thinkback.cli import terminal
from thinkback.cli.chat import resume
from thinkback.cli.chat.slash.row import Slash, words
from thinkback.cli.chat.table import find, table
from thinkback.cli.history import log

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat


def help_(_chat: Chat, rest: str) -> None:
    """All commands in a line each, or one."""
    pen = terminal.pen(sys.stdout)
    named = words(rest, "help [COMMAND]", most=1)
    if named:
        row = find(named[0].removeprefix("/"))
        terminal.out(pen(f"/{row.usage}", "bold"))
        terminal.out(terminal.wrap(row.help, 2))
        return
    column = max(map(len, table())) + 3
    for row in table().values():
        terminal.out(terminal.pad(f"/{row.name}", column) + terminal.wrap(row.help, column).lstrip())
    terminal.note("/help COMMAND describes a command; type // to begin a message with a slash")


def sessions(chat: Chat, rest: str) -> None:
    """List the sessions."""
    words(rest, "sessions", most=0)
    log.print_sessions(chat.store, chat.store.sessions())


def resume_(chat: Chat, rest: str) -> None:
    """Switch to another session."""
    (name,) = words(rest, "resume SESSION", 1, 1)
    resume.go_on(chat, name)


def quit_(chat: Chat, _rest: str) -> None:
    """End the chat, whatever else stands in the line: who wants to leave is not taught."""
    chat.is_over = True


def _sessions(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return () if before else [info.name for info in chat.store.sessions()]


def _commands(_chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return () if before else table()


ROWS = (
    Slash("sessions", "sessions", "List the sessions.", sessions),
    Slash("resume", "resume SESSION", "Switch to another session.", resume_, _sessions),
    Slash("help", "help [COMMAND]", "List the commands, or describe one.", help_, _commands),
    Slash("quit", "quit", "Leave the chat (also: exit); /resume continues the session later.", quit_),
)
