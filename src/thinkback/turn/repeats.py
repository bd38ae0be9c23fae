"""Calls that fail the same way again and again."""

from __future__ import annotations

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Effect
from thinkback.turn.events import ToolDone


class Repeats:
    """The same call that failed the same way, in ``limit`` responses of a turn: going on would bring it again.

    What succeeds in changing something makes all failures worth another attempt.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._failed: dict[tuple[str, str, str], int] = {}
        self._here: set[tuple[str, str, str]] = set()
        self.stalled = ""

    def next_response(self) -> None:
        """What fails now was asked for by another response than what failed before."""
        self._here.clear()

    def take(self, call: ToolCall, event: ToolDone, effect: Effect) -> None:
        """A call came back."""
        if not event.is_error:
            if effect != "reads":
                self._failed.clear()
                self.stalled = ""
            return
        key = call.name, _normal(call.arguments), event.content
        if key in self._here:
            return
        self._here.add(key)
        self._failed[key] = self._failed.get(key, 0) + 1
        if self._failed[key] >= self._limit:
            self.stalled = f"{call.name} failed {self._failed[key]} times in the same way with the same arguments"


def _normal(arguments: str) -> str:
    """``arguments`` with their keys in one order and without white space."""
    try:
        return canonical.encode(canonical.decode(arguments or "{}")).decode()
    except msgspec.DecodeError:
        return arguments
