"""What a store offers: whole operations on sessions, sync on purpose.

All stores pass one conformance suite. ``append`` is one transaction, idempotent by step id, and compares the
branch's head with ``expected`` before it moves it. Async shells run these calls on the store's own executor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from thinkback.model.commits import Commit, Head


class SessionInfo(msgspec.Struct, frozen=True):
    """A session as listed: ``commits`` counts those reachable from its branch, times are microseconds UTC."""

    id: str
    name: str
    created: int
    updated: int
    commits: int
    head: Head
    settings: dict[str, str] = {}


class Problem(msgspec.Struct, frozen=True):
    """One finding of ``fsck``: where, and what disagrees."""

    where: str
    what: str


class Store(Protocol):
    """Append-only history of sessions."""

    def create_session(self, id: str, name: str, time: int) -> SessionInfo:
        """Make the session ``name``; an existing one of that name is returned as it is."""
        ...

    def find_session(self, name: str) -> SessionInfo | None:
        """The session of that name or id."""
        ...

    def list_sessions(self) -> list[SessionInfo]:
        """All sessions, last updated first."""
        ...

    def write_settings(self, session: str, settings: dict[str, str]) -> None:
        """Replace the session layer of the settings (read live, never part of the history)."""
        ...

    def append(self, session: str, step: str, commits: Sequence[Commit], expected: Head) -> bool:
        """Append ``commits`` (sealed on top of ``expected``) in one durable transaction.

        Returns ``False`` when the step was stored before. Raises ``HeadMovedError`` when the branch's head is no
        longer ``expected``: read again and seal on top of the new head.
        """
        ...

    def read(self, session: str, since: int = -1) -> list[Commit]:
        """Commits of the session's branch with ``seq`` greater than ``since``, in order."""
        ...

    def find_commit(self, prefix: str) -> tuple[str, Commit]:
        """(session id, commit) of a hash prefix. Raises ``NotFoundError`` for none or several."""
        ...

    def fsck(self) -> Iterator[Problem]:
        """Every disagreement between stored bytes, hashes, parents, positions and refs."""
        ...

    def close(self) -> None:
        """Close every connection; later calls raise ``StoreError``."""
        ...
