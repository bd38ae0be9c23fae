"""The sync driver: performs the turn's commands in the caller's thread, tools of one response in parallel threads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from thinkback.drive.http import Timeouts, Transport
from thinkback.drive.log import append
from thinkback.drive.tools import PythonTool, bind, failure_text, result_text
from thinkback.errors import NetworkError, PhaseTimeout
from thinkback.log.protocol import Store
from thinkback.model.blocks import ToolCall
from thinkback.model.deltas import Delta
from thinkback.turn import events
from thinkback.turn.machine import Turn
from thinkback.turn.plan import History

_TOOL_THREADS = 8


def now() -> int:
    """Microseconds since 1970 UTC."""
    return time.time_ns() // 1000


class SyncDriver:
    """One turn of one session. ``run`` yields deltas and returns when the turn is over; ``outcome`` is set then.

    Closing the iterator early, or Ctrl-C, ends the turn as ``interrupted``: what arrived is stored first.
    """

    def __init__(
        self,
        turn: Turn,
        history: History,
        store: Store,
        session: str,
        transport: Transport,
        tools: Mapping[str, PythonTool],
        timeouts: Timeouts,
    ) -> None:
        self._turn = turn
        self._history = history
        self._store = store
        self._session = session
        self._transport = transport
        self._tools = tools
        self._timeouts = timeouts
        self._queue: deque[events.Command] = deque()
        self._running: dict[Future[tuple[str, bool]], str] = {}
        self._pool: ThreadPoolExecutor | None = None
        self.outcome: events.Outcome | None = None

    def run(self) -> Iterator[Delta]:
        """Perform the turn."""
        try:
            self._tell(events.Began(now()))
            yield from self._perform_all()
        except (GeneratorExit, KeyboardInterrupt):
            self._tell(events.Interrupt(now()))
            for _ in self._perform_all():
                pass
            raise
        finally:
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)

    def _tell(self, event: events.Event) -> None:
        self._queue.extend(self._turn.on(event))

    def _perform_all(self) -> Iterator[Delta]:
        while self.outcome is None:
            if not self._queue:
                self._wait_for_tool()
                continue
            command = self._queue.popleft()
            match command:
                case events.Emit():
                    yield command.delta
                case events.Send():
                    yield from self._send(command)
                case events.Append():
                    stored = append(self._store, self._session, command.step, self._history.head)
                    self._tell(events.Appended(command.id, stored.commits, now(), stored.between))
                case events.RunTool():
                    self._start_tool(command)
                case events.Timer():
                    time.sleep(command.seconds)
                    self._tell(events.Fired(command.id, now()))
                case events.Cancel():
                    pass  # the stream of a cancelled request is closed where it is read
                case events.Done():
                    self.outcome = command.outcome

    def _send(self, command: events.Send) -> Iterator[Delta]:
        plan, timeouts = command.plan, self._timeouts
        deadline = None if timeouts.total is None else time.monotonic() + timeouts.total
        try:
            with self._transport.post(plan.url, plan.headers, bytes(plan), timeouts) as response:
                self._tell(events.Head(command.id, response.status, response.headers, now()))
                for piece in response.body:
                    for told in self._turn.on(events.Bytes(command.id, piece, now())):
                        if isinstance(told, events.Emit):
                            yield told.delta
                        else:
                            self._queue.append(told)
                    if deadline is not None and time.monotonic() > deadline:
                        raise PhaseTimeout(f"not finished after {timeouts.total} s", details={"phase": "total"})
            self._tell(events.Closed(command.id, now()))
        except NetworkError as error:
            phase = error.details.get("phase", "network")
            self._tell(events.NetError(command.id, error.message, phase, now()))  # type: ignore[arg-type]

    # -- tools -----------------------------------------------------------------------------------------------------

    def _start_tool(self, command: events.RunTool) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_TOOL_THREADS, thread_name_prefix="thinkback-tool")
        self._running[self._pool.submit(run_tool, self._tools, command.call)] = command.id

    def _wait_for_tool(self) -> None:
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        for future in done:
            content, is_error = future.result()
            self._tell(events.ToolDone(self._running.pop(future), content, is_error, now()))


def run_tool(tools: Mapping[str, PythonTool], call: ToolCall) -> tuple[str, bool]:
    """(text for the model, whether it is an error) of one call. A tool that raises is a result, not a crash."""
    tool = tools.get(call.name)
    arguments = bind(tool, call)
    if tool is None or isinstance(arguments, str):
        return str(arguments), True
    try:
        return result_text(tool.function(**arguments)), False
    except Exception as error:  # foreign code: whatever it raises is told to the model
        return failure_text(error), True
