"""What came into the session of a chat from elsewhere: it is shown before anything is done on top of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thinkback.cli import terminal
from thinkback.cli.chat import resume

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat
    from thinkback.model.commits import Commit
    from thinkback.session.conversation import Conversation


class News:
    """How far the person has seen the line that the chat stands on, and which commits are the chat's own."""

    def __init__(self) -> None:
        self._conversation: Conversation | None = None
        self._at: tuple[str, str] = "", ""
        self._seen = 0
        self._last = ""
        self._own: set[str] = set()

    def follow(self, chat: Chat) -> None:
        """The chat may stand elsewhere than before; what is there counts as seen."""
        conversation = chat.session.conversation
        at = conversation.line.branch, conversation.line.looks_at
        if conversation is not self._conversation:
            self._conversation, self._own = conversation, set()
            chat.session.on("post_commit", self._stored)
        elif at == self._at:
            return
        self._at = at
        self._mark(conversation.history.commits)

    def tell(self, chat: Chat) -> bool:
        """Show what came since; whether there was anything."""
        commits = chat.session.log()
        if self._last and all(commit.hash != self._last for commit in reversed(commits)):
            terminal.note("another process moved the branch; it now ends with:")
            resume.show(chat, 1)
            self._mark(commits)
            return True
        since, self_made = self._seen, self._own
        self._mark(commits)
        new = [commit for commit in commits[since:] if commit.hash not in self_made]
        if not new:
            return False
        terminal.note(f"{terminal.plural(len(new), 'commit')} from elsewhere:")
        resume.draw(chat, commits, new)
        return True

    def _mark(self, commits: Sequence[Commit]) -> None:
        self._seen, self._last = len(commits), commits[-1].hash if commits else ""
        self._own = set()

    def _stored(self, commits: object) -> None:
        if isinstance(commits, tuple):
            self._own.update(commit.hash for commit in commits)
            self._last = commits[-1].hash if commits else self._last
