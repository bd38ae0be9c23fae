"""The asyncio driver: the same machine; appends run on the store's own executor and are shielded."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Executor
from contextlib import aclosing
from functools import partial
from typing import assert_never

from thinkback.drive.agenda import Agenda, TurnHost, Watch, answer, prepare
from thinkback.drive.approval import Approval, failed, is_coroutine, read
from thinkback.drive.clock import now
from thinkback.drive.http import AsyncTransport, Timeouts
from thinkback.drive.leases import ALONE, Tenure
from thinkback.drive.line import Line
from thinkback.drive.shielded import to_the_end
from thinkback.drive.stopping import Stop
from thinkback.drive.sync import TOOL_THREADS, net_error
from thinkback.drive.threads import in_thread
from thinkback.drive.tools import PythonTool, ToolOutput, run_async_tool, run_tool
from thinkback.errors import NetworkError, StoreError
from thinkback.model.deltas import Delta
from thinkback.turn import events
from thinkback.turn.machine import Turn
from thinkback.turn.permissions import PermissionAnswer, PermissionRequest
from thinkback.turn.plan import History


class AsyncDriver:
    """One turn of one session. Cancelling or closing the iterator ends the turn as ``interrupted``.

    ``over`` is set when nothing of the turn runs any more, however it ended.
    """

    def __init__(
        self,
        turn: Turn,
        host: TurnHost,
        history: History,
        line: Line,
        transport: AsyncTransport,
        tools: Mapping[str, PythonTool],
        timeouts: Timeouts,
        executor: Executor,
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
        self._executor = executor
        self._slots = threading.Semaphore(TOOL_THREADS)
        self._stop = Stop()
        self._running: dict[asyncio.Task[ToolOutput], str] = {}
        self._begun = False
        self.over = asyncio.Event()

    @property
    def is_running(self) -> bool:
        """Whether the turn was begun and is not over."""
        return self._begun and not self.over.is_set()

    @property
    def outcome(self) -> events.Outcome | None:
        """How the turn ended; ``None`` while it is under way."""
        return self._agenda.outcome

    async def run(self) -> AsyncGenerator[Delta, None]:
        """Perform the turn."""
        self._begun = True
        self._stop.loop = asyncio.get_running_loop()
        try:
            self._tenure.begin()
            self._agenda.tell(events.Began(now()))
            async with aclosing(self._perform_all()) as deltas:
                async for delta in deltas:
                    yield delta
        except BaseException as cause:  # cancelled, closed, a fault of the transport: what arrived is stored
            if not isinstance(cause, StoreError) and not isinstance(cause.__cause__, StoreError):
                await to_the_end(self._interrupt())
            raise
        finally:
            self._stop.set(0)
            for task in self._running:
                task.cancel()
            await to_the_end(self._in_store(self._tenure.release))
            self.over.set()

    async def _interrupt(self) -> None:
        if self._stop.is_awaited:
            await asyncio.wrap_future(in_thread(self._stop.set, threading.Semaphore()))
        self._stop.set(0)
        self._agenda.interrupt(now())
        async for _ in self._perform_all():
            pass

    async def _perform_all(self) -> AsyncGenerator[Delta, None]:
        agenda = self._agenda
        while agenda.outcome is None:
            command = agenda.first()
            match command:
                case None:
                    await self._wait_for_tool()
                case events.BuildRequest() | events.Review() | events.Permit() | events.NextPlace():
                    agenda.done()
                    await self._answer(command)
                case events.Append():
                    await to_the_end(self._append(command))
                case events.Emit():
                    agenda.done()
                    self._tenure.handed()
                    yield command.delta
                    self._tenure.back()
                case events.Send():
                    agenda.done()
                    async with aclosing(self._send(command)) as deltas:
                        async for delta in deltas:
                            yield delta
                case events.Timer():
                    agenda.done()
                    await asyncio.sleep(command.seconds)
                    agenda.tell(events.Fired(command.id, now()))
                case events.RunTool():
                    agenda.done()
                    self._running[asyncio.ensure_future(self._run_tool(command))] = command.id
                case events.AskPerson():
                    agenda.done()
                    await self._ask(command)
                case events.Cancel() | events.Done():
                    agenda.done()  # the stream of a cancelled request is closed where it is read
                case _:
                    assert_never(command)

    async def _answer(self, question: events.Question) -> None:
        """Files are read on the executor, hooks and planning run here."""
        work = partial(prepare, self._host, question, now())
        failed = await asyncio.get_running_loop().run_in_executor(self._executor, work)
        self._agenda.tell(failed or answer(self._host, question, now()))

    async def _append(self, command: events.Append) -> None:
        work = partial(self._line.append, command.step, self._history.head)
        stored = await asyncio.get_running_loop().run_in_executor(self._executor, work)
        self._agenda.tell(events.Appended(command.id, stored.commits, now(), stored.between, stored.opened))
        self._agenda.done()

    async def _send(self, command: events.Send) -> AsyncGenerator[Delta, None]:
        agenda, plan, body = self._agenda, command.plan, bytes(command.plan)
        try:
            if plan.waits:
                await asyncio.wrap_future(in_thread(partial(plan.authenticate, body), self._slots))
            else:
                plan.authenticate(body)
            async with self._transport.post(plan.url, plan.headers, body, self._timeouts) as response:
                agenda.tell(events.Head(command.id, response.status, response.headers, now()))
                async for piece in response.body:
                    if deltas := agenda.feed(events.Bytes(command.id, piece, now())):
                        self._tenure.handed()
                        for delta in deltas:
                            yield delta
                        self._tenure.back()
                    if agenda.stops:
                        break
            agenda.tell(events.Closed(command.id, now()))
        except NetworkError as error:
            agenda.tell(net_error(command.id, error))

    async def _run_tool(self, command: events.RunTool) -> ToolOutput:
        call = command.call
        if command.refusal:
            return ToolOutput(command.refusal, is_error=True)
        tool = self._tools.get(call.name)
        if tool is not None and tool.is_async:
            return await run_async_tool(tool, call, self._line.hooks)
        work = partial(run_tool, self._tools, call, self._line.hooks, self._stop)
        return await asyncio.wrap_future(in_thread(work, self._slots))

    async def _ask(self, command: events.AskPerson) -> None:
        assert self._approval is not None  # a turn asks only where it was told that somebody is there
        answered = await _answer(self._approval, command.request, self._executor)
        self._agenda.tell(events.Answered(command.id, answered, now()))

    async def _in_store(self, work: Callable[[], None]) -> None:
        """``work`` on the executor; here where the store was closed meanwhile."""
        if self._tenure is ALONE:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except RuntimeError:
            work()

    async def _wait_for_tool(self) -> None:
        if not self._running:
            raise RuntimeError("the turn is not over and waits for nothing: a command or its answer was lost")
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            output = ToolOutput("The tool was cancelled.", True) if task.cancelled() else task.result()
            told = events.ToolDone(self._running.pop(task), output.content, output.is_error, now(), output.notes)
            self._agenda.tell(told)


async def _answer(approval: Approval, request: PermissionRequest, executor: Executor) -> PermissionAnswer:
    """Await the answer; a plain function is called in a thread. ``executor`` is the store's."""
    try:
        if is_coroutine(approval.approve):
            said = approval.approve(request)
        else:
            said = await asyncio.wrap_future(in_thread(partial(approval.approve, request), threading.Semaphore()))
        answered = read(await said if inspect.isawaitable(said) else said)
    except Exception as error:  # foreign code: whatever it raises is no consent
        answered = failed(error)
    if answered.allow and answered.always:
        await asyncio.get_running_loop().run_in_executor(executor, approval.remember, request)
    return answered
