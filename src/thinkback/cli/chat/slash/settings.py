"""``/set``: what is in force and who said so, and changes that act from the next request on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click

from thinkback.cli import terminal
from thinkback.cli.chat.slash.row import Slash, words
from thinkback.cli.config import settings
from thinkback.settings import KEYS, complete, find, to_text
from thinkback.settings.registry import DEFAULT, PARAMS
from thinkback.turn.effects import Effect

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat

USAGE = "set [all | KEY [VALUE | default]] | /set unset KEY | /set modelparam NAME VALUE"


def set_(chat: Chat, rest: str) -> None:
    """List, explain, set, or unset."""
    match _words(rest):
        case []:
            settings.print_settings(chat.session.effects, everything=False)
            terminal.out("/set all lists every setting, /set KEY explains one")
        case ["all"]:
            settings.print_settings(chat.session.effects, everything=True)
        case ["unset"] | ["unset", "modelparam"] | ["modelparam"] | ["modelparam", _]:
            raise click.UsageError(f"usage: /{USAGE}")
        case ["unset", "modelparam", name]:
            chat.session.unset(f"{PARAMS}.{name}")
            _print(chat, f"{PARAMS}.{name}")
        case ["modelparam", name, *value]:
            _change(chat, f"{PARAMS}.{name}", " ".join(value))
        case ["unset", key]:
            chat.session.unset(key)
            _print(chat, key)
        case [key]:
            _explain(chat, find(key).name)
        case [key, *value]:
            _change(chat, key, " ".join(value))


def _words(rest: str) -> list[str]:
    """The words of the line; the value of a request field stays as it was typed, because JSON has quotes of its own."""
    key, _, more = rest.strip().partition(" ")
    if key == "modelparam":
        name, _, value = more.strip().partition(" ")
        return [word for word in (key, name, value.strip()) if word]
    if key.startswith(f"{PARAMS}.") and more.strip():
        return [key, more.strip()]
    return words(rest, USAGE)


def _change(chat: Chat, key: str, value: str) -> None:
    builtin = find(key).default
    chat.session.set(key, builtin if value == DEFAULT and builtin is not None else value)
    _print(chat, key)


def _explain(chat: Chat, name: str) -> None:
    key = find(name)
    terminal.out(terminal.pen(sys.stdout)(name, "bold"))
    terminal.out(terminal.wrap(key.help, 2))
    terminal.out(terminal.wrap(f"Allowed: {', '.join(key.allowed)}.", 2))
    _print(chat, name)


def _print(chat: Chat, name: str) -> None:
    """The value in force and who said it; another program's name for a setting is shown by ours."""
    name = find(name).name
    found = chat.session.effects
    effect = found.get(name) or Effect(name, None, "built-in", "built-in")
    said = "" if effect.by != effect.layer else "from " if effect.layer == "built-in" else "set by "
    terminal.out(f"{name} = {terminal.clean(settings.in_force(effect, found))} ({said}{effect.by})")
    for line in settings.effect_lines(effect):
        terminal.out(line)


def _complete(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    match before:
        case []:
            return ("all", "unset", "modelparam", *KEYS)
        case ["unset"]:
            return tuple(chat.session.layers.texts("session"))
        case [key] if key in _NAMES:
            return (*_NAMES[key](chat), DEFAULT)
        case [key] if key in KEYS:
            now = chat.session.effects[key].value
            said = complete(f"{key} ") or (() if now is None else (to_text(now),))
            return (*said, DEFAULT)
    return ()


def _apps(_chat: Chat) -> list[str]:
    from thinkback.session.apps import listed

    return [row.id for row in listed()]


_NAMES: dict[str, Callable[[Chat], list[str]]] = {
    "session.app": _apps,
    "session.profile": lambda chat: chat.session.profiles.list(),
}

ROWS = (Slash("set", USAGE, "Show or change a setting, from the next request on.", set_, _complete),)
