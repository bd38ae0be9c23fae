"""What somebody sees who has set up nothing yet: what to do next, and a dialogue that sets an endpoint up.

Promises: nothing is written before the last answer was given, so that Ctrl-C leaves nothing behind; no key is shown; no
log is made or changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from thinkback.cli import hints, terminal
from thinkback.errors import NotFoundError
from thinkback.session.destination import Destination

if TYPE_CHECKING:
    from thinkback.model.rule import Endpoint
    from thinkback.rules import Rulebook

REFEREE = "referee"
_LISTED = 8


def show_next() -> None:
    """What to do next, by what there is."""
    from thinkback.cli.options import log_path
    from thinkback.session.profiles import files
    from thinkback.stores.names import session_names

    path, defaults = log_path(""), files.defaults()
    count = 0 if "://" in path else len(session_names(path))
    is_set_up = bool(defaults or os.environ.get("THINKBACK_ENDPOINT") or os.environ.get("THINKBACK_BASE_URL"))
    rows = []
    if count or "://" in path:
        rows.append(("thinkback chat --continue", "go on with the session used last"))
        rows.append(("thinkback sessions", f"list {terminal.plural(count, 'session') if count else 'the sessions'}"))
    by = f" (profile {', '.join(defaults)})" if defaults else ""
    rows.append(("thinkback chat", f"begin a chat{by}" if is_set_up else "choose an endpoint, and begin a chat"))
    if not is_set_up:
        rows.append(("thinkback chat --endpoint referee", "try it without a key"))
    rows.append(("thinkback --help", "list all commands"))
    pen = terminal.pen(sys.stdout)
    terminal.out("thinkback keeps a model's reasoning and gives it back.")
    terminal.out()
    width = max(len(command) for command, _ in rows)
    for command, what in rows:
        terminal.out(f"  {pen(terminal.pad(command, width), 'bold')}  {terminal.clean(what)}")


def is_new(path: str, session: str, asked: Destination, app: str, profile: str) -> bool:
    """Whether nothing says where a new chat in the log at ``path`` is to ask."""
    from thinkback.session import apps
    from thinkback.session.profiles import files
    from thinkback.stores.names import session_names

    if asked.endpoint or asked.base_url or profile or files.defaults() or (app and apps.find(app).endpoint):
        return False
    return not session or not ("://" in path or session in session_names(path))


def choose(asked: Destination, session: str = "") -> Destination:
    """Ask for an endpoint and a model, for a ``session`` that has none or a new one, and keep them as the default
    profile. Raises ``click.Abort`` for Ctrl-C, and ``NotFoundError`` where nobody can be asked.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        command = hints.command("chat", session=session) if session else hints.command("chat")
        raise NotFoundError(f"no endpoint is set: {command} on a terminal asks for one, or give --endpoint and --model")
    from thinkback.session import config
    from thinkback.session.config import keys

    book = config.rulebook()
    found = keys.places([name for row in book.endpoints() for name in row.auth.env])
    offered = _offered(book, found)
    _show(book, offered, found)
    endpoint = _ask_endpoint(book, offered)
    model = asked.model or _ask_model(book, endpoint)
    if endpoint.id == REFEREE:
        terminal.note(
            f"for this chat alone, nothing is stored: {hints.command('chat', endpoint=REFEREE)} tries it again"
        )
        return Destination(endpoint.id, model)
    _keep(endpoint, model, _ask_key(endpoint, found))
    return Destination(endpoint.id, model)


def _offered(book: Rulebook, found: Mapping[str, str]) -> list[Endpoint]:
    """One endpoint for each key that there is, and the stand-in; without a key those of which most models are known."""
    from thinkback.cli.options import by_key

    keyed = by_key(book.endpoints())
    rows = [row for row in keyed.values() if any(name in found for name in row.auth.env)]
    if not rows:
        most = sorted(keyed.values(), key=lambda row: -len(book.served(row.id)))[:_LISTED]
        rows = sorted(most, key=lambda row: row.id)
    return [*rows, book.endpoint(REFEREE)]


def _show(book: Rulebook, offered: list[Endpoint], found: Mapping[str, str]) -> None:
    terminal.out("No default endpoint is set up yet. Ctrl-C leaves everything as it is.")
    there = ", ".join(f"{name} ({where})" for name, where in found.items())
    terminal.out(f"Keys that were found: {there or 'none'}.")
    terminal.out()
    width = max(len(row.id) for row in offered)
    for at, row in enumerate(offered, 1):
        models = "no model: a stand-in, to try it without a key"
        if row.id != REFEREE:
            served = book.served(row.id)
            models = ", ".join([*served[:3], *(["..."] if len(served) > 3 else [])]) or row.name
        room = max(terminal.width() - width - 7, 20)
        terminal.out(f"{at:3}  {terminal.pad(row.id, width)}  {terminal.one_line(models, room)}")
    terminal.out()
    terminal.out("Any other name that `thinkback endpoints` lists will do too.")


def _ask_endpoint(book: Rulebook, offered: list[Endpoint]) -> Endpoint:
    def taken(said: str) -> Endpoint:
        if said.isdigit() and 1 <= int(said) <= len(offered):
            return offered[int(said) - 1]
        try:
            row = book.endpoint(said)
        except NotFoundError as error:
            raise click.UsageError(error.message) from None
        if not row.base_url:
            raise click.UsageError(f"{row.id} has no address of its own: give --endpoint {row.id} and --base-url")
        return row

    endpoint: Endpoint = click.prompt("Endpoint, by number or name", default="1", value_proc=taken)
    return endpoint


def _ask_model(book: Rulebook, endpoint: Endpoint) -> str:
    known = book.served(endpoint.id)
    if len(known) == 1:
        return known[0]
    if known:
        terminal.out(terminal.wrap(f"Models known at {endpoint.id}: {', '.join(known)}"))
    while True:
        said: str = click.prompt("Model", default=known[0] if known else None, type=str)
        model = said.strip()
        # the provider may have newer ones
        if not known or model in known or click.confirm(f"No model {model} is known at {endpoint.id}. Use it?"):
            return model


def _ask_key(endpoint: Endpoint, found: Mapping[str, str]) -> str:
    """The key that is typed; nothing where there is one, or where none is needed."""
    auth = endpoint.auth
    takes_one = auth.scheme in ("bearer", "header", "query") and auth.env and not auth.optional
    if not takes_one or any(name in found for name in auth.env):
        return ""
    question = f"Key {auth.env[0]} (it is not shown; Enter: later)"
    key: str = click.prompt(question, default="", hide_input=True, show_default=False)
    return key.strip()


def _keep(endpoint: Endpoint, model: str, key: str) -> None:
    """Write the key, the profile and what makes it the default; a profile that is there stays as it is."""
    from thinkback.cli.config.profiles import default_text
    from thinkback.session.config import keys
    from thinkback.session.profiles import files
    from thinkback.settings.profiles import Profile

    taken = files.listed()
    names = (endpoint.id, *(f"{endpoint.id}-{at}" for at in range(2, len(taken) + 3)))
    name = next(name for name in names if name not in taken)
    if key:
        terminal.note(f"{endpoint.auth.env[0]} is kept in {keys.keep(endpoint.auth.env[0], key)}, not tried yet")
    file = files.write(name, Profile("model", endpoint.id, model))
    files.make_default([name])
    terminal.note(default_text([name], str(file)))
