"""``settings``: what can be set, what is in force, and the user's settings file.

The file is changed where it is asked for, and nowhere else: its comments stay.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import terminal
from thinkback.cli.options import db_option, existing_log, json_option

if TYPE_CHECKING:
    from thinkback.errors import RuleFileError
    from thinkback.settings import Found, Value


@click.group("settings", invoke_without_command=True, short_help="List, read and write settings.")
@click.option("--endpoint", metavar="ID", default="", help="With what this endpoint sets.")
@click.option("--session", metavar="NAME", default="", help="With what this session sets.")
@db_option
@json_option
@click.pass_context
def settings_command(ctx: click.Context, endpoint: str, session: str, db: str, as_json: bool) -> None:
    """List the settings: value in force, the layer it comes from, and what it does."""
    if ctx.invoked_subcommand is not None:
        return
    from thinkback.settings import find

    found = _found(endpoint, session, db)
    if as_json:
        terminal.print_json(
            [
                {
                    "key": key.name,
                    "value": found[key.name].value,
                    "layer": found[key.name].layer,
                    "allowed": list(key.allowed),
                    "help": key.help,
                }
                for key in map(find, found)
            ]
        )
        return
    print_settings(found)


def print_settings(found: Mapping[str, Found]) -> None:
    """Each setting with its value in force, the layer it comes from, and what it does."""
    from thinkback.settings import find

    pen = terminal.pen(sys.stdout)
    rows = [(key, terminal.clean(shown(value)), layer) for key, (value, layer) in found.items()]
    heading, *lines = terminal.table([("setting", "value", "set by"), *rows])
    terminal.out(pen(heading, "dim"))
    for line, key in zip(lines, map(find, found), strict=True):
        terminal.out(pen(line, "bold") if found[key.name].layer != "built-in" else line)
        terminal.out(pen(terminal.wrap(f"{key.help} Allowed: {', '.join(key.allowed)}.", 2), "dim"))


@settings_command.command("get")
@click.argument("key")
@json_option
@click.pass_context
def get_command(ctx: click.Context, key: str, as_json: bool) -> None:
    """Print the value of KEY in force."""
    from thinkback.settings import find

    outer = ctx.parent.params if ctx.parent else {}
    name = find(key).name
    value, layer = _found(outer["endpoint"], outer["session"], outer["db"]).get(name, (None, "built-in"))
    if as_json:
        terminal.print_json({"key": name, "value": value, "layer": layer})
    else:
        terminal.out(shown(value))


@settings_command.command("set")
@click.argument("key")
@click.argument("value")
def set_command(key: str, value: str) -> None:
    """Set KEY to VALUE in the user's settings file."""
    from thinkback.session.config import user_settings
    from thinkback.settings import Layers, find

    parsed = Layers().set("user", key, value).entries[0].value
    name = find(key).name
    path = user_settings.change({name: parsed})
    terminal.out(f"{name} = {shown(parsed)} in {path}")
    _tell_faults(user_settings.read()[1])


@settings_command.command("unset")
@click.argument("key")
def unset_command(key: str) -> None:
    """Take KEY out of the user's settings file."""
    from thinkback.session.config import user_settings

    path = user_settings.unset(key)
    terminal.out(f"{key} is not set in {path}")
    _tell_faults(user_settings.read()[1])


def _tell_faults(faults: Sequence[RuleFileError]) -> None:
    """Report the entries of the settings file that do not hold, and how to take them out."""
    for fault in faults:
        terminal.complain(f"{fault.message}\n  - `thinkback settings unset {fault.details['key']}` takes it out")


def _found(endpoint: str, session: str, db: str) -> dict[str, Found]:
    """Per key the value in force and its layer."""
    from thinkback.rules import load_rulebook
    from thinkback.session import config
    from thinkback.session.config import user_settings
    from thinkback.settings import Layers

    values, faults = user_settings.read()
    _tell_faults(faults)
    layers = Layers().replace("user", values)
    if session:
        with existing_log(db) as store:
            layers = store.session(store.find(session).name).layers
    data: Mapping[str, Any] = {}
    if endpoint:
        data = load_rulebook(config.user_rule_files()).endpoint(endpoint).settings
    return {key: layers.origin(key, data) for key in layers.keys}


def shown(value: Value | None) -> str:
    """A value for people."""
    from thinkback.settings import to_text

    return "(unset)" if value is None else to_text(value)
