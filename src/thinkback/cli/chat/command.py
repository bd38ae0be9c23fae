"""``chat``: options, the log and the session, then the loop."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli.options import (
    Place,
    check_place,
    chosen,
    db_option,
    log_path,
    open_log,
    opened,
    place_after,
    place_options,
)

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Reader
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore

_HELP = """\
Talk to a model. Reasoning and answer stream; Ctrl-C ends a turn, and nothing that arrived is lost.

Lines that begin with a slash are commands: /help lists them. Without a terminal each line of standard input is a
message, and what is printed is plain text.
"""


@click.command("chat", short_help="Talk to a model in the terminal.", help=_HELP)
@click.option("--session", "-s", metavar="NAME", default="", help="Go on in this session; made if it is not there.")
@click.option("--continue", "go_on", is_flag=True, help="Go on in the session used last.")
@place_options
@db_option
def chat_command(session: str, go_on: bool, db: str, **given: Any) -> None:
    """Open the session and run the loop."""
    from thinkback.cli.chat import loop, resume
    from thinkback.cli.chat.chat import Chat

    if session and go_on:
        raise click.UsageError("--continue goes on in the last session; --session names another")
    place = Place(given["endpoint"], given["model"], given["base_url"], given["key_env"])
    with open_log(log_path(db)) as store:
        found, is_known = _session(store, session, go_on, place)
        chat = Chat(store, found, _reader(), sys.stdout)
        if chat.reader.is_live:
            _greet(found)
        if is_known:
            resume.show(chat)
        code = loop.run(chat)
    sys.exit(code)


def _session(store: SessionStore, name: str, go_on: bool, place: Place) -> tuple[Session, bool]:
    """The session to talk in, and whether something was said there before."""
    known = chosen(store, None) if go_on else store.log.find_session(name) if name else None
    if known is None:
        if not sys.stdin.isatty():
            check_place(place)
        return opened(store, name or _fresh_name(), place), False
    return opened(store, known.name, place_after(place, store.commits(known.id))), bool(known.commits)


def _fresh_name() -> str:
    import secrets
    import time

    return time.strftime("chat-%Y%m%d-%H%M%S-", time.localtime()) + secrets.token_hex(2)


def _reader() -> Reader:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from thinkback.cli.chat.lines import LineReader

        return LineReader(sys.stdin)
    from thinkback.cli.chat.prompt import Prompt, history_file

    return Prompt(history_file())


def _greet(session: Session) -> None:
    from thinkback.cli import terminal

    terminal.note(f"session {session.name}. /help lists the commands; Ctrl-D leaves.")
