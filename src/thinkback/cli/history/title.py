"""``title``: what lists call a session."""

from __future__ import annotations

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import db_option, json_option, open_line


@click.command("title", short_help="Give a session a title.")
@click.argument("session", shell_complete=complete.sessions)
@click.argument("text", default="")
@db_option
@json_option
def title_command(session: str, text: str, db: str, as_json: bool) -> None:
    """Set the title of SESSION to TEXT. Without TEXT the model of the session writes the title."""
    from thinkback.session.history.titling import set_title

    with open_line(db, session) as found:
        title = set_title(found, text)
        name = found.name
    if as_json:
        terminal.print_json({"session": name, "title": title})
    else:
        terminal.out(f"{name}: {title}")
