"""Writes the reference part of docs/cli.md from the commands' own help. ``make docs`` runs it, a test checks it."""

from __future__ import annotations

from pathlib import Path

import click

from thinkback.cli.app import group

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
MARK = "<!-- everything below is the commands' own help: make docs -->\n"


def reference() -> str:
    """The help of every command, 80 columns wide, as Markdown."""
    return "\n".join(_help(group, "thinkback", None))


def page() -> str:
    """The whole page: what stands above the mark, then the reference."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return f"{head}{MARK}\n{reference()}\n"


def _help(command: click.Command, path: str, parent: click.Context | None) -> list[str]:
    # With the settings of a call: a command keeps the help option that it is first asked for.
    context = click.Context(
        command,
        info_name=path.split()[-1],
        parent=parent,
        terminal_width=80,
        max_content_width=80,
        **command.context_settings,
    )
    pieces = [f"## `{path}`\n\n```text\n{command.get_help(context).rstrip()}\n```\n"]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            sub = command.get_command(context, name)
            if sub is not None:
                pieces += _help(sub, f"{path} {name}", context)
    return pieces


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
