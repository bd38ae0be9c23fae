"""What a turn still wants done: the queue that every driver works off, and the host that answers its questions."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol, assert_never

from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Compaction
from thinkback.model.deltas import Delta
from thinkback.turn import events
from thinkback.turn.machine import Turn
from thinkback.turn.permissions import Verdict
from thinkback.turn.plan import Plan


class TurnHost(Protocol):
    """The side of a turn that knows settings, files and hooks. The turn gets what a method raises as ``Failed``."""

    def prepare(self) -> None:
        """Read the files that the next answer goes by. It may run in another thread; nothing else here reads files."""
        ...

    def build(self) -> Plan:
        """The next request."""
        ...

    def review(self, subject: Plan | Compaction) -> str:
        """Let hooks see a request or a checkpoint; why the checkpoint must not be made, else nothing."""
        ...

    def permit(self, call: ToolCall) -> Verdict:
        """Whether a call may run."""
        ...

    def next_place(self, reason: str) -> str:
        """Go on to the next place; its name, or nothing where there is none."""
        ...


def prepare(host: TurnHost, question: events.Question, now: int) -> events.Failed | None:
    """Have the host read what its answer to ``question`` goes by; why it cannot, if so."""
    if isinstance(question, events.Review):
        return None
    try:
        host.prepare()
    except Exception as error:  # files: whatever they raise is the turn's to end with
        return events.Failed(question.id, error, now)
    return None


def answer(host: TurnHost, question: events.Question, now: int) -> events.Event:
    """The host's answer to ``question``."""
    try:
        match question:
            case events.BuildRequest():
                return events.Built(question.id, host.build(), now)
            case events.Review():
                return events.Reviewed(question.id, host.review(question.subject), now)
            case events.Permit():
                return events.Permitted(question.id, host.permit(question.call), now)
            case events.NextPlace():
                return events.PlaceChosen(question.id, host.next_place(question.reason), now)
            case _:
                assert_never(question)
    except Exception as error:  # files, settings and foreign hooks: whatever they raise is the turn's to end with
        return events.Failed(question.id, error, now)


class Watch(Protocol):
    """Who is told what becomes of requests, and has no say in it. While it ``waits`` it is shown deltas as well."""

    waits: bool

    def sent(self, command: events.Send) -> None: ...

    def shown(self, deltas: Sequence[Delta]) -> None: ...

    def notify(self, event: events.Event) -> None: ...

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
            watch.notify(event)
        self._queue.extend(commands)

    def feed(self, event: events.Bytes) -> list[Delta]:
        """Pass a piece of the body on; what there is to show is returned instead of queued."""
        shown = self._turn.feed(event)
        if self._watch is not None and self._watch.waits:
            self._watch.shown(shown)
        return shown

    @property
    def stops(self) -> bool:
        """True if no more of the response is to be read."""
        return self._turn.stops

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
