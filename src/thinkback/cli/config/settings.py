"""``settings``: what can be set, what is in force, and the user's settings file.

The file is changed where it is asked for, and nowhere else: its comments stay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import db_option, existing_log, json_option, opened
from thinkback.session.destination import Destination, destination_of

if TYPE_CHECKING:
    from thinkback.errors import RuleFileError
    from thinkback.settings import Value
    from thinkback.turn.effects import Effect


_ENABLED, _EFFORT = _ALWAYS = ("reasoning.enabled", "reasoning.effort")
"""What is listed in any case."""


class _Settings(click.Group):
    """Says what to type to somebody who gives a setting where a command is expected."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from thinkback.settings import KEYS

        key, *value = args
        if key in KEYS:
            if value:
                ctx.fail(f"{key} is a setting: `thinkback settings set {key} {value[0]}`")
            ctx.fail(f"{key} is a setting: `thinkback settings get {key}`")
        return super().resolve_command(ctx, args)


@click.group("settings", cls=_Settings, invoke_without_command=True, short_help="List, read and write settings.")
@click.option(
    "--endpoint",
    metavar="ID",
    default="",
    shell_complete=complete.endpoints,
    help="Include the settings of this endpoint.",
)
@click.option(
    "--model",
    metavar="NAME",
    default="",
    shell_complete=complete.models,
    help="Apply the endpoint's rule row for this model.",
)
@click.option(
    "--session",
    metavar="NAME",
    default="",
    shell_complete=complete.sessions,
    help="Include the settings of this session.",
)
@click.option("--all", "everything", is_flag=True, help="List every setting, with its help and its allowed values.")
@db_option
@json_option
@click.pass_context
def settings_command(
    ctx: click.Context, endpoint: str, model: str, session: str, everything: bool, db: str, as_json: bool
) -> None:
    """List the settings that somebody set, and those that the endpoint decides: value, source, effect.

    With an endpoint and a model (given here, or those of the
    session or the default profile), the values are those of the next request.
    """
    if ctx.invoked_subcommand is not None:
        return
    from thinkback.session.config import config_dir

    found = _found(endpoint, model, session, db)
    if as_json:
        from thinkback.settings import find

        keys = map(find, found)
        terminal.print_json(
            [{**_as_json(found[key.name]), "allowed": list(key.allowed), "help": key.help} for key in keys]
        )
        return
    print_settings(found, everything=everything)
    if not everything:
        terminal.out(f"your settings file: {config_dir() / 'settings.toml'}")
        terminal.out(f"--all lists all {len(found)} settings, with their help and allowed values")


def _as_json(effect: Effect) -> dict[str, object]:
    scopes = [{"scope": scope.name, "effect": scope.effect, "by": scope.by} for scope in effect.scopes]
    return {
        "key": effect.key,
        "value": effect.value,
        "layer": effect.layer,
        "by": effect.by,
        "effect": scopes,
        "changes": dict(effect.changes),
    }


def print_settings(found: Mapping[str, Effect], *, everything: bool) -> None:
    """Settings with value in force, who decides it, and what it does; ``everything``: each, with its help."""
    from thinkback.settings import find

    pen = terminal.pen(sys.stdout)
    listed = [*found.values()] if everything else _notable(found)
    rows = [(effect.key, terminal.clean(in_force(effect, found)), effect.by) for effect in listed]
    heading, *lines = terminal.table([("setting", "value", "decided by"), *rows])
    terminal.out(pen(heading, "dim"))
    for line, effect in zip(lines, listed, strict=True):
        terminal.out(pen(line, "bold") if effect.layer != "built-in" else line)
        if not everything:
            if effect.scopes:
                terminal.out(pen(terminal.wrap(terminal.clean(str(effect)), 2), "dim"))
            continue
        key = find(effect.key)
        for told in effect_lines(effect):
            terminal.out(told)
        terminal.out(pen(terminal.wrap(f"{key.help} Allowed: {', '.join(key.allowed)}.", 2), "dim"))


def _notable(found: Mapping[str, Effect]) -> list[Effect]:
    """What somebody set, then whether and how much the model thinks, then what a rule decides in its own way."""
    from thinkback.settings import find
    from thinkback.settings.layers import WRITABLE
    from thinkback.settings.registry import BEGUN_WITH

    others = [effect for effect in found.values() if effect.key != BEGUN_WITH]
    is_set = [effect for effect in others if effect.layer in WRITABLE]
    always = [found[key] for key in _ALWAYS]
    decided = [
        effect
        for effect in others
        if effect.by not in ("built-in", effect.layer) and effect.value != find(effect.key).default
    ]
    return list({effect.key: effect for effect in (*is_set, *always, *decided)}.values())


def in_force(effect: Effect, found: Mapping[str, Effect]) -> str:
    """The value for people: where no effort is said, a model that is to think does so all the same."""
    from thinkback.settings.layers import WRITABLE

    thinks = found[_ENABLED].value is True and effect.layer not in WRITABLE
    if effect.key == _EFFORT and effect.value == "none" and thinks:
        return "none said (it thinks)"
    return shown(effect.value)


def effect_lines(effect: Effect) -> Iterator[str]:
    """What happens, where it differs by scope; of an unset setting also what each value would change."""
    if effect.scopes:
        yield terminal.wrap(terminal.clean(str(effect)), 2)
    if effect.value is None:
        for value, what in effect.changes.items():
            yield terminal.wrap(terminal.clean(f"{value}: {what}"), 4)


@settings_command.command("get")
@click.argument("key", shell_complete=complete.settings)
@json_option
@click.pass_context
def get_command(ctx: click.Context, key: str, as_json: bool) -> None:
    """Print the value in force of KEY."""
    from thinkback.settings import find
    from thinkback.turn.effects import Effect

    outer = ctx.parent.params if ctx.parent else {}
    name = find(key).name
    found = _found(*(outer[option] for option in ("endpoint", "model", "session", "db")))
    effect = found.get(name) or Effect(name, None, "built-in", "built-in")
    if as_json:
        terminal.print_json(_as_json(effect))
    else:
        terminal.out(shown(effect.value))


@settings_command.command("set")
@click.argument("key", shell_complete=complete.settings)
@click.argument("value", shell_complete=complete.values)
@json_option
def set_command(key: str, value: str, as_json: bool) -> None:
    """Set KEY to VALUE in the user's settings file."""
    from thinkback.session.config import user_settings
    from thinkback.settings import Layers, find

    parsed = Layers().set("user", key, value).entries[0].value
    name = find(key).name
    path = user_settings.change({name: parsed})
    told = {"key": name, "value": parsed, "file": str(path)}
    terminal.tell(told, f"{name} = {shown(parsed)} in {path}", as_json=as_json)
    _print_faults(user_settings.read()[1])


@settings_command.command("unset")
@click.argument("key", shell_complete=complete.settings)
@json_option
def unset_command(key: str, as_json: bool) -> None:
    """Remove KEY from the user's settings file."""
    from thinkback.session.config import user_settings

    name, path, was_there = user_settings.unset(key)
    text = f"removed {name} from {path}" if was_there else f"{path} does not set {name}: nothing was changed"
    terminal.tell({"key": name, "was_set": was_there, "file": str(path)}, text, as_json=as_json)
    _print_faults(user_settings.read()[1])


def _print_faults(faults: Sequence[RuleFileError]) -> None:
    """Report the entries of the settings file that do not hold, and how to take them out."""
    for fault in faults:
        terminal.complain(f"{fault.message}\n  - `thinkback settings unset {fault.details['key']}` removes it")


def _found(endpoint: str, model: str, session: str, db: str) -> dict[str, Effect]:
    """Per key the value in force and who decides it: of a session, or of the one that ``run`` would make."""
    import thinkback
    from thinkback.errors import ThinkbackError
    from thinkback.session.config import user_settings
    from thinkback.session.profiles.files import SETTING

    values, faults = user_settings.read()
    _print_faults(faults)
    given = Destination(endpoint, model)
    if session:
        with existing_log(db, values) as store:
            info = store.find(session)
            return dict(opened(store, info.name, destination_of(store, info, store.commits(info.id), given)).effects)
    with thinkback.open(":memory:", settings=values) as store:
        try:
            return dict(opened(store, "settings", destination_of(store, None, (), given)).effects)
        except ThinkbackError as error:
            if SETTING not in values:
                raise
            terminal.complain(f"{error.message}\n  - `thinkback settings unset {SETTING}` removes the default profile")
    left = {key: value for key, value in values.items() if key != SETTING}
    with thinkback.open(":memory:", settings=left) as store:
        return dict(opened(store, "settings", given).effects)


def shown(value: Value | None) -> str:
    """A value for people."""
    from thinkback.settings import to_text

    return "(unset)" if value is None else to_text(value)
