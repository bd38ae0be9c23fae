"""The asyncio face of a session: the same machine, driven by an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thinkback.drive.asynchronous import AsyncDriver
from thinkback.drive.http import AsyncHttpx2Transport
from thinkback.errors import ThinkbackError
from thinkback.model.commits import Message
from thinkback.model.deltas import Delta
from thinkback.session import requests
from thinkback.session.reply import Reply

if TYPE_CHECKING:
    from thinkback.session.session import Session


class AsyncCalls:
    """``chat``, ``stream`` and ``generate`` as coroutines; tools may be coroutine functions. Options as there."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def chat(self, prompt: str | Sequence[Mapping[str, Any]], **options: Any) -> Reply:
        """Ask and run the turn to its end."""
        return await self._finished(self.stream(prompt, **options))

    async def generate(self, tool_results: Mapping[str, str] | None = None, **options: Any) -> Reply:
        """Go on without a new message."""
        self._session._add_results(tool_results or {})
        return await self._finished(AsyncReplyStream(self._session, None, options))

    def stream(self, prompt: str | Sequence[Mapping[str, Any]], **options: Any) -> AsyncReplyStream:
        """Ask and yield deltas (``async for``)."""
        return AsyncReplyStream(self._session, requests.message(prompt), options)

    async def _finished(self, stream: AsyncReplyStream) -> Reply:
        async for _ in stream:
            pass
        return stream.reply


class AsyncReplyStream:
    """Deltas of a turn under way; ``aclose`` interrupts it."""

    def __init__(self, session: Session, message: Message | None, options: Mapping[str, Any]) -> None:
        self._session = session
        self._message = message
        self._options = options
        self._driver: AsyncDriver | None = None
        self._deltas = self._run()

    async def _run(self) -> AsyncIterator[Delta]:
        session, place = self._session, self._session._place
        turn, runnable = session._turn(self._message, self._options)
        transport = place.transport or AsyncHttpx2Transport(place.proxy, place.verify)
        timeouts = self._options.get("timeouts") or place.timeouts
        self._driver = AsyncDriver(
            turn, session._history, session._store.log, session.id, transport, runnable, timeouts, session._store.executor
        )
        deltas = self._driver.run()
        try:
            async for delta in deltas:
                yield delta
        finally:
            await deltas.aclose()  # type: ignore[attr-defined]
            if place.transport is None:
                await transport.aclose()

    async def __aiter__(self) -> AsyncIterator[Delta]:
        async for delta in self._deltas:
            yield delta
        outcome = self._driver.outcome if self._driver else None
        if outcome is not None and outcome.error is not None:
            raise outcome.error

    @property
    def reply(self) -> Reply:
        """The reply, once the turn is over."""
        outcome = self._driver.outcome if self._driver else None
        if outcome is None:
            raise ThinkbackError("the turn is not over", next_actions=("iterate the stream to its end, or aclose it",))
        return Reply(outcome, self._message.text if self._message is not None else None)

    async def aclose(self) -> None:
        """End the turn now; what arrived is stored as interrupted."""
        await self._deltas.aclose()  # type: ignore[attr-defined]
