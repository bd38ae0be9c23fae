"""What a turn still wants done: the queue that both drivers work off."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from thinkback.model.deltas import Delta
from thinkback.turn import events
from thinkback.turn.machine import Turn


class Watch(Protocol):
    """Who is told what becomes of requests, and has no say in it. While it ``waits`` it is shown deltas as well."""

    waits: bool

    def sent(self, command: events.Send) -> None: ...

    def shown(self, deltas: Sequence[Delta]) -> None: ...

    def told(self, event: events.Event) -> None: ...

    def over(self) -> None: ...


class Agenda:
    """Commands of ``turn`` in order. A command stays first until ``done``, so that one cut short is done again."""

    def __init__(self, turn: Turn, watch: Watch | None = None) -> None:
        self._turn = turn
        self._watch = watch
        self._queue: deque[events.Command] = deque()
        self.outcome: events.Outcome | None = None

    def tell(self, event: events.Event) -> None:
        """Pass ``event`` on; what it leads to is queued."""
        commands = self._turn.on(event)
        watch = self._watch
        if watch is not None:
            if watch.waits:
                watch.shown([command.delta for command in commands if isinstance(command, events.Emit)])
            watch.told(event)
        self._queue.extend(commands)

    def feed(self, event: events.Bytes) -> list[Delta]:
        """Pass a piece of the body on; what there is to show is returned instead of queued."""
        shown: list[Delta] = []
        for command in self._turn.on(event):
            if isinstance(command, events.Emit):
                shown.append(command.delta)
            else:
                self._queue.append(command)
        if self._watch is not None and self._watch.waits:
            self._watch.shown(shown)
        return shown

    def first(self) -> events.Command | None:
        """The command to perform now, or ``None`` when the turn waits."""
        return self._queue[0] if self._queue else None

    def done(self) -> None:
        """The first command was performed."""
        command = self._queue.popleft()
        if isinstance(command, events.Done):
            self.outcome = command.outcome
        if self._watch is None:
            return
        if isinstance(command, events.Send):
            self._watch.sent(command)
        elif isinstance(command, events.Done):
            self._watch.over()

    def interrupt(self, now: int) -> None:
        """End the turn: of what was not begun only appends remain."""
        self._queue = deque(command for command in self._queue if isinstance(command, events.Append | events.Done))
        self.tell(events.Interrupt(now))
