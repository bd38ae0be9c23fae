"""``settings``: what can be set, what is in force, and the user's settings file.

The file is written only where it can be read back without loss: one that a person gave comments or another shape is
left alone, with a word on what to write into it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import terminal
from thinkback.cli.options import db_option, existing_log, json_option
from thinkback.errors import SettingError

if TYPE_CHECKING:
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
    from thinkback.settings import KEYS

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
                for key in KEYS.values()
            ]
        )
        return
    print_settings(found)


def print_settings(found: Mapping[str, Found]) -> None:
    """Each setting with its value in force, the layer it comes from, and what it does."""
    from thinkback.settings import KEYS

    pen = terminal.pen(sys.stdout)
    rows = [(key, shown(found[key].value), found[key].layer) for key in KEYS]
    heading, *lines = terminal.table([("setting", "value", "set by"), *rows])
    terminal.out(pen(heading, "dim"))
    for line, key in zip(lines, KEYS.values(), strict=True):
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
    value, layer = _found(outer["endpoint"], outer["session"], outer["db"])[name]
    if as_json:
        terminal.print_json({"key": name, "value": value, "layer": layer})
    else:
        terminal.out(shown(value))


@settings_command.command("set")
@click.argument("key")
@click.argument("value")
def set_command(key: str, value: str) -> None:
    """Set KEY to VALUE in the user's settings file."""
    from thinkback.settings import Layers

    parsed = Layers().set("user", key, value).entries[0].value
    path, values = _user_file(f"{key} = {_toml(parsed)}")
    _write(path, {**values, key: parsed})
    terminal.out(f"{key} = {shown(parsed)} in {path}")


@settings_command.command("unset")
@click.argument("key")
def unset_command(key: str) -> None:
    """Take KEY out of the user's settings file."""
    from thinkback.settings import find

    name = find(key).name
    path, values = _user_file(f"nothing for {key}")
    if name in values:
        _write(path, {known: value for known, value in values.items() if known != name})
    terminal.out(f"{name} is not set in {path}")


def _found(endpoint: str, session: str, db: str) -> dict[str, Found]:
    """Per key the value in force and its layer."""
    from thinkback.rules import load_rulebook
    from thinkback.session import config
    from thinkback.settings import KEYS, Layers, parse_user_file

    file = config.user_settings_file()
    layers = Layers().replace("user", parse_user_file(*file) if file else {})
    if session:
        with existing_log(db) as store:
            layers = store.session(store.find(session).name).layers
    data: Mapping[str, Any] = {}
    if endpoint:
        data = load_rulebook(config.user_rule_files()).endpoint(endpoint).settings
    return {key: layers.origin(key, data) for key in KEYS}


def shown(value: Value | None) -> str:
    """A value for people."""
    from thinkback.settings import to_text

    return "(unset)" if value is None else to_text(value)


# -- the file --------------------------------------------------------------------------------------------------------


def _user_file(wanted: str) -> tuple[Path, dict[str, Value]]:
    """The file and its values. Raises ``SettingError`` where writing it would lose something."""
    from thinkback.session import config
    from thinkback.settings import parse_user_file

    path = config.config_dir() / "settings.toml"
    file = config.user_settings_file()
    if file is None:
        return path, {}
    values = dict(parse_user_file(*file))
    if "".join(render(values).split()) != "".join(file[1].split()):
        raise SettingError(
            f"{path} has comments or a form of its own, which writing it would lose",
            next_actions=(f"edit it yourself: {wanted}",),
        )
    return path, values


def _write(path: Path, values: Mapping[str, Value]) -> None:
    """Replace the file whole: a reader sees the old one or the new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(render(values), encoding="utf-8")
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def render(values: Mapping[str, Value]) -> str:
    """``values`` as TOML, a table per group, in the order they are in."""
    groups: dict[str, list[str]] = {}
    for key, value in values.items():
        group, _, name = key.rpartition(".")
        groups.setdefault(group, []).append(f"{name} = {_toml(value)}\n")
    return "\n".join(f"[{group}]\n{''.join(lines)}" for group, lines in groups.items())


def _toml(value: Value) -> str:
    from thinkback.settings import to_text

    return f'"{value}"' if isinstance(value, str) else to_text(value)
