"""Answers that are nothing but thought: the model is asked to go on, a few times.

What asks is a message of ours, marked as such in the log. Promises: deltas of all attempts come through one iterator;
an answer, a call, a refusal or an error ends it. Must not: hide that there was no answer in the end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from thinkback.model.deltas import Delta, Status
from thinkback.session import requests
from thinkback.session.reply import Reply
from thinkback.session.stream import ReplyStream

if TYPE_CHECKING:
    from thinkback.session.aio import AsyncReplyStream
    from thinkback.session.requests import CallOptions, Prompt
    from thinkback.session.session import Session

TIMES = 3
PROMPT = "You have thought about it and said nothing yet. Give your answer now."
MARK = {"automatic": "continuation"}
"""What the log says of the message: ``metadata`` of an annotation."""
_UNANSWERED = frozenset({"max_tokens_in_reasoning", "reasoning_only"})


def chat(session: Session, prompt: Prompt, *, times: int = TIMES, **options: Unpack[CallOptions]) -> Reply:
    """``session.chat``, continued at most ``times`` times while the answer is nothing but thought."""
    continued = stream(session, prompt, times=times, **options)
    for _ in continued:
        pass
    return continued.reply


def stream(session: Session, prompt: Prompt, *, times: int = TIMES, **options: Unpack[CallOptions]) -> ContinuedStream:
    """``session.stream`` in the same way."""
    return ContinuedStream(session, session.stream(prompt, **options), times, options)


async def chat_async(session: Session, prompt: Prompt, *, times: int = TIMES, **options: Unpack[CallOptions]) -> Reply:
    """``session.aio.chat`` in the same way."""
    continued = stream_async(session, prompt, times=times, **options)
    async for _ in continued:
        pass
    return continued.reply


def stream_async(
    session: Session, prompt: Prompt, *, times: int = TIMES, **options: Unpack[CallOptions]
) -> AsyncContinuedStream:
    """``session.aio.stream`` in the same way."""
    return AsyncContinuedStream(session, session.aio.stream(prompt, **options), times, options)


def is_unanswered(reply: Reply) -> bool:
    """Whether a turn came to its end in good order and without an answer, so that asking again may bring one."""
    return reply.state == "completed" and reply.is_reasoning_only and reply.outcome in _UNANSWERED


class _Attempts:
    """The replies so far, the last one without its successor."""

    def __init__(self, times: int) -> None:
        self._times = times
        self.replies: list[Reply] = []

    def goes_on(self, reply: Reply) -> Status | None:
        """What to tell before the next attempt; ``None`` where there is none."""
        if len(self.replies) >= self._times or not is_unanswered(reply):
            return None
        self.replies.append(reply)
        return Status("continuing", f"{reply.reason} ({len(self.replies)} of {self._times})")

    def last(self, reply: Reply) -> Reply:
        """``reply``, as one to what the caller asked."""
        if self.replies:
            reply.prompt = self.replies[0].prompt
        return reply


class ContinuedStream:
    """Deltas of a turn and of those that continue it. Otherwise it is as a ``ReplyStream``."""

    def __init__(self, session: Session, first: ReplyStream, times: int, options: CallOptions) -> None:
        self._session = session
        self._stream = first
        self._options = options
        self._attempts = _Attempts(times)

    def __iter__(self) -> Iterator[Delta]:
        yield from self._stream
        while told := self._attempts.goes_on(self._stream.reply):
            self._stream = self._next()
            yield told
            yield from self._stream

    def _next(self) -> ReplyStream:
        following = ReplyStream(self._session.conversation, None, requests.read_options(self._options))
        self._session.commit(PROMPT, metadata=MARK)
        return following

    @property
    def reply(self) -> Reply:
        """The reply of the last turn. Raises ``ThinkbackError`` while it is under way."""
        return self._attempts.last(self._stream.reply)

    @property
    def unanswered(self) -> tuple[Reply, ...]:
        """The replies before it."""
        return tuple(self._attempts.replies)

    def close(self) -> None:
        """End the turn now; what arrived is stored as interrupted."""
        self._stream.close()

    def __enter__(self) -> ContinuedStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncContinuedStream:
    """The same for asyncio."""

    def __init__(self, session: Session, first: AsyncReplyStream, times: int, options: CallOptions) -> None:
        self._session = session
        self._stream = first
        self._options = options
        self._attempts = _Attempts(times)

    async def __aiter__(self) -> AsyncGenerator[Delta, None]:
        async for delta in self._stream:
            yield delta
        while told := self._attempts.goes_on(self._stream.reply):
            self._stream = await self._next()
            yield told
            async for delta in self._stream:
                yield delta

    async def _next(self) -> AsyncReplyStream:
        from thinkback.session.aio import AsyncReplyStream, in_store

        following = AsyncReplyStream(self._session.conversation, None, requests.read_options(self._options))
        await in_store(self._session.conversation, lambda: self._session.commit(PROMPT, metadata=MARK))
        return following

    @property
    def reply(self) -> Reply:
        """The reply of the last turn. Raises ``ThinkbackError`` while it is under way."""
        return self._attempts.last(self._stream.reply)

    @property
    def unanswered(self) -> tuple[Reply, ...]:
        """The replies before it."""
        return tuple(self._attempts.replies)

    async def aclose(self) -> None:
        """End the turn now; what arrived is stored as interrupted."""
        await self._stream.aclose()

    async def __aenter__(self) -> AsyncContinuedStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
