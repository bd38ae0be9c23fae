"""The table of all slash commands, and what is done with a line that begins with ``/``."""

from __future__ import annotations

import difflib
from functools import cache
from typing import TYPE_CHECKING

import click

from thinkback.cli.chat.slash.row import Slash

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat


# What other programs have taught people to type.
_ALSO = {"exit": "quit", "q": "quit"}


@cache
def table() -> dict[str, Slash]:
    """Every command by name, in the order of the help."""
    from thinkback.cli.chat.slash import (
        apps,
        attach,
        basics,
        branches,
        export,
        inspect,
        places,
        profiles,
        screen,
        settings,
    )

    groups = (settings, profiles, places, apps, inspect, branches, attach, export, screen, basics)
    return {row.name: row for group in groups for row in group.ROWS}


def find(name: str) -> Slash:
    """The command called ``name``. Raises ``click.UsageError`` with the nearest names."""
    rows = table()
    if (known := _ALSO.get(name, name)) in rows:
        return rows[known]
    close = difflib.get_close_matches(name, rows, cutoff=0.65) or [row for row in rows if name and row.startswith(name)]
    hint = f"did you mean {' or '.join(f'/{row}' for row in close)}?" if close else "/help lists them"
    raise click.UsageError(f"there is no command /{name}: {hint}")


def is_command(line: str) -> bool:
    """Whether ``line`` is a command. ``//`` begins a message that begins with a slash."""
    return line.startswith("/") and not line.startswith("//")


def run(chat: Chat, line: str) -> None:
    """Run the command of ``line``."""
    name, _, rest = line.removeprefix("/").partition(" ")
    find(name.strip()).run(chat, rest.strip())


def completions(chat: Chat, line: str) -> list[tuple[str, str]]:
    """(word, the part of it that stands there already) for each word that may go on at the end of ``line``."""
    if not line.startswith("/") or "\n" in line:
        return []
    name, space, rest = line[1:].partition(" ")
    if not space:
        return [(row, name) for row in table() if row.startswith(name)]
    row = table().get(name)
    if row is None:
        return []
    *before, begun = rest.split(" ")
    words_before = [word for word in before if word]
    offered = (*row.complete_path(words_before, begun), *row.complete(chat, words_before))
    return [(word, begun) for word in offered if word.startswith(begun)]
