"""``chat``: options, the log and the session, then the loop."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import complete, first_run, hints, terminal
from thinkback.cli.chat import fresh
from thinkback.cli.config.apps import app_of, placed, work_of
from thinkback.cli.options import (
    app_option,
    beside_option,
    busy_options,
    continue_option,
    db_option,
    existing_path,
    last_used,
    log_path,
    open_log,
    opened,
    pairs,
    place_in,
    place_options,
    profile_option,
    refuse_two_sessions,
)
from thinkback.session.destination import Destination, check_destination, destination_of

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Reader

_HELP = """\
Talk to a model. Reasoning and answer are streamed. Ctrl-C ends a turn and keeps everything received so far.

Lines that begin with a slash are commands; /help lists them. Without a terminal each line of standard input is a
message, and the output is plain text: answers on standard output, reasoning on standard error.
"""


@click.command("chat", short_help="Talk to a model in the terminal.", help=_HELP)
@click.option(
    "--session",
    "-s",
    metavar="NAME",
    default="",
    shell_complete=complete.sessions,
    help="Continue this session; it is created if it does not exist.",
)
@continue_option
@click.option("--system", metavar="TEXT", help="Set the system prompt from now on.")
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    shell_complete=complete.assignments,
    help="Set a setting of this session; repeatable.",
)
@click.option(
    "--param",
    "params",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set a field of each request of this session; repeatable.",
)
@app_option
@profile_option
@place_options
@beside_option
@busy_options
@db_option
def chat_command(session: str, go_on: bool, app: str, profile: str, db: str, **given: Any) -> None:
    """Open the session and run the loop."""
    from thinkback.cli.chat import loop, resume
    from thinkback.cli.chat.chat import Chat
    from thinkback.cli.chat.keyboard import ended_in_order, silent_keys
    from thinkback.cli.referee import APP, ENDPOINT, StandIn, completed

    refuse_two_sessions(session, go_on)
    path, asked = existing_path(db) if go_on else log_path(db), place_in(given)
    wanted = _wanted(given["settings"], given["params"])
    is_set = bool(app or profile or wanted)
    if not go_on and first_run.is_new(path, session, asked, app, profile):
        asked = first_run.choose(asked)
    with open_log(path, asks=True) as store:
        known = last_used(store) if go_on else store.log.find_session(session) if session else None
        place = completed(destination_of(store, known, store.commits(known.id) if known else (), asked, profile))
        if known and not _is_somewhere(placed(place, app or app_of(known, place), store.rulebook)):
            place = completed(first_run.choose(asked, known.name))
        if place.endpoint == ENDPOINT and not known:
            app = app or APP
        reader = _reader()
        if not (reader.is_live or known):
            check_destination(placed(place, app, store.rulebook), store.rulebook)
        with ended_in_order(), StandIn() as stand_in:
            place = stand_in.at(place, asked.base_url)
            found = opened(store, known.name if known else session or fresh.name(), place, app, profile)
            for key, value in wanted.items():
                found.set(key, value)
            with (
                Chat(store, found, reader, sys.stdout, None if reader.is_live else sys.stderr, stand_in) as chat,
                silent_keys(reader.is_live),
            ):
                chat.system = given["system"]
                if not (known or (session and is_set)):
                    chat.begun[found.id] = store.find(found.id).settings if session else None
                if reader.is_live:
                    work = work_of(found)
                    if work and app != APP:
                        terminal.note(work)
                    which = "session" if known else "new session"
                    terminal.note(f"{which} {found.name}. /help lists the commands; Ctrl-D leaves.")
                    if place.endpoint == ENDPOINT:
                        terminal.note("Ask anything. Ctrl-O unfolds the last thought, /why shows what was sent back.")
                    if known is not None and known.commits:
                        resume.show(chat)
                code = loop.run(chat)
                if chat.is_kept:
                    terminal.note(f"{hints.command('chat', session=chat.session.name)} continues this session")
    sys.exit(code)


def _wanted(settings: Sequence[str], params: Sequence[str]) -> dict[str, object]:
    """What ``--set`` and ``--param`` ask for, checked before anything is opened."""
    from thinkback.settings import Layers
    from thinkback.settings.registry import PARAMS

    fields = {f"{PARAMS}.{name}": value for name, value in pairs("--param", params)}
    wanted: dict[str, object] = {**dict(pairs("--set", settings)), **fields}
    Layers().replace("session", wanted)
    return wanted


def _is_somewhere(place: Destination) -> bool:
    return bool(place.endpoint or place.base_url)


def _reader() -> Reader:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        from thinkback.cli.chat.lines import LineReader

        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        return LineReader(sys.stdin)
    from thinkback.cli.chat.prompt import Prompt, history_file

    return Prompt(history_file())
