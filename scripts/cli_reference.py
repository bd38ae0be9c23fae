"""Writes the reference part of docs/cli.md, and the manual page docs/thinkback.1, from the commands' own help.

``make docs`` runs it, tests check both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from thinkback.cli.app import SECTIONS, group

MANUAL = Path(__file__).parents[1] / "docs" / "thinkback.1"
PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
MARK = "<!-- everything below is the commands' own help: make docs -->\n"


def reference() -> str:
    """The help of every command, 80 columns wide, as Markdown."""
    return "\n".join(f"## `{path}`\n\n```text\n{text}\n```\n" for path, text in _helps(group, "thinkback", None))


_HEADINGS = {
    "Options:": "OPTIONS",
    "Exit codes:": "EXIT STATUS",
    "Environment:": "ENVIRONMENT",
}


def page() -> str:
    """The whole page: what stands above the mark, then the reference."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return f"{head}{MARK}\n{reference()}\n"


def manual() -> str:
    """The same as a manual page, for ``man``: a section for each command."""
    lines = [
        '.TH THINKBACK 1 "" "thinkback" "User Commands"',
        ".SH NAME",
        f"thinkback \\- {_roff(group.get_short_help_str(200)).rstrip('.')}",
    ]
    for path, text in _helps(group, "thinkback", None):
        if path == "thinkback":
            lines += _sections(text)
            continue
        heading = _roff(path.removeprefix("thinkback ").upper())
        lines += [f'.SH "{heading}"', ".nf", *map(_roff, text.splitlines()), ".fi"]
    return "\n".join(lines) + "\n"


def _sections(text: str) -> Iterator[str]:
    """The help of all commands in the sections that readers of manual pages look for."""
    usage, _, rest = text.partition("\n")
    yield from (".SH SYNOPSIS", ".nf", _roff(usage.removeprefix("Usage: ")), ".fi", ".SH DESCRIPTION", ".nf")
    titles = {f"{title}:": title for title in SECTIONS}
    for line in rest.strip("\n").splitlines():
        if (title := titles.get(line.strip())) is not None:
            first = ['.SH "COMMANDS"'] if title == next(iter(SECTIONS)) else []
            yield from (".fi", *first, f'.SS "{title}"', ".nf")
        elif (heading := _HEADINGS.get(line.strip())) is not None:
            yield from (".fi", f'.SH "{heading}"', ".nf")
        else:
            yield _roff(line)
    yield ".fi"


def _roff(line: str) -> str:
    """A line as it is, where ``man`` would take a letter for an order."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def _helps(command: click.Command, path: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    # With the settings of a call: a command keeps the help option that it is first asked for.
    context = click.Context(
        command,
        info_name=path.split()[-1],
        parent=parent,
        terminal_width=80,
        max_content_width=80,
        **command.context_settings,
    )
    yield path, command.get_help(context).rstrip()
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            sub = command.get_command(context, name)
            if sub is not None:
                yield from _helps(sub, f"{path} {name}", context)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    MANUAL.write_text(manual(), encoding="utf-8")
