"""What a turn still wants done: the queue that both drivers work off."""

from __future__ import annotations

from collections import deque

from thinkback.model.deltas import Delta
from thinkback.turn import events
from thinkback.turn.machine import Turn


class Agenda:
    """Commands of ``turn`` in order. A command stays first until ``done``, so that one cut short is done again."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._queue: deque[events.Command] = deque()
        self.outcome: events.Outcome | None = None

    def tell(self, event: events.Event) -> None:
        """Pass ``event`` on; what it leads to is queued."""
        self._queue.extend(self._turn.on(event))

    def feed(self, event: events.Bytes) -> list[Delta]:
        """Pass a piece of the body on; what there is to show is returned instead of queued."""
        shown: list[Delta] = []
        for command in self._turn.on(event):
            if isinstance(command, events.Emit):
                shown.append(command.delta)
            else:
                self._queue.append(command)
        return shown

    def first(self) -> events.Command | None:
        """The command to perform now, or ``None`` when the turn waits."""
        return self._queue[0] if self._queue else None

    def done(self) -> None:
        """The first command was performed."""
        command = self._queue.popleft()
        if isinstance(command, events.Done):
            self.outcome = command.outcome

    def interrupt(self, now: int) -> None:
        """End the turn: of what was not begun only appends remain."""
        self._queue = deque(command for command in self._queue if isinstance(command, events.Append | events.Done))
        self.tell(events.Interrupt(now))
