"""Calls of tools as people read them: name, what it was called for, and what came of it, in a line.

The arguments and the result as they are, whole, are for ``/calls``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from thinkback.model import canonical
from thinkback.session.transcripts.ink import one_line

if TYPE_CHECKING:
    from thinkback.model.deltas import Status, ToolCallDelta

# Columns of what a call is for, and of a result that has one line.
_SUBJECT, _RESULT = 60, 60
# Seconds from which on it is told how long a call took.
_LONG = 1.0
# What says most of a call, the first that is there.
_MAIN = ("path", "file_path", "command", "pattern", "query", "url")


class Calls:
    """The calls of a turn, from the first letter of their arguments to their end."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, int], tuple[str, str, list[str]]] = {}
        self._running: dict[str, tuple[str, float]] = {}

    def add(self, delta: ToolCallDelta) -> str:
        """A piece of a call; gives its name."""
        key = (delta.response, delta.index)
        id, name, pieces = self._written.get(key, ("", "", []))
        pieces.append(delta.arguments)
        self._written[key] = (id or delta.id, name or delta.name, pieces)
        return name or delta.name

    def start(self, status: Status, now: float) -> None:
        """A call runs."""
        self._running[status.call or status.detail] = (self._words(status), now)

    def end(self, status: Status, now: float) -> str:
        """A call ended: the line for it."""
        words, began = self._running.pop(status.call or status.detail, (status.detail, now))
        took = f" ({now - began:.1f} s)" if now - began >= _LONG else ""
        return ended(words, status.result, failed=status.failed) + took

    def running(self, now: float) -> str:
        """What runs, and for how long."""
        if not self._running:
            return ""
        words, began = next(iter(self._running.values()))
        others = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
        return f"{words}{others}, {round(now - began)} s"

    def _words(self, status: Status) -> str:
        for id, name, pieces in self._written.values():
            if name == status.detail and (not status.call or id == status.call):
                return words(name, "".join(pieces))
        return status.detail


def words(name: str, arguments: str) -> str:
    """A call in a few words: ``read primes.py``."""
    try:
        given: Any = canonical.decode(arguments or "{}")
    except msgspec.DecodeError:
        given = arguments
    match given:
        case {**fields} if main := next((str(fields[key]) for key in _MAIN if key in fields), ""):
            subject = main
        case {**fields} if len(fields) == 1:
            subject = _plain(*fields.values())
        case {**fields}:
            subject = ", ".join(f"{key} {_plain(value)}" for key, value in fields.items())
        case _:
            subject = _plain(given)
    return f"{name} {one_line(subject, _SUBJECT)}".rstrip()


def ended(said: str, result: str, *, failed: bool) -> str:
    """The line for a call that is over, ``said`` in a few words."""
    lines = result.strip().splitlines()
    if failed:
        came = one_line(next((line for line in lines if line.strip()), "failed"), _RESULT)
    elif len(lines) > 1:
        came = f"{len(lines):,} lines"
    else:
        came = one_line(result, _RESULT)
    return f"{'✗' if failed else '✓'} {said}{f' · {came}' if came else ''}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else canonical.encode(value).decode()
