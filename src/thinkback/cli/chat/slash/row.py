"""How a slash command is described, and how its words are read."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
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


def words(rest: str, usage: str, least: int = 0, most: int = 99) -> list[str]:
    """The words of ``rest``, those in quotation marks as one. Raises ``click.UsageError`` for too few or many."""
    try:
        found = shlex.split(rest)
    except ValueError as error:
        raise click.UsageError(f"{error}: usage is /{usage}") from None
    if not least <= len(found) <= most:
        raise click.UsageError(f"usage: /{usage}")
    return found
