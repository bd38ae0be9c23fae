"""The slash commands: how one is described, the table of all, and what is done with a line that begins with ``/``."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat


def nothing(_chat: Chat, _words: Sequence[str]) -> Iterable[str]:
    """What completes a command without arguments."""
    return ()


def no_path(_before: Sequence[str], _begun: str) -> Iterable[str]:
    """What completes a command without files."""
    return ()


class Slash(NamedTuple):
    """One command. ``run`` gets the rest of the line; ``complete`` gets the words before the one under way and says
    what that may be; ``complete_path`` gets the part of a file's name that stands there as well. ``usage`` is without
    the slash; ``help`` is one line.
    """

    name: str
    usage: str
    help: str
    run: Callable[[Chat, str], None]
    complete: Callable[[Chat, Sequence[str]], Iterable[str]] = nothing
    complete_path: Callable[[Sequence[str], str], Iterable[str]] = no_path


@cache
def table() -> dict[str, Slash]:
    """Every command by name, in the order of the help."""
    from thinkback.cli.chat.slash import apps, basics, branches, keeping, looking, places, profiles, settings

    groups = (settings, profiles, places, apps, looking, branches, keeping, basics)
    return {row.name: row for group in groups for row in group.ROWS}


def find(name: str) -> Slash:
    """The command called ``name``. Raises ``click.UsageError`` with the nearest names."""
    rows = table()
    if name in rows:
        return rows[name]
    close = difflib.get_close_matches(name, rows, cutoff=0.65) or [row for row in rows if name and row.startswith(name)]
    hint = f"did you mean {' or '.join(f'/{row}' for row in close)}?" if close else "/help lists them"
    raise click.UsageError(f"there is no command /{name}: {hint}")


def run(chat: Chat, line: str) -> None:
    """Run the command of ``line``."""
    name, _, rest = line.removeprefix("/").partition(" ")
    find(name.strip()).run(chat, rest.strip())


def words(rest: str, usage: str, least: int = 0, most: int = 99) -> list[str]:
    """The words of ``rest``, those in quotation marks as one. Raises ``click.UsageError`` for too few or many."""
    try:
        found = shlex.split(rest)
    except ValueError as error:
        raise click.UsageError(f"{error}: usage is /{usage}") from None
    if not least <= len(found) <= most:
        raise click.UsageError(f"usage: /{usage}")
    return found


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
