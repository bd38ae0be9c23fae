"""``acp``: an Agent Client Protocol server over standard input and output, for editors.

The package ``agent-client-protocol`` (``acp``) is imported when the server starts, never before.
"""

from __future__ import annotations

from typing import Any

import click

from thinkback.cli import complete
from thinkback.cli.options import (
    DIALECTS,
    db_option,
    log_path,
    open_log,
    place_in,
    place_options,
    profile_option,
)
from thinkback.errors import MissingPackageError, install_hint
from thinkback.session.destination import Destination

_HELP = f"""\
Serve an agent to an editor, in the Agent Client Protocol over standard input and output.

An editor such as Zed starts this command. Each conversation is a session of the log; its workspace is the directory
that the editor names. The editor shows reasoning as thoughts. Keys come from the editor's environment.

{DIALECTS}
"""


@click.command("acp", short_help="Serve an agent to editors (Agent Client Protocol).", help=_HELP)
@click.option(
    "--app",
    shell_complete=complete.apps,
    metavar="NAME",
    default="coding",
    show_default=True,
    help="App (prompt and tools) of new conversations; `thinkback apps` lists them.",
)
@profile_option
@click.option(
    "--offer",
    "offered",
    multiple=True,
    metavar="ENDPOINT/MODEL",
    help="Another model that the editor lets you switch to; repeatable.",
)
@place_options
@db_option
def acp_command(app: str, profile: str, offered: tuple[str, ...], db: str, **given: Any) -> None:
    """Serve until standard input ends."""
    try:
        import acp as library  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            "an agent for editors needs the package agent-client-protocol, which is not installed",
            details={"package": "agent-client-protocol", "extra": "acp"},
            next_actions=(install_hint("acp"),),
        ) from error
    from thinkback.servers import stdio
    from thinkback.servers.acp.agent import Start
    from thinkback.servers.acp.options import read_model
    from thinkback.servers.acp.serving import serve

    for name in offered:
        read_model(name)
    place = place_in(given)
    _check_start(app, place)
    with open_log(log_path(db), asks=True) as store:
        stdio.serve(serve(store, Start(place, profile, app, offered)))


def _check_start(app: str, place: Destination) -> None:
    """Raise ``NotFoundError`` for an app or endpoint that does not exist: an editor would show it only later."""
    from thinkback.session import apps, config

    if app:
        apps.find(app)
    if place.endpoint and not place.base_url:
        config.rulebook().endpoint(place.endpoint)
