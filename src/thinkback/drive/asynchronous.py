"""The asyncio driver: the same machine; appends run on the store's own executor and are shielded."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor

from thinkback.drive.http import AsyncTransport, Timeouts
from thinkback.drive.log import append
from thinkback.drive.sync import now, run_tool
from thinkback.drive.tools import PythonTool, bind, failure_text, result_text
from thinkback.errors import NetworkError, PhaseTimeout
from thinkback.log.protocol import Store
from thinkback.model.blocks import ToolCall
from thinkback.model.deltas import Delta
from thinkback.turn import events
from thinkback.turn.machine import Turn
from thinkback.turn.plan import History


class AsyncDriver:
    """One turn of one session. Cancelling or closing the iterator ends the turn as ``interrupted``."""

    def __init__(
        self,
        turn: Turn,
        history: History,
        store: Store,
        session: str,
        transport: AsyncTransport,
        tools: Mapping[str, PythonTool],
        timeouts: Timeouts,
        executor: Executor,
    ) -> None:
        self._turn = turn
        self._history = history
        self._store = store
        self._session = session
        self._transport = transport
        self._tools = tools
        self._timeouts = timeouts
        self._executor = executor
        self._queue: deque[events.Command] = deque()
        self._running: dict[asyncio.Task[tuple[str, bool]], str] = {}
        self.outcome: events.Outcome | None = None

    async def run(self) -> AsyncIterator[Delta]:
        """Perform the turn."""
        try:
            self._tell(events.Began(now()))
            async for delta in self._perform_all():
                yield delta
        except (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt):
            await asyncio.shield(self._interrupt())
            raise
        finally:
            for task in self._running:
                task.cancel()

    async def _interrupt(self) -> None:
        self._tell(events.Interrupt(now()))
        async for _ in self._perform_all():
            pass

    def _tell(self, event: events.Event) -> None:
        self._queue.extend(self._turn.on(event))

    async def _perform_all(self) -> AsyncIterator[Delta]:
        while self.outcome is None:
            if not self._queue:
                await self._wait_for_tool()
                continue
            command = self._queue.popleft()
            match command:
                case events.Emit():
                    yield command.delta
                case events.Send():
                    async for delta in self._send(command):
                        yield delta
                case events.Append():
                    await asyncio.shield(self._append(command))
                case events.RunTool():
                    task = asyncio.ensure_future(self._run_tool(command.call))
                    self._running[task] = command.id
                case events.Timer():
                    await asyncio.sleep(command.seconds)
                    self._tell(events.Fired(command.id, now()))
                case events.Cancel():
                    pass  # the stream of a cancelled request is closed where it is read
                case events.Done():
                    self.outcome = command.outcome

    async def _append(self, command: events.Append) -> None:
        loop = asyncio.get_running_loop()
        head = self._history.head
        stored = await loop.run_in_executor(self._executor, append, self._store, self._session, command.step, head)
        self._tell(events.Appended(command.id, stored.commits, now(), stored.between))

    async def _send(self, command: events.Send) -> AsyncIterator[Delta]:
        plan, timeouts = command.plan, self._timeouts
        deadline = None if timeouts.total is None else time.monotonic() + timeouts.total
        try:
            async with self._transport.post(plan.url, plan.headers, bytes(plan), timeouts) as response:
                self._tell(events.Head(command.id, response.status, response.headers, now()))
                async for piece in response.body:
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

    async def _run_tool(self, call: ToolCall) -> tuple[str, bool]:
        tool = self._tools.get(call.name)
        if tool is None or not tool.is_async:
            return await asyncio.to_thread(run_tool, self._tools, call)
        arguments = bind(tool, call)
        if isinstance(arguments, str):
            return arguments, True
        try:
            return result_text(await tool.function(**arguments)), False
        except Exception as error:  # foreign code: whatever it raises is told to the model
            return failure_text(error), True

    async def _wait_for_tool(self) -> None:
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            content, is_error = task.result()
            self._tell(events.ToolDone(self._running.pop(task), content, is_error, now()))
