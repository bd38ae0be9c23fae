"""``apps``: the apps of this machine, and what one of them says."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import json_option
from thinkback.session.destination import Destination

if TYPE_CHECKING:
    from thinkback.log.protocol import SessionInfo
    from thinkback.rules import Rulebook
    from thinkback.session.apps import Listed
    from thinkback.session.session import Session
    from thinkback.settings.apps import App


@click.command("apps", short_help="List the apps, or show one.")
@click.argument("name", default="", shell_complete=complete.apps)
@json_option
def apps_command(name: str, as_json: bool) -> None:
    """List the apps: the built-in ones, and yours (apps/*.toml in the configuration directory), which override them.

    With NAME, show that app.
    """
    from thinkback.session import apps

    if name:
        app = apps.find(name)
        if as_json:
            terminal.print_json(_as_json(app))
        else:
            _show(app)
        return
    found = apps.listed()
    if as_json:
        terminal.print_json([_listed_json(row) for row in found])
    else:
        print_apps(found)


def print_apps(found: list[Listed]) -> None:
    """A line for each: how it is called, what it is for, and what is wrong with its file."""
    pen = terminal.pen(sys.stdout)
    width = max(len(row.id) for row in found)
    for row in found:
        told = row.app.description or row.app.name if row.app is not None else row.fault
        own = pen(" (yours)", "dim") if row.file else ""
        painted = terminal.clean(told) if row.app is not None else pen(terminal.clean(told), "red")
        terminal.out(f"{pen(terminal.pad(row.id, width), 'bold')}  {painted}{own}")


def app_of(info: SessionInfo | None, place: Destination) -> str:
    """The app of a session that there is, where ``place`` leaves something to it."""
    is_said = bool(place.model and (place.endpoint or place.base_url))
    return "" if info is None or is_said else info.settings.get("session.app", "")


def placed(place: Destination, app: str, book: Rulebook) -> Destination:
    """``place`` with the endpoint and the first model of ``app`` where nothing is said; without an app as it is."""
    if not app:
        return place
    from thinkback.session import apps

    found = apps.find(app)
    endpoint = apps.endpoint_at(found, place.endpoint, place.base_url, book)
    return place._replace(endpoint=endpoint, model=place.model or found.default_model)


# What tools do without a person's word, by ``permissions.mode``.
_WORD = {
    "auto": "every tool runs without asking",
    "ask": "reads, and asks before it writes or runs",
    "read_only": "reads; no other tool runs",
}


def work_of(session: Session) -> str:
    """Where the tools of the session's app work, what they may do, and what changes that; nothing without tools."""
    app = session.app
    if app is None or not app.tools:
        return ""
    settings = session.settings
    apart = ", but for permissions.rules" if settings.permissions_rules else ""
    others = " or ".join(mode for mode in _WORD if mode != settings.permissions_mode)
    return (
        f"{app.name} in {_here()}: {_WORD[settings.permissions_mode]}{apart} "
        f"(/set permissions.mode {others} changes it)"
    )


def _here() -> str:
    """The working directory, as a shell's prompt has it."""
    here, home = os.getcwd(), os.path.expanduser("~")
    return f"~{here[len(home) :]}" if f"{here}/".startswith(f"{home.rstrip('/')}/") and home != "/" else here


@contextmanager
def tools_of(session: Session) -> Iterator[dict[str, Any]]:
    """The tools of the session's app as an option of its calls, while in it; nothing where it has none."""
    app = session.app
    if app is None or not app.tools:
        yield {}
        return
    from thinkback.session.agents.toolbox import toolbox

    with toolbox(session, app.tools) as tools:
        yield {"tools": tools}


def _show(app: App) -> None:
    pen = terminal.pen(sys.stdout)
    terminal.out(pen(terminal.clean(app.name), "bold") + (f"  {terminal.clean(app.description)}"))
    for what, told in _facts(app):
        terminal.out(f"{pen(f'{what:9}', 'dim')} {terminal.clean(told)}")
    if app.system_prompt:
        terminal.out()
        terminal.out(terminal.clean(app.system_prompt.strip()))


def _facts(app: App) -> list[tuple[str, str]]:
    from thinkback.settings import to_text

    facts = [
        ("endpoint", app.endpoint or "yours"),
        ("models", ", ".join(app.models) or "yours"),
        ("tools", ", ".join(app.tools)),
        ("features", ", ".join(app.features)),
        ("settings", ", ".join(f"{key} = {to_text(value)}" for key, value in app.settings.items())),
    ]
    return [(what, told) for what, told in facts if told]


def _listed_json(row: Listed) -> dict[str, Any]:
    if row.app is None:
        return {"id": row.id, "file": row.file, "fault": row.fault}
    return {"id": row.id, "file": row.file or None, "name": row.app.name, "description": row.app.description}


def _as_json(app: App) -> dict[str, Any]:
    import msgspec

    # what servers are started with may hold keys
    told = {field: getattr(app, field) for field in app.__struct_fields__ if field != "servers"}
    made: dict[str, Any] = msgspec.to_builtins({**told, "servers": list(app.servers)})
    return made
