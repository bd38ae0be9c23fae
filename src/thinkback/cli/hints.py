"""The commands that errors and notes name, so that they work when pasted: quoted, and of the log that is meant.

The library names commands as everybody knows them (`thinkback fsck`). ``Given`` puts in what this call was given to say
which log or gateway it is about; ``for_chat`` says the same in the words of a chat. The context of a command (``obj``)
has its ``Given``.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import click

from thinkback.errors import AGAIN, NEXT, OTHER_MODEL, WHY

if TYPE_CHECKING:
    from thinkback.errors import ThinkbackError

_PLACES = ("--db", "--config", "--store")
_COMMAND = re.compile(r"`thinkback ([a-z-]+(?: [a-z-]+)*)")
_ANY = re.compile(r"`thinkback ([^`]*)`|thinkback (keys set \S+)")
# What a next action says to programs beside what it says to people.
_FOR_PROGRAMS = re.compile(r" \(in a program [^)]*\)|, in a program .*$")
_PASSWORD = re.compile(r"(://[^:/@]*:)[^/@]*(?=@)|(password=)[^&]*")
_SLASHES: Mapping[str, str] = MappingProxyType(
    {"sessions": "/sessions", "apps": "/app", "endpoints": "/endpoint", "why --next": "/why next"}
)
_CHAT: Mapping[str, str] = MappingProxyType(
    {
        AGAIN: "/retry asks again",
        WHY: "/why shows what was sent and why",
        OTHER_MODEL: "/model NAME changes the model; then /retry",
    }
)


class Given(NamedTuple):
    """Options of a call that say which log or gateway it is about, and their values."""

    options: tuple[tuple[str, str], ...] = ()

    def __call__(self, text: str) -> str:
        """``text``, each command in it with those of the options that it takes and does not name."""
        return _COMMAND.sub(self._completed, text) if self.options else text

    def _completed(self, found: re.Match[str]) -> str:
        words = found[1].split()
        depth, takes = _command(words)
        rest = found.string[found.end() :].partition("`")[0].split()
        missing = [(option, value) for option, value in self.options if option in takes and option not in rest]
        own = [f"{option} {shlex.quote(value)}" for option, value in missing]
        return " ".join(["`thinkback", *words[:depth], *own, *words[depth:]])


def given(arguments: Sequence[str]) -> Given:
    """What ``arguments`` say; else the log of ``THINKBACK_DB``, which may be set for this one call."""
    found = {}
    for at, word in enumerate(arguments):
        if word == "--":
            break
        option, equals, value = word.partition("=")
        if option in _PLACES:
            found[option] = value if equals else "".join(arguments[at + 1 : at + 2])
    found.setdefault("--db", os.environ.get("THINKBACK_DB", ""))
    return Given(tuple((option, _PASSWORD.sub(r"\1\2...", value)) for option, value in found.items() if value))


def command(line: str, *names: str, **options: str) -> str:
    """``thinkback LINE`` with arguments and options, as a shell takes it, in backquotes."""
    return _here()(_quoted(line, *names, **options))


def _quoted(line: str, *names: str, **options: str) -> str:
    said = [f"--{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}" for name, value in options.items()]
    dashes = ["--"] if any(name.startswith("-") for name in names) else []
    return " ".join([f"`thinkback {line}", *said, *dashes, *map(shlex.quote, names)]) + "`"


def for_shell(error: ThinkbackError, session: str) -> ThinkbackError:
    """``error`` with what to do next about a turn in ``session``; whoever prints it puts in which log is meant."""
    said = {
        AGAIN: f"{_quoted('chat', session=session)}, then /retry, asks again",
        WHY: f"{_quoted('why', session)} shows what was sent and why",
        NEXT: f"{_quoted('why --next', session)} shows the next one",
    }
    error.next_actions = tuple(said.get(action, action) for action in error.next_actions)
    return error


def for_chat(error: ThinkbackError) -> ThinkbackError:
    """``error`` with next actions that can be typed in a chat; what only a shell does is called so."""
    said = (_FOR_PROGRAMS.sub("", _CHAT.get(action, action)) for action in error.next_actions)
    error.next_actions = tuple(_ANY.sub(_slash, action) for action in said)
    return error


def _slash(found: re.Match[str]) -> str:
    line = found[1] or found[2]
    return f"`{_SLASHES[line]}`" if line in _SLASHES else f"{_here()(f'`thinkback {line}`')} (in a shell)"


def _here() -> Given:
    context = click.get_current_context(silent=True)
    return (context.find_object(Given) if context is not None else None) or Given()


def _command(words: Sequence[str]) -> tuple[int, frozenset[str]]:
    """How many of ``words`` name a command, and the options that it takes."""
    from thinkback.cli.app import group

    found: click.Command = group
    depth = 0
    while isinstance(found, click.Group) and depth < len(words):
        below = found.get_command(click.Context(found), words[depth])
        if below is None:
            break
        found, depth = below, depth + 1
    return depth, frozenset(option for parameter in found.params for option in parameter.opts)
