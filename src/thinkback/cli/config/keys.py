"""``keys``: keep a key, list where keys are, remove one. No key is ever an argument, and none is ever printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import json_option
from thinkback.errors import NotFoundError, SettingError

if TYPE_CHECKING:
    from thinkback.rules import Rulebook

_TYPED = "a key is not taken from the command line, where other programs can read it: type it when asked, or pipe it in"


@click.group("keys", short_help="Store, list and remove keys.")
def keys_command() -> None:
    """Store, list and remove keys. thinkback looks a key up in the environment, then in the key file (keys.toml in the
    configuration directory, readable by you alone), then in the system's keyring.
    """


@keys_command.command("set")
@click.argument("name", metavar="ENDPOINT", shell_complete=complete.endpoints)
@click.argument("rest", nargs=-1, metavar="")
@click.option(
    "--keyring", "in_keyring", is_flag=True, help="Store the key in the system's keyring instead of the key file."
)
@json_option
def set_command(name: str, rest: tuple[str, ...], in_keyring: bool, as_json: bool) -> None:
    """Store the key of ENDPOINT, or a key under a name of your own (for --key-env).

    The key is typed without being shown; without a terminal it is read from standard input.
    """
    import os

    from thinkback.session.config import keys

    if rest:
        raise click.UsageError(_TYPED)
    variable = _variable(name)
    key = click.prompt(f"key {variable}", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read()
    file = keys.keep(variable, key, in_keyring=in_keyring)
    where = "the system's keyring" if in_keyring else terminal.clean(str(file))
    terminal.tell({"name": variable, "in": where}, f"{variable} is stored in {where}", as_json=as_json)
    if os.environ.get(variable):
        terminal.note(f"the environment has {variable} too, which takes precedence")


@keys_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the stored keys, where each is stored, and its endpoints."""
    from thinkback.session.config import keys

    book = _book()
    users: dict[str, list[str]] = {}
    for endpoint in book.endpoints():
        for name in endpoint.auth.env:
            users.setdefault(name, []).append(endpoint.id)
    found = keys.places(users)
    if as_json:
        terminal.print_json(
            [{"name": name, "in": where, "endpoints": users.get(name, [])} for name, where in found.items()]
        )
        return
    for line in terminal.table([(name, where, ", ".join(users.get(name, []))) for name, where in found.items()]):
        terminal.out(line)
    if not found:
        terminal.note("no keys: `thinkback keys set ENDPOINT` stores one")


@keys_command.command("remove")
@click.argument("name", metavar="ENDPOINT", shell_complete=complete.endpoints)
@json_option
def remove_command(name: str, as_json: bool) -> None:
    """Remove the key of ENDPOINT, or the key of that name, from the key file and the keyring."""
    import os

    from thinkback.session.config import keys

    variable = _variable(name)
    keys.remove(variable)
    terminal.tell({"name": variable}, f"{variable} is removed", as_json=as_json)
    if os.environ.get(variable):
        terminal.note(f"the environment has {variable} still")


def _variable(name: str) -> str:
    """The name of the key of an endpoint; a name of a key as it is."""
    from thinkback.session.config import keys

    try:
        names = _book().endpoint(name).auth.env
    except NotFoundError:
        if not name.isupper():
            raise _no_endpoint(name) from None
        keys.check_name(name)
        return name
    if not names:
        raise SettingError(
            f"{name} has no variable for its key",
            next_actions=("choose a name of your own, like WORK_KEY", "and give it with --key-env or in a profile"),
        )
    return names[0]


def _no_endpoint(name: str) -> NotFoundError:
    """The error for a name that is no endpoint; it is repeated only where it cannot be a key."""
    import difflib

    from thinkback.settings.values import is_plain

    known = [id for endpoint in _book().endpoints() for id in (endpoint.id, *endpoint.aliases)]
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    named = f" {name!r}" if is_plain(name) else " of this name"
    return NotFoundError(
        f"there is no endpoint{named}",
        next_actions=(
            *(f"did you mean {match}?" for match in close),
            "`thinkback endpoints` lists endpoints",
            "write a key's name of your own in capitals, like WORK_KEY",
        ),
    )


def _book() -> Rulebook:
    from thinkback.session import config

    return config.rulebook()
