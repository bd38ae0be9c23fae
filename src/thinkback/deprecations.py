"""What is to change: commands, options and settings that warn for one release before they do.

Promises: each is told once in a process, when it is used; where nothing is to change, nothing is looked up.
Must not: change what is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal, NamedTuple


class Deprecation(NamedTuple):
    """``name``: the words of a command (``profile save``), with an option behind them (``log --style``), or a setting.

    Of a default that is to change, the row is about the command or setting that has it, and ``instead`` says how to
    name the value of now. ``since`` is the version that warns first.
    """

    name: str
    kind: Literal["command", "option", "setting"]
    since: str
    instead: str


DEPRECATIONS: tuple[Deprecation, ...] = ()
_told: set[Deprecation] = set()


def of_command(arguments: Sequence[str]) -> None:
    """Warn where a command line uses what is to change."""
    if not DEPRECATIONS:
        return
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options = {word.partition("=")[0] for word in before}
    for row in DEPRECATIONS:
        words = row.name.split()
        path = words[:-1] if row.kind == "option" else words
        is_used = row.kind != "setting" and list(arguments[: len(path)]) == path
        if is_used and (row.kind == "command" or words[-1] in options):
            _warn(row)


def of_setting(name: str) -> None:
    """Warn where the setting ``name``, as it was given, is to change."""
    for row in DEPRECATIONS:
        if row.kind == "setting" and row.name == name:
            _warn(row)


def _warn(row: Deprecation) -> None:
    if row not in _told:
        _told.add(row)
        text = f"the {row.kind} {row.name} is to change, since version {row.since}: {row.instead}"
        warnings.warn(text, FutureWarning, stacklevel=3)
