"""``/new``, ``/clear``, ``/system`` and ``/copy``: another session, the screen, the system prompt, the clipboard."""

from __future__ import annotations

import base64
import sys
from typing import TYPE_CHECKING

import click

from thinkback.cli import terminal
from thinkback.cli.chat import fresh
from thinkback.cli.chat.slash import attach
from thinkback.cli.chat.slash.row import Slash, words
from thinkback.model.blocks import Text
from thinkback.model.commits import Message

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat


def new(chat: Chat, rest: str) -> None:
    """Go on in a session of its own, with the same place and app."""
    named = words(rest, "new [NAME]", most=1)
    before, here, app = chat.session, chat.session.conversation.configure().place, chat.session.app
    if named and chat.store.log.find_session(named[0]) is not None:
        raise click.UsageError(f"session {named[0]} exists already: /resume {named[0]} continues it")
    attach.let_go(chat)
    chat.session = chat.store.session(
        named[0] if named else fresh.name(),
        endpoint=here.endpoint,
        model=here.model,
        base_url=here.base_url,
        api_key=here.api_key,
        app=app.id if app is not None else "",
    )
    chat.begun[chat.session.id] = chat.store.find(chat.session.id).settings if named else None
    terminal.note(f"session {chat.session.name}; /resume {before.name} goes back")


def clear(chat: Chat, rest: str) -> None:
    """Empty the screen."""
    words(rest, "clear", most=0)
    chat.screen.clear()
    terminal.note("the conversation goes on; /new begins another")


def system(chat: Chat, rest: str) -> None:
    """Show the system prompt, or change it."""
    if rest:
        chat.system = rest
        terminal.note("the system prompt from the next message on")
        return
    said = [one.value.text for one in chat.session.log(kinds=("system",)) if isinstance(one.value, Message)]
    now = chat.system if chat.system is not None else said[-1] if said else ""
    if now:
        terminal.out(terminal.wrap(now, 2))
    else:
        terminal.note("there is no system prompt: /system TEXT sets one")


def copy(chat: Chat, rest: str) -> None:
    """Give the last answer to the terminal's clipboard (OSC 52)."""
    words(rest, "copy", most=0)
    commits = chat.session.log(kinds=("assistant",))
    text = "".join(
        one.value.text
        for one in commits
        if one.response == commits[-1].response and isinstance(one.value, Text | Message)
    )
    if not text:
        raise click.UsageError("there is no answer to copy yet")
    if not sys.stdout.isatty():
        raise click.UsageError("/copy needs a terminal; /export FILE writes the session")
    sys.stdout.write(f"\x1b]52;c;{base64.b64encode(text.encode(errors='replace')).decode()}\x07")
    sys.stdout.flush()
    terminal.note(f"{terminal.plural(len(text), 'character')} copied to the terminal's clipboard")


ROWS = (
    Slash("new", "new [NAME]", "Start a new session with the same endpoint, model and app.", new),
    Slash("clear", "clear", "Empty the screen; the conversation goes on.", clear),
    Slash("system", "system [TEXT]", "Show the system prompt, or change it from the next message on.", system),
    Slash("copy", "copy", "Copy the last answer to the terminal's clipboard.", copy),
)
