"""The sync driver: performs the turn's commands in the caller's thread, tools of one response in parallel threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import assert_never

from thinkback.drive import approval as asking
from thinkback.drive.agenda import Agenda, TurnHost, Watch, answer, prepare
from thinkback.drive.approval import Approval
from thinkback.drive.clock import now
from thinkback.drive.http import Timeouts, Transport
from thinkback.drive.leases import ALONE, Tenure
from thinkback.drive.line import Line
from thinkback.drive.stopping import Stop
from thinkback.drive.threads import in_thread
from thinkback.drive.tools import PythonTool, ToolOutput, run_tool
from thinkback.errors import NetworkError, StoreError
from thinkback.model.deltas import Delta
from thinkback.turn import events
from thinkback.turn.machine import Turn
from thinkback.turn.plan import History

TOOL_THREADS = 8


def net_error(id: str, error: NetworkError) -> events.NetError:
    """What a transport raised, as the turn is told."""
    phase = error.details.get("phase", "network")
    permanent = bool(error.details.get("permanent"))
    return events.NetError(id, error.message, phase, now(), permanent)  # type: ignore[arg-type]


class SyncDriver:
    """One turn of one session. ``run`` yields deltas and returns when the turn is over; ``outcome`` is set then.

    Closing the iterator early, or Ctrl-C, ends the turn as ``interrupted``: what arrived is stored first.
    """

    def __init__(
        self,
        turn: Turn,
        host: TurnHost,
        history: History,
        line: Line,
        transport: Transport,
        tools: Mapping[str, PythonTool],
        timeouts: Timeouts,
        approval: Approval | None = None,
        watch: Watch | None = None,
        tenure: Tenure = ALONE,
    ) -> None:
        self._agenda = Agenda(turn, watch)
        self._tenure = tenure
        self._host = host
        self._history = history
        self._line = line
        self._transport = transport
        self._tools = tools
        self._timeouts = timeouts
        self._approval = approval
        self._slots = threading.Semaphore(TOOL_THREADS)
        self._stop = Stop()
        self._running: dict[Future[ToolOutput], str] = {}
        self.is_running = False

    @property
    def outcome(self) -> events.Outcome | None:
        """How the turn ended; ``None`` while it is under way."""
        return self._agenda.outcome

    def run(self) -> Generator[Delta, None, None]:
        """Perform the turn."""
        self.is_running = True
        try:
            self._tenure.begin()
            self._agenda.tell(events.Began(now()))
            yield from self._perform_all()
        except BaseException as cause:  # Ctrl-C, a closed iterator, a fault of the transport: what arrived is stored
            if not isinstance(cause, StoreError):
                self._interrupt()
            raise
        finally:
            self._stop.set(0)
            for future in self._running:
                future.cancel()
            self.is_running = False
            self._tenure.release()

    def _interrupt(self) -> None:
        self._stop.set()
        self._agenda.interrupt(now())
        for _ in self._perform_all():
            pass

    def _perform_all(self) -> Iterator[Delta]:
        agenda = self._agenda
        while agenda.outcome is None:
            command = agenda.first()
            match command:
                case None:
                    self._wait_for_tool()
                case events.BuildRequest() | events.Review() | events.Permit() | events.NextPlace():
                    agenda.done()
                    agenda.tell(prepare(self._host, command, now()) or answer(self._host, command, now()))
                case events.Append():
                    self._append(command)
                case events.Emit():
                    agenda.done()
                    self._tenure.handed()
                    yield command.delta
                    self._tenure.back()
                case events.Send():
                    agenda.done()
                    yield from self._send(command)
                case events.Timer():
                    agenda.done()
                    time.sleep(command.seconds)
                    agenda.tell(events.Fired(command.id, now()))
                case events.RunTool():
                    agenda.done()
                    work = partial(run_tool, self._tools, command.call, self._line.hooks, self._stop)
                    if command.refusal:
                        work = partial(ToolOutput, command.refusal, is_error=True)
                    self._running[in_thread(work, self._slots)] = command.id
                case events.AskPerson():
                    agenda.done()
                    self._ask(command)
                case events.Cancel() | events.Done():
                    agenda.done()  # the stream of a cancelled request is closed where it is read
                case _:
                    assert_never(command)

    def _append(self, command: events.Append) -> None:
        stored = self._line.append(command.step, self._history.head)
        self._agenda.tell(events.Appended(command.id, stored.commits, now(), stored.between, stored.opened))
        self._agenda.done()

    def _send(self, command: events.Send) -> Iterator[Delta]:
        agenda, plan, body = self._agenda, command.plan, bytes(command.plan)
        try:
            plan.authenticate(body)
            with self._transport.post(plan.url, plan.headers, body, self._timeouts) as response:
                agenda.tell(events.Head(command.id, response.status, response.headers, now()))
                for piece in response.body:
                    if deltas := agenda.feed(events.Bytes(command.id, piece, now())):
                        self._tenure.handed()
                        yield from deltas
                        self._tenure.back()
                    if agenda.stops:
                        break
            agenda.tell(events.Closed(command.id, now()))
        except NetworkError as error:
            agenda.tell(net_error(command.id, error))

    def _ask(self, command: events.AskPerson) -> None:
        assert self._approval is not None  # a turn asks only where it was told that somebody is there
        answered = asking.answer(self._approval, command.request)
        self._agenda.tell(events.Answered(command.id, answered, now()))

    def _wait_for_tool(self) -> None:
        if not self._running:
            raise RuntimeError("the turn is not over and waits for nothing: a command or its answer was lost")
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        for future in done:
            content, is_error, notes = future.result()
            self._agenda.tell(events.ToolDone(self._running.pop(future), content, is_error, now(), notes))
