"""The end of a turn, as the tools that run in it see it: whoever can be ended is told, and is waited for a moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

# How long an interrupted turn waits for its tools to end: a sub-agent stores what it has meanwhile.
GRACE_SECONDS = 5.0


class Stop:
    """Set once, when the turn is interrupted. ``loop`` is the event loop that drives the turn, if one does."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ends: dict[object, Callable[[], None]] = {}
        self.is_set = False
        self.loop: AbstractEventLoop | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether a tool that can be ended is running."""
        return bool(self._ends)

    @contextmanager
    def calls(self, end: Callable[[], None]) -> Iterator[None]:
        """While in it, ``end`` is called if the turn is interrupted: from any thread, at once if it already was."""
        key = object()
        with self._changed:
            self._ends[key] = end
            is_late = self.is_set
        try:
            if is_late:
                end()
            yield
        finally:
            with self._changed:
                del self._ends[key]
                self._changed.notify_all()

    def set(self, seconds: float = GRACE_SECONDS) -> None:
        """Tell everybody, and wait until they are done, at most ``seconds``."""
        with self._changed:
            if self.is_set:
                return
            self.is_set = True
            ends = list(self._ends.values())
        for end in ends:
            end()
        with self._changed:
            self._changed.wait_for(lambda: not self._ends, seconds)


NEVER = Stop()
# The end of the turn that a tool runs in.
STOP: ContextVar[Stop] = ContextVar("thinkback_stop", default=NEVER)
