"""A turn under way, as its caller sees it."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from thinkback.drive.sync import SyncDriver
from thinkback.errors import ThinkbackError
from thinkback.model.commits import Message
from thinkback.model.deltas import Delta
from thinkback.session import turns
from thinkback.session.reply import Reply
from thinkback.session.requests import Options
from thinkback.turn.events import Outcome

if TYPE_CHECKING:
    from thinkback.drive.asynchronous import AsyncDriver
    from thinkback.session.aio import AsyncReplyStream
    from thinkback.session.conversation import Conversation


def busy() -> ThinkbackError:
    """The error for a second turn beside one that runs."""
    return ThinkbackError(
        "a turn of this session is under way",
        next_actions=(
            "a session runs one turn at a time: let it end first",
            "or open the session a second time and go on in a branch: store.session(...).branches.beside()",
        ),
    )


def reply_of(outcome: Outcome | None, prompt: str | None) -> Reply:
    """The reply of a turn that is over."""
    if outcome is None:
        raise ThinkbackError("the turn is not over", next_actions=("iterate the stream to its end, or close it",))
    return Reply(outcome, prompt)


class ReplyStream:
    """Deltas of a turn. Nothing happens until it is iterated; closing or abandoning it then interrupts the turn.

    ``reply`` is there once the turn is over, also after an error, with what arrived.
    """

    def __init__(self, conversation: Conversation, message: Message | None, options: Options) -> None:
        turns.preflight(conversation, conversation.configure(), options, message).prepare()
        self._conversation = conversation
        self._message = message
        self._options = options
        self._driver: SyncDriver | None = None
        self._deltas: Generator[Delta, None, None] | None = None

    def __iter__(self) -> Iterator[Delta]:
        if self._deltas is None:
            conversation = self._conversation
            if self._message is not None and turns.asks_for_summaries(conversation.configure(), self._options):
                from thinkback.session.history.summarising import before_turn

                yield from before_turn(conversation, self._options)
            self._driver = turns.driver_of(conversation, self._message, self._options)
            conversation.last_turn.enter(self, self._driver)
            self._deltas = self._driver.run()
        yield from self._deltas
        outcome = self._driver.outcome if self._driver is not None else None
        if outcome is not None and outcome.error is not None:
            raise turns.explained(self._conversation, outcome.error)

    @property
    def reply(self) -> Reply:
        """The reply. Raises ``ThinkbackError`` while the turn is under way."""
        outcome = self._driver.outcome if self._driver is not None else None
        return reply_of(outcome, self._message.text if self._message is not None else None)

    def display(self) -> None:
        """Run the turn to its end and show it while it comes: as the output of a notebook's cell, else as text."""
        from thinkback.session.transcripts.notebook import show

        show(self)

    def close(self) -> None:
        """End the turn now; what arrived is stored as interrupted. Raises ``ThinkbackError`` from another thread."""
        if self._deltas is None:
            return
        if inspect.getgeneratorstate(self._deltas) == inspect.GEN_RUNNING:
            raise busy()
        self._deltas.close()

    def __enter__(self) -> ReplyStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LastTurn:
    """The last turn of a session, which may be under way. It does not keep the stream alive, so that abandoning that
    ends the turn.
    """

    def __init__(self) -> None:
        self.driver: SyncDriver | AsyncDriver | None = None
        self._stream: weakref.ref[ReplyStream | AsyncReplyStream] | None = None

    def enter(self, stream: ReplyStream | AsyncReplyStream, driver: SyncDriver | AsyncDriver) -> None:
        """The turn that ``driver`` runs for ``stream`` begins."""
        self._stream, self.driver = weakref.ref(stream), driver

    @property
    def stream(self) -> ReplyStream | AsyncReplyStream | None:
        """Its stream, as long as somebody holds it."""
        return self._stream() if self._stream is not None else None

    def settle(self) -> None:
        """End it where it was abandoned. Raises ``ThinkbackError`` while it is under way."""
        stream = self.stream
        if isinstance(stream, ReplyStream):
            stream.close()
        elif self.driver is not None and self.driver.is_running:
            raise busy()


def finished(stream: ReplyStream) -> Reply:
    """The reply of a turn that is run to its end."""
    for _ in stream:
        pass
    return stream.reply
