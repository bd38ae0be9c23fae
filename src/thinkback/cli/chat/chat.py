"""The state of a chat: the log, the session that is open, where it is shown and read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, TextIO

from thinkback.cli.chat import fresh
from thinkback.cli.chat.news import News
from thinkback.cli.chat.toolbox import Toolbox
from thinkback.cli.referee import StandIn

if TYPE_CHECKING:
    from types import TracebackType

    from thinkback.cli.chat.drawing.look import Look
    from thinkback.model.blocks import Media
    from thinkback.session.requests import Prompt
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore


class Reader(Protocol):
    """Where lines come from. ``is_live``: a person sits there and can be asked."""

    is_live: bool

    def lines(self, chat: Chat) -> Iterator[str]:
        """What is said, message by message, until it is over."""

    def ask(self, question: str, default: str = "", *, secret: bool = False) -> str:
        """One more line, to a question; ``default`` can be changed, and a ``secret`` is not shown. Raises ``EOFError``
        where nobody answers.
        """


class Chat:
    """A conversation under way. ``code`` is the exit code of the last turn; ``is_over`` ends the loop.

    ``is_summary_told``: how a summary of withheld thinking is asked for.
    ``attached`` goes along with the next message.
    ``begun`` are the ids of sessions begun here: those that stay unused are forgotten. Where one was named, its
    settings at the beginning say whether something was set in it since.
    ``misnamed`` says of sessions, by their ids, whether nothing came of any question but that no such model is known.
    ``stand_in`` is where requests to the referee go; whoever gave it ends it.
    ``system`` is the system prompt that the next question brings, if it brings one.
    """

    def __init__(
        self,
        store: SessionStore,
        session: Session,
        reader: Reader,
        stream: TextIO,
        aside: TextIO | None = None,
        stand_in: StandIn | None = None,
    ) -> None:
        from thinkback.cli.chat.drawing.screen import Screen

        self.store = store
        self.session = session
        self.reader = reader
        self.stand_in = stand_in or StandIn()
        self.code = 0
        self.is_over = False
        self.attached: list[Media | str] = []
        self.begun: dict[str, Mapping[str, str] | None] = {}
        self.misnamed: dict[str, bool] = {}
        self.is_summary_told = False
        self.system: str | None = None
        self.screen = Screen(stream, self._look, aside=aside)
        self.toolbox = Toolbox()
        self.news = News()

    def __enter__(self) -> Chat:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.toolbox.close()
        for session in self.begun:
            if self._is_unused(session):
                fresh.forget(self.store.log, session)

    @property
    def is_kept(self) -> bool:
        """Whether the session is still there when the chat is over."""
        return bool(self.session.log()) and not self._is_unused(self.session.id)

    def _is_unused(self, session: str) -> bool:
        if session not in self.begun:
            return False
        is_misnamed = self.misnamed.get(session, False)
        return fresh.is_unused(self.store.log, session, self.begun[session], is_misnamed=is_misnamed)

    def prompt(self, text: str) -> Prompt:
        """``text`` with what is attached, which is gone then: quoted files behind it, media as parts."""
        attached, self.attached = self.attached, []
        whole = "\n\n".join([text, *(one for one in attached if isinstance(one, str))])
        media = [one for one in attached if not isinstance(one, str)]
        return [whole, *media] if media else whole

    def _look(self) -> Look:
        """How turns are drawn, as the settings want it now."""
        from thinkback.cli.chat.drawing.look import look_of, unfolded

        place = self.session.conversation.configure().place
        look = look_of(self.session.settings, place.endpoint, place.model)
        return look if self.reader.is_live else unfolded(look)
