"""The asyncio face of a session: the same machine, driven by an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar, Unpack

from thinkback.drive.asynchronous import AsyncDriver
from thinkback.drive.http import AsyncHttpx2Transport, AsyncTransport
from thinkback.drive.shielded import to_the_end
from thinkback.drive.threads import in_thread
from thinkback.model.commits import Commit, Message
from thinkback.model.deltas import Delta, Status
from thinkback.session import requests, turns
from thinkback.session.reply import Reply
from thinkback.session.requests import CallOptions, Options, Prompt
from thinkback.session.stream import busy, reply_of

if TYPE_CHECKING:
    from thinkback.session.configuration import Sources
    from thinkback.session.conversation import Conversation
    from thinkback.session.history.compacting import CompactionOptions

T = TypeVar("T")


class AsyncCalls:
    """``chat``, ``stream`` and ``generate`` as coroutines; tools may be coroutine functions. Options as there."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def chat(self, prompt: Prompt, **options: Unpack[CallOptions]) -> Reply:
        """Ask and run the turn to its end."""
        return await _finished(self.stream(prompt, **options))

    async def generate(self, tool_results: Mapping[str, str] | None = None, **options: Unpack[CallOptions]) -> Reply:
        """Go on without a new message."""
        read = requests.read_options(options)
        stream = AsyncReplyStream(self._conversation, None, read)
        await stream.check()
        conversation = self._conversation
        await _settle(conversation)
        await _take(conversation)
        try:
            await in_store(conversation, lambda: turns.answer(conversation, tool_results or {}, read))
        except BaseException:
            await to_the_end(in_store(conversation, conversation.holder.release))
            raise
        return await _finished(stream)

    async def compact(
        self, strategy: str | None = None, tail: int | None = None, **options: Unpack[CompactionOptions]
    ) -> Commit:
        """``session.compaction.run``, for a summary or shorter thoughts that a model writes."""
        from thinkback.session.history.compacting import Compactor

        conversation = self._conversation
        await _settle(conversation)
        await in_store(conversation, conversation.refresh)
        compactor = Compactor(conversation)
        asked = compactor.parse_request(strategy, tail, options)
        if asked.wish.strategy == "thoughts":
            from thinkback.session.history.shortening import Shortening

            shortening = Shortening(conversation, asked)
            plan, edits = await shortening.ask_async()
            return await in_store(conversation, lambda: compactor.store(plan, edits))
        written = None
        if asked.wish.strategy == "model":
            from thinkback.session.history.summarising import Summarising

            written = await Summarising(conversation, asked, compactor.outline()).run_async()
        return await in_store(conversation, lambda: compactor.make(asked, written))

    def stream(self, prompt: Prompt, **options: Unpack[CallOptions]) -> AsyncReplyStream:
        """Ask and yield deltas (``async for``)."""
        return AsyncReplyStream(self._conversation, prompt, requests.read_options(options))


class AsyncReplyStream:
    """Deltas of a turn. Nothing happens until it is iterated; ``aclose``, from any task, or abandoning it interrupts.

    ``reply`` is there once the turn is over, also after an error, with what arrived.
    """

    def __init__(self, conversation: Conversation, prompt: Prompt | None, options: Options) -> None:
        self._conversation = conversation
        self._prompt = prompt
        self._options = options
        self._message: Message | None = None
        self._is_checked = False
        # What needs no place to be read is refused here.
        if prompt is not None and not requests.has_parts(prompt):
            self._message = requests.message(prompt)
        self._driver: AsyncDriver | None = None
        self._deltas: AsyncGenerator[Delta, None] | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._closed = False

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        task = self._waiting = asyncio.current_task()
        try:
            if self._deltas is None:
                self._deltas = await self._start()
            return await anext(self._deltas)
        except StopAsyncIteration:
            outcome = self._driver.outcome if self._driver is not None else None
            if outcome is not None and outcome.error is not None:
                raise turns.explained(self._conversation, outcome.error) from None
            raise
        except asyncio.CancelledError:
            # ``aclose`` in another task cancels the one that waits here, as asyncio.timeout does, and takes it back.
            if self._closed and task is not None and task.uncancel() == 0:
                raise StopAsyncIteration from None
            raise
        finally:
            self._waiting = None

    async def check(self) -> None:
        """Everything that can be wrong before a request is, once; files are read on the store's executor."""
        if self._is_checked:
            return
        self._is_checked = True
        conversation = self._conversation
        configuration = conversation.configure(await in_store(self._conversation, conversation.all_sources))
        if self._message is None and self._prompt is not None:
            self._message = requests.message(self._prompt, configuration.target.endpoint.dialect)
        authenticator = turns.preflight(conversation, configuration, self._options, self._message)
        if authenticator.waits:
            await asyncio.wrap_future(in_thread(authenticator.prepare, threading.Semaphore()))

    async def _start(self) -> AsyncGenerator[Delta, None]:
        conversation = self._conversation
        if self._closed:
            return _nothing()
        await self.check()
        await _settle(conversation)
        await in_store(conversation, conversation.refresh)
        sources = await in_store(conversation, conversation.all_sources)
        configuration = conversation.configure(sources)
        told: list[Status] = []
        if self._message is not None and turns.asks_for_summaries(configuration, self._options):
            from thinkback.session.history.summarising import before_turn_async

            told = await before_turn_async(conversation, self._options)
        await _take(conversation)
        try:
            return await self._begin(sources, told)
        except BaseException:
            await to_the_end(in_store(conversation, conversation.holder.release))
            raise

    async def _begin(self, sources: Sources, told: Sequence[Delta]) -> AsyncGenerator[Delta, None]:
        """The turn, which has the lease on its branch."""
        conversation = self._conversation
        is_new = self._message is not None
        await in_store(conversation, partial(conversation.begin, is_new=is_new))
        configuration = turns.begin(conversation, conversation.configure(sources), sources, is_new=is_new)
        turn, host = turns.turn_of(conversation, configuration, self._message, self._options)
        host.is_in_loop = True
        place = configuration.place
        transport = place.transport or AsyncHttpx2Transport(place.proxy, place.verify)
        self._driver = AsyncDriver(
            turn,
            host,
            conversation.history,
            conversation.line,
            transport,
            host.permitting.functions,
            self._options.timeouts or place.timeouts,
            conversation.store.executor,
            host.permitting.approval,
            turns.watch_of(conversation, configuration, self._message, self._options),
            conversation.holder,
        )
        conversation.last_turn.enter(self, self._driver)
        return _perform(self._driver, transport if place.transport is None else None, told)

    @property
    def reply(self) -> Reply:
        """The reply, once the turn is over."""
        outcome = self._driver.outcome if self._driver is not None else None
        return reply_of(outcome, self._message.text if self._message is not None else None)

    async def aclose(self) -> None:
        """End the turn now; what arrived is stored as interrupted."""
        self._closed = True
        if self._waiting is not None:
            self._waiting.cancel()
            if self._driver is not None and self._driver.is_running:
                await self._driver.over.wait()
        elif self._deltas is not None:
            await self._deltas.aclose()

    async def __aenter__(self) -> AsyncReplyStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _finished(stream: AsyncReplyStream) -> Reply:
    async for _ in stream:
        pass
    return stream.reply


async def in_store(conversation: Conversation, work: Callable[[], T]) -> T:
    """``work`` on the store's executor: it reads or writes the log."""
    return await asyncio.get_running_loop().run_in_executor(conversation.store.executor, work)


async def _take(conversation: Conversation) -> None:
    """Take the lease on the branch that a turn goes on with; waiting keeps no thread. Raises ``BusyError``."""
    conversation.line.refuse_detached()
    tries = conversation.holder.takes(conversation.line.branch)
    while (seconds := await in_store(conversation, lambda: next(tries, None))) is not None:
        await asyncio.sleep(seconds)


async def _settle(conversation: Conversation) -> None:
    """End an abandoned turn of ``conversation``; refuse while one is under way."""
    stream, driver = conversation.last_turn.stream, conversation.last_turn.driver
    if not isinstance(driver, AsyncDriver) or not driver.is_running:
        conversation.last_turn.settle()
    elif stream is None:
        await driver.over.wait()  # the event loop is closing what nobody holds any more
    elif isinstance(stream, AsyncReplyStream) and stream._waiting is None:
        await stream.aclose()
    else:
        raise busy()


async def _perform(
    driver: AsyncDriver, transport: AsyncTransport | None, told: Sequence[Delta]
) -> AsyncGenerator[Delta, None]:
    """What is ``told``, then the deltas of ``driver``; a transport of our own is closed behind them. Holds no stream,
    so that an abandoned one goes at once."""
    try:
        for delta in told:
            yield delta
        async with aclosing(driver.run()) as deltas:
            async for delta in deltas:
                yield delta
    finally:
        if transport is not None:
            await to_the_end(transport.aclose())


async def _nothing() -> AsyncGenerator[Delta, None]:
    """A stream that was closed before it began."""
    return
    yield
