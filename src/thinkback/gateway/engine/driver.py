"""The gateway's driver of the turn machine: one response, its bytes passed on before they are read.

A third small driver beside those of ``drive``: it runs no tools and asks nobody, and what it shows goes to a ``Relay``
that may wait for its client, so that a slow client slows its upstream.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Protocol, assert_never

from thinkback.drive.agenda import Agenda, TurnHost, answer
from thinkback.drive.asynchronous import to_the_end
from thinkback.drive.http import AsyncTransport, Timeouts
from thinkback.drive.sync import net_error, now
from thinkback.errors import NetworkError, StoreError
from thinkback.gateway.engine.apart import Apart
from thinkback.model.commits import Commit, Step
from thinkback.model.deltas import Delta
from thinkback.turn import events
from thinkback.turn.machine import Turn
from thinkback.turn.plan import Plan

LARGEST = 64 * 2**20
"""Bytes that one response may have, so also one line of it: it is held in memory until it is stored."""
PIECE = 64 * 1024
"""Bytes that are read in one go; then whoever else waits for the loop has a turn."""


class Relay(Protocol):
    """Where a response goes while it arrives."""

    def head(self, plan: Plan, status: int, content_type: str) -> None:
        """A response that is none of refusal begins."""
        ...

    async def piece(self, data: bytes) -> None:
        """A piece of its body, before it is read."""
        ...

    async def deltas(self, deltas: Sequence[Delta], size: int = 0) -> None:
        """What was read of it, out of ``size`` bytes."""
        ...


class Driver:
    """One exchange. Cancelling ``run`` ends it as interrupted; what arrived is stored.

    ``phases`` gets the seconds to the first byte of the last attempt, and from there to its end. ``received`` counts
    the bytes of its body; ``refused`` says why no more of them are taken.
    """

    def __init__(
        self,
        turn: Turn,
        host: TurnHost,
        relay: Relay,
        transport: Callable[[Plan], AsyncTransport],
        timeouts: Timeouts,
        append: Callable[[Step], Awaitable[Sequence[Commit]]],
        executor: Executor,
        body_of: Callable[[Plan], bytes],
        phases: dict[str, float],
        apart: Apart,
    ) -> None:
        self._agenda = Agenda(turn)
        self._host = host
        self._relay = relay
        self._transport = transport
        self._timeouts = timeouts
        self._append = append
        self._executor = executor
        self._body_of = body_of
        self._phases = phases
        self._apart = apart
        self.received = 0
        self.refused: NetworkError | None = None
        # Bytes that were read since something came of them.
        self._unread = 0
        # Nobody reads any more; what is left is to be stored.
        self._is_over = False

    async def run(self) -> events.Outcome:
        """Perform the turn; returns how it ended. Raises ``StoreError`` where it cannot be stored."""
        agenda = self._agenda
        try:
            agenda.tell(events.Began(now()))
            await self._perform_all()
        except BaseException as cause:  # the client left, or a fault of ours: what arrived is stored
            if not isinstance(cause, StoreError) and agenda.outcome is None:
                self._is_over = True
                await self._apart(self.received, partial(agenda.interrupt, now()))
                await self._perform_all()
            raise
        assert agenda.outcome is not None
        return agenda.outcome

    async def _perform_all(self) -> None:
        agenda = self._agenda
        while agenda.outcome is None:
            command = agenda.first()
            match command:
                case None:
                    raise RuntimeError("the turn is not over and waits for nothing: a command or its answer was lost")
                case events.BuildRequest() | events.Review() | events.Permit() | events.NextPlace():
                    agenda.done()
                    agenda.tell(answer(self._host, command, now()))
                case events.Append():
                    await to_the_end(self._store(command))
                case events.Emit():
                    agenda.done()
                    if not self._is_over:
                        await self._relay.deltas((command.delta,))
                case events.Send():
                    agenda.done()
                    await self._send(command)
                case events.Timer():
                    agenda.done()
                    await asyncio.sleep(command.seconds)
                    agenda.tell(events.Fired(command.id, now()))
                case events.Cancel() | events.Done():
                    agenda.done()
                case events.RunTool() | events.AskPerson():
                    raise RuntimeError("the gateway runs no tools: they are the client's")
                case _:
                    assert_never(command)

    async def _store(self, command: events.Append) -> None:
        commits = await self._append(command.step)
        await self._tell(events.Appended(command.id, tuple(commits), now()))
        self._agenda.done()

    async def _tell(self, event: events.Event) -> None:
        await self._apart(self.received, partial(self._agenda.tell, event))

    async def _send(self, command: events.Send) -> None:
        agenda, relay, plan = self._agenda, self._relay, command.plan
        self.received = self._unread = 0
        body = self._body_of(plan)
        began, first = time.monotonic(), 0.0
        try:
            if plan.waits:
                await asyncio.get_running_loop().run_in_executor(self._executor, plan.authenticate, body)
            else:
                plan.authenticate(body)
            async with self._transport(plan).post(plan.url, plan.headers, body, self._timeouts) as response:
                agenda.tell(events.Head(command.id, response.status, response.headers, now()))
                answers = 200 <= response.status < 300
                if answers:
                    relay.head(plan, response.status, response.headers.get("content-type", ""))
                async for piece in response.body:
                    first = first or time.monotonic()
                    self._count(piece)
                    for at in range(0, len(piece), PIECE):
                        await self._take(command, piece[at : at + PIECE], answers)
            await self._tell(events.Closed(command.id, now()))
        except NetworkError as error:
            agenda.tell(net_error(command.id, error))
        if first:
            self._phases["first_byte"], self._phases["stream"] = first - began, time.monotonic() - first

    async def _take(self, command: events.Send, piece: bytes, answers: bool) -> None:
        """Pass a piece on and read it; what comes without a pause leaves the loop to others in between."""
        before, self._unread = self._unread, self._unread + len(piece)
        if answers:
            await self._relay.piece(piece)
        size = self._unread
        deltas = await self._apart(size, partial(self._agenda.feed, events.Bytes(command.id, piece, now())))
        if deltas:
            self._unread = 0
            await self._relay.deltas(deltas, size)
        if before // PIECE != size // PIECE:
            await asyncio.sleep(0)

    def _count(self, piece: bytes) -> None:
        self.received += len(piece)
        if self.received > LARGEST:
            details = {"phase": "network", "permanent": True, "largest": LARGEST}
            self.refused = NetworkError(f"the response of the upstream has more than {LARGEST} bytes", details=details)
            raise self.refused
