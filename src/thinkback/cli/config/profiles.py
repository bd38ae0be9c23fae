"""``profile``: names for endpoint, model and settings; made, shown, deleted, and taken as the default."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import chosen, db_option, existing_log, json_option, opened, pairs, place_options
from thinkback.session.destination import Destination, destination_of

if TYPE_CHECKING:
    from thinkback.settings.profiles import Profile


@click.group("profile", short_help="List, show, save and delete profiles.")
def profile_command() -> None:
    """List, show, save and delete profiles. A profile is a name for an endpoint, a model and settings, in the file
    profiles/NAME.toml of the configuration directory. `run` and `chat` take it as --profile NAME.
    """


@profile_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the profiles; the default ones are marked."""
    from thinkback.errors import ThinkbackError
    from thinkback.session.profiles import files

    names, defaults = files.listed(), files.defaults()
    if as_json:
        terminal.print_json([{"name": name, "default": name in defaults} for name in names])
        return
    pen, width = terminal.pen(sys.stdout), max(map(len, names), default=0)
    for name in names:
        try:
            told = _summary(files.read(name))
        except ThinkbackError as error:
            told = pen(terminal.clean(error.message), "red")
        mark = "*" if name in defaults else " "
        terminal.out(f"{mark} {pen(terminal.pad(name, width), 'bold')}  {told}")
    if not names:
        terminal.note("no profiles yet: `thinkback profile save NAME --endpoint ID --model NAME` makes one")


@profile_command.command("show")
@click.argument("name", shell_complete=complete.profiles)
@json_option
def show_command(name: str, as_json: bool) -> None:
    """Show the profile NAME."""
    from thinkback.session.profiles import files

    said = files.described(files.read(name))
    if as_json:
        terminal.print_json({"name": name, **dict(said)})
        return
    for line in terminal.table([(key, terminal.clean(_shown(value))) for key, value in said]):
        terminal.out(line)


@profile_command.command("save")
@click.argument("name")
@click.option(
    "--session",
    "-s",
    shell_complete=complete.sessions,
    metavar="NAME",
    default="",
    help="Take endpoint, model and settings of this session.",
)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Include this setting; repeatable.")
@click.option(
    "--target", "targets", metavar="NAME", multiple=True, help="Include this profile in a rotation; repeatable."
)
@click.option(
    "--kind",
    type=click.Choice(["failover", "round-robin"]),
    default="failover",
    help="How the rotation chooses among the --target profiles.",
)
@place_options
@db_option
@json_option
def save_command(name: str, as_json: bool, **given: Any) -> None:
    """Save the profile NAME from the options given here; without options, from a session (default: the one used last).

    An existing file keeps its comments. Only the name of a key (--key-env) is saved, never the key.
    """
    from thinkback.session.profiles import files
    from thinkback.settings.profiles import PLACE

    is_said = any(map(_is_typed, (*PLACE, "settings", "targets")))
    if is_said and given["session"]:
        raise click.UsageError("--session saves the session's own settings: give no other option with it")
    profile = _from_options(given) if is_said else _of_session(given["db"], given["session"])
    file = str(files.write(name, profile))
    terminal.tell({"name": name, "file": file}, f"saved in {terminal.clean(file)}", as_json=as_json)


@profile_command.command("delete")
@click.argument("name", shell_complete=complete.profiles)
@json_option
def delete_command(name: str, as_json: bool) -> None:
    """Delete the profile NAME."""
    from thinkback.session.profiles import files

    files.delete(name)
    terminal.tell({"name": name}, f"{name} is deleted", as_json=as_json)


@profile_command.command("default")
@click.argument("names", nargs=-1, shell_complete=complete.profiles)
@click.option("--none", "is_none", is_flag=True, help="Use no default profile.")
@json_option
def default_command(names: tuple[str, ...], is_none: bool, as_json: bool) -> None:
    """Use these profiles in every session that has none of its own; without NAMES, show the default profiles.

    The names are written to the settings file, which keeps its comments.
    """
    from thinkback.session.profiles import files

    if names and is_none:
        raise click.UsageError("--none takes no NAMES")
    if names or is_none:
        path = str(files.make_default(names))
        text = default_text(names, path)
        terminal.tell({"default": list(names), "file": path}, text, as_json=as_json)
    else:
        found = files.defaults()
        terminal.tell({"default": list(found)}, ", ".join(found) or "none", as_json=as_json)


def default_text(names: Sequence[str], file: str) -> str:
    """Report the default that ``file`` now names."""
    if not names:
        return f"Removed the default profile from {terminal.clean(file)}."
    which = f"profile{'s' if len(names) > 1 else ''} {', '.join(names)}"
    return f"Set the default to {which} in {terminal.clean(file)}."


def _is_typed(option: str) -> bool:
    """Whether the option is on the command line; a variable in the environment says nothing about a profile."""
    return click.get_current_context().get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE


def _from_options(given: dict[str, Any]) -> Profile:
    from thinkback.session import config
    from thinkback.session.profiles import rotation
    from thinkback.session.profiles.moving import moved, spot_of
    from thinkback.session.requests import EndpointConfig
    from thinkback.settings import Layers
    from thinkback.settings.profiles import PLACE, Profile

    layers = Layers().replace("profile", dict(pairs("--set", given["settings"])))
    where: dict[str, Any] = {key: given[key] if _is_typed(key) else "" for key in PLACE}
    profile = Profile(
        given["kind"] if given["targets"] else "model",
        **where,
        targets=given["targets"],
        settings={entry.key: entry.value for entry in layers.entries},
    )
    rotation.targets(profile)
    if profile.endpoint or profile.base_url:
        book = config.rulebook()
        place = moved(EndpointConfig(model=""), book, spot_of(profile))
        if place.is_complete:
            place.target(book)
    return profile


def _of_session(db: str, name: str) -> Profile:
    from thinkback.session.profiles.profiles import saved

    with existing_log(db) as store:
        info = chosen(store, name)
        place = destination_of(store, info, store.commits(info.id), Destination())
        return saved(opened(store, info.name, place).conversation)


def _summary(profile: Profile) -> str:
    where = ", ".join(profile.targets) or f"{profile.endpoint or profile.base_url} {profile.model}".strip()
    kind = f"{profile.kind}: " if profile.targets else ""
    settings = ", ".join(f"{key}={_shown(value)}" for key, value in profile.settings.items())
    return terminal.clean("; ".join(filter(None, (kind + where, settings))))


def _shown(value: object) -> str:
    from thinkback.settings import to_text

    return ", ".join(map(str, value)) if isinstance(value, list) else to_text(value)
