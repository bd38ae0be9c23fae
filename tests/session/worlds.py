"""Sessions in several stores at once: the same time and ids in each, and what can be seen of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from tests.session.naive import Record, tokens
from thinkback.model.commits import Commit, Priority
from thinkback.model.texts import text_of
from thinkback.session.session import Session
from thinkback.session.store import SessionStore

PLACE = {"endpoint": "deepseek", "model": "deepseek-v4-pro", "api_key": "sk-of-the-tests", "account": "tests"}


class Refused(NamedTuple):
    """What an operation said instead of doing it."""

    error: str
    message: str
    details: dict[str, Any]


class Clock:
    """Time and fresh ids, the same again after ``restart`` with the same number."""

    def __init__(self) -> None:
        self.restart(0)

    def restart(self, number: int) -> None:
        """Begin the ``number``-th action."""
        self._number, self._calls = number, 0

    def time_ns(self) -> int:
        """Later with every call; an action takes less than a millisecond."""
        self._calls += 1
        return self._number * 1_000_000 + self._calls * 1_000

    def token_hex(self, size: int) -> str:
        """An id that no other call gets."""
        self._calls += 1
        return sha256(f"{self._number} {self._calls}".encode()).hexdigest()[: 2 * size]


class World:
    """A store and the sessions that are open in it."""

    def __init__(self, opened: Callable[[], SessionStore], *, lasts: bool) -> None:
        self._opened = opened
        self._lasts = lasts
        self.store = self._open()
        self._sessions: dict[str, Session] = {}

    def session(self, name: str) -> Session:
        """The session of that name or id, opened once."""
        if name not in self._sessions:
            info = self.store.log.find_session(name)
            self._sessions[name] = self.store.session(info.name if info else name, **PLACE)  # type: ignore[arg-type]
        return self._sessions[name]

    def keep(self, session: Session) -> str:
        """Go on with a session that was made otherwise; its id."""
        self._sessions[session.id] = session
        return session.id

    def forget(self) -> None:
        """Open every session again."""
        self._sessions = {}

    def reopen(self) -> None:
        """Close the log and open it again, where it is one that lasts."""
        self.forget()
        if self._lasts:
            self.store.close()
            self.store = self._open()

    def _open(self) -> SessionStore:
        store = self._opened()
        store.register_type("note")
        store.register_type("aside", role="assistant", priority=Priority.SKIP)
        store.register_type("law", role="system", priority=Priority.PINNED)
        return store


def plain(commit: Commit, owner: str) -> Record:
    """A commit in plain values."""
    return Record(
        commit.hash,
        commit.parents,
        commit.kind,
        json.loads(commit.payload),
        commit.response,
        commit.index,
        commit.edit,
        commit.time,
        owner,
    )


def erasure(found: Any) -> Any:
    """What an erasure did, as a value."""
    return sorted(gone.hash for gone in found.commits), sorted(found.sessions)


def looks(store: SessionStore) -> tuple[list[Any], dict[tuple[str, str], list[Commit]]]:
    """All that can be seen by names."""
    log = store.log
    sessions = log.list_sessions()
    return sessions, {
        (info.id, branch.name): log.read(info.id, branch=branch.name)
        for info in sessions
        for branch in log.refs.list(info.id)
    }


def sent(messages: list[bytes]) -> Iterator[str]:
    """The numbered words of a request's messages; system prompts and reasoning aside."""
    for message in map(json.loads, messages):
        if message["role"] != "system":
            yield from tokens(message.get("content") or "")
            for call in message.get("tool_calls", ()):
                yield from tokens(call["function"]["arguments"])


def compiled(session: Session) -> Iterator[str]:
    """The numbered words of the conversation as any program is told it; system prompts and reasoning aside."""
    for message in session.compile().messages:
        if message.role not in ("system", "reasoning"):
            for block in message.blocks:
                yield from tokens(text_of(block))
