"""What is typed while a turn runs: commands that say how to go on act from its next request on; Ctrl-O unfolds.

Promises: they run in the order in which they were typed; from the first line on that is none of them, everything stays
typed for the next prompt.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from thinkback.cli import terminal
from thinkback.cli.chat import ahead, failures

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat
    from thinkback.cli.chat.slash.row import Slash

# Ctrl-O
_UNFOLD = "\x0f"
_COMMAND = re.compile(r"/(?:set|model|profile|endpoint)(?: [^\x00-\x1f]*)?")
_LINE = re.compile(r"([^\r\n]*)[\r\n]")
_CORRECTED = re.compile(r"[^\x08\x7f][\x08\x7f]")


@cache
def _rows() -> dict[str, Slash]:
    """The commands that may be typed while a turn runs: none of them asks anything."""
    from thinkback.cli.chat.slash import places, profiles, settings

    return {row.name: row for group in (settings, profiles, places) for row in group.ROWS}


def obey(chat: Chat) -> None:
    """Run the commands that were entered so far, and say so; what goes wrong with one is told."""
    if not chat.reader.is_live:
        return
    commands, rest = split(ahead.take_keys())
    ahead.give_back(rest)
    if not commands:
        return
    with chat.screen.aside():
        for line in commands:
            terminal.out(f"> {line}")  # typing it showed nothing
            try:
                name, _, rest = line.removeprefix("/").partition(" ")
                _rows()[name].run(chat, rest.strip())
            except failures.EXPECTED as error:
                terminal.complain(failures.report(error)[1])


def unfold(chat: Chat) -> None:
    """Fold or unfold the thinking under way where Ctrl-O was pressed; what else was typed stays for the next prompt."""
    if not chat.reader.is_live or not ahead.is_typed():
        return
    keys = ahead.take_keys()
    ahead.give_back(keys.replace(_UNFOLD, ""))
    for _ in range(keys.count(_UNFOLD)):
        chat.screen.fold()


def split(keys: str) -> tuple[list[str], str]:
    """The commands that ``keys`` begin with, and what follows."""
    commands = []
    while (entered := _LINE.match(keys)) is not None:
        line = entered[1]
        while (corrected := _CORRECTED.sub("", line, count=1)) != line:
            line = corrected
        if not _COMMAND.fullmatch(line.rstrip()):
            break
        commands.append(line.rstrip())
        keys = keys[entered.end() :]
    return commands, keys
