"""The logs that objects of a program use: which one is meant, and what of them is open in this process, by place.

Promises: a log is opened once, however many threads and users come; opening one, which may take its time, keeps out
only who wants that one; it is the last user's to close. A forked process begins anew, and what its parent has open is
left alone. Must not: know what is kept beside an open log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from thinkback.errors import SettingError
from thinkback.log.protocol import Durability

if TYPE_CHECKING:
    from thinkback.session.store import SessionStore


class _Opened(Protocol):
    @property
    def durability(self) -> Durability: ...


T = TypeVar("T", bound=_Opened)
Log: TypeAlias = "str | os.PathLike[str] | SessionStore"
"""What a program names a log by: a path, an address, or a store that it has open."""


def named(log: Log) -> tuple[SessionStore | None, str]:
    """The open store that ``log`` is, or the path or address. Raises ``TypeError`` for what is neither."""
    if isinstance(log, str | os.PathLike):
        return None, os.fspath(log)
    from thinkback.session.store import SessionStore  # loaded by whoever has one, and by nobody else

    if isinstance(log, SessionStore):
        return log, ""
    raise TypeError(f"a log is a path, an address or an open store, and {type(log).__name__} is none of them")


class OpenLogs(Generic[T]):
    """What is open in this process, each ``T`` an open log with what its users share."""

    def __init__(self) -> None:
        self._mine = _Table[T]()
        # Closing what a parent has open, which collecting it would do, would take its locks from the parent.
        self._parents: list[_Table[T]] = []
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._parents.append(self._mine)
        self._mine = _Table()

    def get(self, place: Hashable) -> T | None:
        """What is open at ``place``."""
        return self._mine.open.get(place)

    def all(self) -> list[T]:
        """Everything that is open."""
        return list(self._mine.open.values())

    def check(self, place: Hashable, durability: Durability, shown: str) -> None:
        """Raise ``SettingError`` where the log at ``place``, which is ``shown`` so, is open with another durability."""
        found = self.get(place)
        if found is not None and found.durability != durability:
            raise SettingError(
                f"{shown} is open with durability={found.durability!r} already",
                details={"key": "durability", "value": durability},
                next_actions=(f"give durability={found.durability!r}, or another log",),
            )

    def use(self, place: Hashable, user: object, make: Callable[[], T], durability: Durability, shown: str) -> T:
        """What is open at ``place``, for ``user`` too from now on; opened by ``make`` where it is not open.

        Raises ``SettingError`` as ``check`` does.
        """
        mine, name = self._mine, id(user)
        with mine.lock:
            door = mine.doors.setdefault(place, _Door())
        with door.lock:
            with mine.lock:
                self.check(place, durability, shown)
                found = mine.open.get(place)
                if found is not None:
                    mine.users[place].add(name)
                    return found
            made = make()
            with mine.lock:
                mine.open[place], mine.users[place] = made, {name}
            return made

    def leave(self, place: Hashable, user: object) -> bool:
        """``user`` needs it no more; whether that was the last one, who is to close it."""
        mine = self._mine
        with mine.lock:
            users = mine.users.get(place, set())
            if id(user) not in users:  # it is the parent's, or gone already
                return False
            users.remove(id(user))
            if not users:
                del mine.open[place], mine.users[place]
            return not users

    def forget(self, place: Hashable) -> None:
        """Let go of what one user alone had, and is to be closed by nobody. Takes no lock, for finalizers."""
        self._mine.open.pop(place, None)
        self._mine.users.pop(place, None)


class _Table(Generic[T]):
    """Those of one process. ``users`` are identities, so that nobody counts twice; ``lock`` is of the table alone."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open: dict[Hashable, T] = {}
        self.users: dict[Hashable, set[int]] = {}
        self.doors: WeakValueDictionary[Hashable, _Door] = WeakValueDictionary()


class _Door:
    """Who has its lock opens a log."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
