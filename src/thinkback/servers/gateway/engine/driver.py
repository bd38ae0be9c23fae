"""The gateway's driver of an exchange: its commands performed with the log, the upstreams and the client there are.

Promises: a command that was begun is answered, or its exchange is interrupted; a step is stored to its end, also where
the request is cancelled meanwhile; what is read in one go is bounded, and what is large is read on a thread. Must not:
decide what is sent or shown.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, assert_never

import msgspec

from thinkback.drive.clock import now
from thinkback.drive.http import HttpResponse, Timeouts
from thinkback.drive.shielded import to_the_end
from thinkback.errors import ErasedSinceError, NetworkError, PhaseTimeout
from thinkback.log.protocol import AppendRequest
from thinkback.proxy import lookups
from thinkback.proxy.events import (
    Answered,
    Choose,
    Command,
    End,
    Event,
    Failed,
    FindErased,
    FindErasure,
    Head,
    InLog,
    Interrupt,
    Judged,
    KeepHistory,
    LookUp,
    NextPlace,
    OpenKept,
    ReadHistory,
    ReadLines,
    Receive,
    Route,
    Send,
    Settle,
    Sleep,
    Start,
    Store,
    Unavailable,
    Unstored,
    Write,
)
from thinkback.proxy.exchange import Exchange
from thinkback.servers.gateway.access.estimating import estimate
from thinkback.servers.gateway.engine.apart import LARGE
from thinkback.servers.gateway.engine.engine import Engine
from thinkback.servers.gateway.incoming import ClientGone, Incoming, Sink
from thinkback.servers.gateway.telemetry.metrics import BROKEN, FAILOVERS
from thinkback.servers.gateway.upstreams.breakers import is_of_the_place
from thinkback.servers.gateway.upstreams.routing import Choice
from thinkback.stores.gateway_state.records import Use
from thinkback.turn.retry import says_key_refused

PIECE = 64 * 1024
"""Bytes that are read in one go; then whoever else waits for the loop has a turn."""


async def respond(engine: Engine, incoming: Incoming, sink: Sink) -> None:
    """Answer one request. Whatever goes wrong, the client reads it; cancelled, what arrived is stored."""
    await _Driver(engine, incoming, sink).run()


class _Driver:
    """Of one request, in one task."""

    def __init__(self, engine: Engine, incoming: Incoming, sink: Sink) -> None:
        self._engine = engine
        self._incoming = incoming
        self._sink = sink
        self._config = config = engine.config
        degraded, rests = bool(sink.notes.degraded), engine.storing.rests
        asked, most = incoming.request, config.limits.max_messages
        self._exchange = Exchange(
            asked,
            engine.sealer,
            most,
            now(),
            random.random(),
            degraded=degraded,
            rests=rests,
            refusals=engine.refusals,
        )
        self._choice: Choice
        self._cancelled: asyncio.CancelledError | None = None
        self._interrupt: Interrupt | None = None
        # The response of the upstream: its connection, its body, the piece of it that is being read.
        self._post: AbstractAsyncContextManager[HttpResponse] | None = None
        self._body: AsyncIterator[bytes]
        self._piece, self._at = b"", 0
        self._received = 0
        self._came = now()
        # Of the log, when the conversation was looked for in it.
        self._epoch: int | None = None
        # The same, when what the exchange has of it now was looked up.
        self._known_epoch: int | None = None
        # For the notes.
        self._is_noted = False
        self._guessed: Use | None = None
        self._phases: dict[str, float] = {}
        self._began = self._first = 0.0

    async def run(self) -> None:
        """Perform what the exchange wants, up to its end."""
        command = self._exchange.begin()
        try:
            while command is not None:
                try:
                    event = await self._performed(command)
                    command = await self._next_command(command, event)
                except asyncio.CancelledError as error:
                    self._cut(error)
        finally:
            await self._hang_up()
            self._note()
        if self._cancelled is not None:
            raise self._cancelled

    def _cut(self, error: asyncio.CancelledError) -> None:
        """The task was cancelled: the exchange is interrupted before anything else is performed."""
        self._cancelled, self._interrupt = error, Interrupt("cancelled", self._sink.stop)

    async def _next_command(self, command: Command, event: Event) -> Command | None:
        """The command that follows ``event``: what is read of much is read on a thread."""
        size = self._received
        if size and isinstance(event, Answered):
            if isinstance(command, Receive) and event.value:
                size = self._exchange.unread + len(event.value)
            elif isinstance(command, (Write, Start)):
                size = 0
        if size < LARGE:
            return self._exchange.on(event, now())
        return await self._engine.apart(size, partial(self._exchange.on, event, now()))

    async def _performed(self, command: Command) -> Event:
        """What became of ``command``."""
        if self._interrupt is not None:
            interrupt, self._interrupt = self._interrupt, None
            await self._hang_up()
            return interrupt
        try:
            return Answered(await self._perform(command))
        except ClientGone:
            await self._hang_up()
            return Interrupt("client_gone")
        except Exception as error:  # whatever it is, it is raised in the exchange, which knows what to do
            return Failed(error)

    async def _perform(self, command: Command) -> Any:
        if self._post is not None and not isinstance(command, (Receive, Write, Start)):
            self._note_stream()
            await self._hang_up()
        match command:
            case Receive():
                return await self._passed_on()
            case Write(data=data):
                return await self._sink.write(data)
            case Start():
                return await self._sink.start(command.status, command.headers)
            case End(data=data):
                self._note()
                return await self._sink.end(data)
            case Send():
                return await self._send(command)
            case Store():
                return await self._shielded(command)
            case LookUp() | ReadLines() | ReadHistory() | OpenKept() | FindErased() | FindErasure():
                return await self._look_up(command)
            case Unstored(scope=scope):
                return self._engine.storing.unstored(self._incoming.grant.tenant, scope)
            case KeepHistory():
                return self._engine.histories.keep(self._incoming.grant.tenant, command.history, command.weight)
            case Choose() | NextPlace() | Judged():
                return await self._named(self._route(command))
            case Settle(route=route):
                return self._settings(route)
            case Sleep(seconds=seconds):
                self._add_phase("wait", seconds)
                return await asyncio.sleep(seconds)
            case _:
                assert_never(command)

    # -- where to --------------------------------------------------------------------------------------------------

    def _route(self, command: Choose | NextPlace | Judged) -> Route | None:
        match command:
            case Choose():
                incoming = self._incoming
                front, own = incoming.request.front, incoming.own
                self._phases.setdefault("recognise", 0.0)
                self._choice = self._engine.router.choose(
                    command.model, incoming.grant, command.origins, command.end_user, front, own
                )
                return self._choice.current
            case NextPlace():
                left = self._choice.current.upstream
                if not self._choice.current.payer and says_key_refused(command.reason):
                    self._engine.router.note_answer(left, 401)
                if not self._choice.fail_over(command.reason):
                    return None
                self._engine.metrics.count(FAILOVERS, {"upstream": left})
                return self._choice.current
            case Judged(error=None):
                self._choice.succeeded()
            case Judged(error=error) if error is not None and is_of_the_place(error):
                self._choice.failed()
        return None

    async def _named(self, route: Route | None) -> Route | None:
        """``route`` with the account of its client's credential, where the provider alone knows that."""
        own = self._incoming.own
        if route is None or own is None or not route.payer or route.target.account_known or not own.expires:
            return route
        account = await self._engine.principals.account(own)
        if not account:
            return route
        target = msgspec.structs.replace(route.target, account=account, account_known=True)
        return msgspec.structs.replace(route, target=target)

    def _settings(self, route: Route) -> Any:
        grant, headers = self._incoming.grant, self._incoming.request.headers
        endpoint = route.target.endpoint.settings
        return self._engine.effective.of(self._config.settings, route.settings, grant.settings, headers, endpoint)

    # -- the log ---------------------------------------------------------------------------------------------------

    async def _look_up(self, question: InLog) -> Any:
        """What a log answers. Raises ``Unavailable`` where the exchange is to do without."""
        engine, tenant = self._engine, self._incoming.grant.tenant
        started = time.monotonic()
        if isinstance(question, ReadHistory):
            known = engine.histories.take(tenant, question.head)
            if known is not None:
                return known
        lookup = partial(_looked_up, engine, tenant, question)
        answered = await engine.storing.try_lookup(partial(engine.in_thread, lookup))
        self._phases["recognise"] = self._phases.get("recognise", 0.0) + time.monotonic() - started
        if answered is None:
            raise Unavailable
        found, epoch = answered
        if epoch is not None:
            engine.histories.drop_erased(tenant, epoch)
            self._epoch = epoch if self._epoch is None else self._epoch
            before = self._known_epoch
            if isinstance(question, FindErasure) or before is None:
                self._known_epoch = epoch
            if isinstance(question, FindErasure):
                return before not in (None, epoch)
        return found

    async def _shielded(self, command: Store) -> bool:
        """Store to the end; where the task is cancelled meanwhile, the exchange is interrupted behind it."""
        task = asyncio.ensure_future(self._store(command))
        try:
            return await to_the_end(task)
        except asyncio.CancelledError as error:
            self._cut(error)
            return task.result()

    async def _store(self, command: Store) -> bool:
        started = time.monotonic()
        engine, tenant, size = self._engine, self._incoming.grant.tenant, len(self._incoming.request.body)
        self._guessed = await engine.apart(self._received, partial(estimate, command.step, size)) or self._guessed
        stored = True
        if command.kept is not None:
            keep = partial(engine.withheld.keep, *command.kept, tenant, command.scope)
            stored = await engine.storing.try_lookup(partial(engine.in_thread, keep)) is not None
        if command.entry is not None:
            stored = await self._record(command.entry) and stored
        self._phases["store"] = time.monotonic() - started
        return stored

    async def _record(self, entry: AppendRequest) -> bool:
        """Store a step without what was erased since its conversation was looked up; of a request for which nothing was
        looked up, since it began. ``False`` where it waits in the spool, or its conversation was deleted.
        """
        engine, tenant = self._engine, self._incoming.grant.tenant
        left: AppendRequest | None = msgspec.structs.replace(entry, epoch=self._epoch)
        if self._epoch is None:
            left = await self._without_erased(entry)
        while left is not None:
            try:
                return await engine.record(tenant, left)
            except ErasedSinceError:
                left = await self._without_erased(entry)
        return False

    async def _without_erased(self, entry: AppendRequest) -> AppendRequest | None:
        """``entry`` as it is to be stored now, ``None`` where its session was deleted."""
        engine, tenant = self._engine, self._incoming.grant.tenant
        ask = partial(engine.in_thread, lambda: (engine.storing.without_erased(tenant, entry, self._came),))
        answered = await engine.storing.try_lookup(ask)
        return entry if answered is None else answered[0]  # what cannot be asked goes to the spool, which asks then

    # -- the upstream ----------------------------------------------------------------------------------------------

    async def _send(self, command: Send) -> Head:
        engine, plan, limits = self._engine, command.plan, self._config.timeouts
        # what an earlier attempt took was for nothing
        self._add_phase("retries", self._phases.pop("first_byte", 0.0) + self._phases.pop("stream", 0.0))
        self._received, self._piece, self._at = 0, b"", 0
        self._began, self._first = time.monotonic(), 0.0
        if plan.waits:
            await asyncio.get_running_loop().run_in_executor(engine.executor, plan.authenticate, command.body)
            self._add_phase("sign_in", time.monotonic() - self._began)
            self._began = time.monotonic()
        else:
            plan.authenticate(command.body)
        timeouts = Timeouts(limits.connect, limits.first_byte, limits.idle, limits.total)
        transport = engine.transport(self._choice.current.place.proxy)
        post = transport.post(plan.url, plan.headers, command.body, timeouts)
        try:
            response = await post.__aenter__()
        except NetworkError as error:
            self._add_phase("retries", time.monotonic() - self._began)
            engine.note_attempt(self._choice.current, "no answer" if isinstance(error, PhaseTimeout) else "unreachable")
            raise
        engine.note_attempt(self._choice.current, str(response.status))
        self._post, self._body = post, aiter(response.body)
        route, own = self._choice.current, self._incoming.own
        if route.payer and own is not None:
            engine.answered(route, own, response.status, response.headers)
        return Head(response.status, response.headers)

    async def _passed_on(self) -> bytes:
        """The next piece that is for the exchange, or too much to read here; the client gets those before it."""
        exchange, sink = self._exchange, self._sink
        while piece := await self._receive():
            data = exchange.take(piece) if exchange.unread + len(piece) < LARGE else None
            if data is None:
                break
            if data:
                await sink.write(data)
        return piece

    async def _receive(self) -> bytes:
        """The next piece; what comes without a pause leaves the loop to others in between."""
        while self._at >= len(self._piece):
            try:
                self._piece, self._at = await anext(self._body), 0
            except StopAsyncIteration:
                self._note_stream()
                await self._hang_up()
                return b""
            except BaseException as error:
                self._note_stream()
                if isinstance(error, NetworkError):
                    engine = self._engine
                    engine.metrics.count(BROKEN, {"upstream": self._choice.current.upstream})
                post, self._post = self._post, None
                if post is not None:
                    await post.__aexit__(type(error), error, error.__traceback__)
                raise
            self._first = self._first or time.monotonic()
        piece = self._piece if len(self._piece) <= PIECE else self._piece[self._at : self._at + PIECE]
        self._at += len(piece)
        before, self._received = self._received, self._received + len(piece)
        if before // PIECE != self._received // PIECE:
            await asyncio.sleep(0)
        return piece

    async def _hang_up(self) -> None:
        post, self._post = self._post, None
        if post is not None:
            await post.__aexit__(None, None, None)

    # -- the notes -------------------------------------------------------------------------------------------------

    def _add_phase(self, name: str, seconds: float) -> None:
        if seconds:
            self._phases[name] = self._phases.get(name, 0.0) + seconds

    def _note_stream(self) -> None:
        if self._first:
            self._phases["first_byte"] = self._first - self._began
            self._phases["stream"] = time.monotonic() - self._first

    def _note(self) -> None:
        """Note what is known: before the last byte goes out, which some wait for, and at the end."""
        notes, report = self._sink.notes, self._exchange.report()
        notes.report, notes.guessed = report, self._guessed
        notes.phases.update(self._phases)
        if report.degraded or not self._is_noted:
            notes.degraded = "store" if report.degraded else ""
        self._is_noted = True


def _looked_up(engine: Engine, tenant: str, question: InLog) -> tuple[Any, int | None]:
    """Look up in the log of ``tenant``, the first time with its epoch; on a thread for the store."""
    if isinstance(question, OpenKept):
        return engine.withheld.open(tenant, question.scope, question.responses), None
    if isinstance(question, FindErased):
        return engine.erasures.erased(tenant, question.responses) if engine.erasures is not None else frozenset(), None
    log = engine.logs.of(tenant)
    if isinstance(question, FindErasure):
        return None, log.epoch()
    epoch = log.epoch() if isinstance(question, LookUp) else None
    return lookups.answer(log, question), epoch
