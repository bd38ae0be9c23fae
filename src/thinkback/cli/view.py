"""``view``: the log in a browser, on a loopback address, for whoever has the link.

What the viewer needs is imported when it starts, never before.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import db_option, existing_log
from thinkback.errors import MissingPackageError, install_hint


@click.command("view", short_help="Look at the log in a browser.")
@click.argument("session", default="", shell_complete=complete.sessions)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port; a free one unless given."
)
@click.option("--no-browser", is_flag=True, help="Print the link and open nothing.")
@click.option("--write", is_flag=True, help="Allow changes: annotate, edit, title, branch, redact.")
@db_option
def view_command(session: str, port: int, no_browser: bool, write: bool, db: str) -> None:
    """Show the log as pages in the browser: sessions, conversations, and which reasoning was sent back, and why.

    SESSION opens its conversation, else the list of sessions. The pages are served on 127.0.0.1 until Ctrl-C, to the
    browser that opens the printed link: it works once, within a minute. Without --write no conversation is changed; a
    search brings the log's index of words up to date.
    """
    try:
        import jinja2  # noqa: F401
        import nh3  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            f"the viewer needs the package {error.name}, which is not installed",
            details={"package": error.name, "extra": "viewer"},
            next_actions=(install_hint("viewer"),),
        ) from error
    import tempfile

    from thinkback.servers.viewer.serving import serve

    with existing_log(db) as store, tempfile.TemporaryDirectory(prefix="thinkback-view-") as private:
        path = f"/session/{store.find(session).id}" if session else "/"

        def told(link: str) -> None:
            terminal.out(link)
            terminal.note("Ctrl-C ends it; the link works once, within a minute")
            if not no_browser:
                import webbrowser

                webbrowser.open(_way_in(link, private))

        serve(store, port, path, told, writes=write)


def _way_in(link: str, private: str) -> str:
    """A file that leads to ``link``, as an address: others can read what a browser is started with."""
    way = os.path.join(private, "open.html")
    with open(os.open(way, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={link}">'
            f'<title>thinkback</title><a href="{link}">To the viewer</a>'
        )
    return Path(way).as_uri()
