"""``/profile``: what a session is set to, kept under a name and taken on again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from thinkback.cli import terminal
from thinkback.cli.chat.slash.row import Slash, words
from thinkback.cli.config.profiles import default_text
from thinkback.session.profiles.files import SETTING
from thinkback.settings.profiles import KINDS, names_in

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat

PROFILE = "profile [list] | save NAME [failover | round-robin NAME...] | load NAME... | delete NAME | default [NAME...]"
_VERBS = ("save", "load", "list", "delete", "default")


def profile(chat: Chat, rest: str) -> None:
    """List, save, load, delete, or say which holds where a session has none of its own."""
    profiles = chat.session.profiles
    match words(rest, PROFILE):
        case [] | ["list"]:
            _list(chat)
        case ["save", name]:
            terminal.out(f"saved in {terminal.clean(str(profiles.save(name)))}")
        case ["save", name, ("failover" | "round-robin") as kind, *targets] if targets:
            terminal.out(f"saved in {terminal.clean(str(profiles.save_rotating(name, kind, targets)))}")
        case ["load", *names] if names:
            profiles.load(*names)
            terminal.out(f"from the next request on: {', '.join(names)}")
        case ["delete", name]:
            profiles.delete(name)
            terminal.out(f"{name} is deleted")
        case ["default", *names]:
            file = profiles.default(*names)
            terminal.out(default_text(names, str(file)))
        case _:
            raise click.UsageError(f"usage: /{PROFILE}")


def _followed(chat: Chat) -> tuple[str, ...]:
    return names_in(str(chat.session.layers.origin(SETTING).value or ""))


def _list(chat: Chat) -> None:
    """Those there are, the ones that are followed marked."""
    followed, pen = _followed(chat), terminal.pen(sys.stdout)
    names = chat.session.profiles.list()
    for name in names:
        mark = "*" if name in followed else " "
        terminal.out(pen(terminal.clean(f"{mark} {name}"), *(("green",) if name in followed else ())))
    if not names:
        terminal.note("no profiles yet; /profile save NAME saves this session's settings as one")


def _complete(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    match before:
        case []:
            return _VERBS
        case ["save", _]:
            return KINDS[1:]
        case ["save" | "delete"] | ["load" | "default", *_] | ["save", _, "failover" | "round-robin", *_]:
            return chat.session.profiles.list()
    return ()


HELP = "Save this session's settings as a profile, or load a profile."
ROWS = (Slash("profile", PROFILE, HELP, profile, _complete),)
