"""Calls of tools as they are drawn: name and short arguments, then how each ended and how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from thinkback.model.deltas import Status, ToolCallDelta

SHOWN = 60
"""Columns of a call's arguments."""


class Ended(NamedTuple):
    """A call that is over."""

    words: str
    seconds: float
    failed: bool


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

    def end(self, status: Status, now: float) -> Ended:
        """A call ended."""
        words, began = self._running.pop(status.call or status.detail, (status.detail, now))
        return Ended(words, now - began, status.failed)

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
                return f"{name}({shortened(''.join(pieces))})"
        return status.detail


def shortened(arguments: str) -> str:
    """Arguments in a few words."""
    from thinkback.session.transcripts.ink import one_line

    return one_line(arguments, SHOWN)
