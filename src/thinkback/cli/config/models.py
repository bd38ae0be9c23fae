"""``models``: the models that the catalogue knows at each endpoint."""

from __future__ import annotations

import sys

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import json_option


@click.command("models", short_help="List the known models of the endpoints.")
@click.argument("endpoint", required=False, shell_complete=complete.endpoints)
@json_option
def models_command(endpoint: str | None, as_json: bool) -> None:
    """List the known models of ENDPOINT, or of every endpoint. You can use other models that an endpoint serves, too.

    The list comes from the package and from your own rules.toml; no request is sent.
    """
    from thinkback.session import config

    book = config.rulebook()
    wanted = [book.endpoint(endpoint)] if endpoint else book.endpoints()
    known = {row.id: names for row in wanted if (names := book.served(row.id)) or endpoint}
    if as_json:
        terminal.print_json(known)
        return
    pen = terminal.pen(sys.stdout)
    for id, names in known.items():
        terminal.out(pen(id, "bold"))
        terminal.out(terminal.wrap(", ".join(names) or "no model is known; name one with --model", 2))
