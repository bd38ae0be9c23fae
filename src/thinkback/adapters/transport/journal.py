"""The log as transports use it: opened when first needed, shared in the process, left alone while it is in trouble.

Promises: trouble with the log never fails a call unless the program wants that; it is warned of once. A process that is
forked opens the log for itself. An attempt that brought nothing is not recorded beside its repetition.
"""

from __future__ import annotations

import atexit
import hashlib
import itertools
import os
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from msgspec.structs import replace

from thinkback.adapters.open_logs import Log, OpenLogs, named
from thinkback.adapters.transport import dropped
from thinkback.errors import (
    ErasedSinceError,
    HeadMovedError,
    IdTakenError,
    NotFoundError,
    SettingError,
    StoreError,
    ThinkbackError,
)
from thinkback.log.erasing import copied, without_copies
from thinkback.log.protocol import AppendRequest, Durability, Store
from thinkback.proxy import lookups, retention
from thinkback.proxy.events import ReadHistory, Unavailable
from thinkback.proxy.histories import Histories
from thinkback.proxy.request_view import Beginning
from thinkback.session.ids import outside
from thinkback.stores import SERVER, open_store
from thinkback.turn.plan import History

if TYPE_CHECKING:
    from thinkback.rules import Rulebook
    from thinkback.session.store import SessionStore

T = TypeVar("T")
OnLogError: TypeAlias = Literal["warn", "raise"]
REST = 30.0
"""Seconds for which a log that failed is left alone: each request would wait for it."""
AGAIN = 120.0
"""Seconds within which a program sends a request again that brought nothing."""
_HELD = 64
_ONE = "default"
# What a log says that is not in trouble: this step alone cannot be stored.
_DEFINITE = (HeadMovedError, IdTakenError, NotFoundError)
_numbers = itertools.count(1)


class _Open:
    """An open log with what the transports on it share, in one process."""

    def __init__(self, place: str, store: Store, durability: Durability, *, is_ours: bool) -> None:
        self.place, self.store, self.durability, self._is_ours = place, store, durability, is_ours
        self.histories = Histories()
        self.lock = threading.Lock()
        self.held: OrderedDict[bytes, tuple[float, AppendRequest]] = OrderedDict()
        self._held_since = 0

    def hold(self, attempt: bytes, entry: AppendRequest) -> None:
        """Keep the step of an attempt that brought nothing, for as long as nothing is erased."""
        epoch = self.store.epoch()
        with self.lock:
            if epoch != self._held_since:
                self.held.clear()
            self._held_since = epoch
            self.held[attempt] = (time.monotonic(), entry)

    def record(self, entry: AppendRequest) -> None:
        """Store ``entry``, on a branch of its own where another one was quicker."""
        try:
            self.store.recognition.record(entry)
        except HeadMovedError:
            self.store.recognition.record(retention.branched(entry))

    def flush(self, before: float) -> None:
        """Record the attempts that were held before that time: nobody repeats them any more. One that the log will
        never take, as its session was deleted, is dropped, and so is what was held before something was erased.
        """
        while self.held:
            epoch = self.store.epoch()
            with self.lock:
                if epoch != self._held_since:
                    self.held.clear()
                oldest = next(iter(self.held.items()), None)
                if oldest is None or (oldest[1][0] >= before and len(self.held) <= _HELD):
                    return
                del self.held[oldest[0]]
            with suppress(ErasedSinceError, *_DEFINITE):
                self.record(replace(oldest[1][1], epoch=epoch))

    def close(self) -> None:
        """Record what is held, and close the log where nobody else has it."""
        try:
            self.flush(float("inf"))
        finally:
            if self._is_ours:
                self.store.close()


_logs: OpenLogs[_Open] = OpenLogs()


def _ended() -> None:
    dropped.record_all()
    for log in _logs.all():
        try:
            log.flush(float("inf"))
        except ThinkbackError as error:
            warnings.warn(f"{log.place}: {error.message}", RuntimeWarning, stacklevel=2)


def _dropped(place: str) -> None:
    """Let go of a log that one transport alone had, which is gone without being closed; what it holds is recorded when
    the process ends. Takes no lock: it runs wherever objects are collected.
    """
    log = _logs.get(place)
    if log is not None and not log.held:
        _logs.forget(place)


atexit.register(_ended)


def _refuse_parents(store: SessionStore) -> None:
    """Raise ``StoreError`` for a store that another process opened, which this one was forked from."""
    if store.process != os.getpid():
        raise StoreError(
            "the log was opened before this process was forked from another",
            next_actions=("open it again in each process: two processes cannot share connections",),
        )


class Journal:
    """The log of one transport: a path or address, or a store that the program has open already."""

    def __init__(self, log: Log, durability: Durability = "full", on_error: OnLogError = "warn") -> None:
        for key, value, known in (("durability", durability, Durability), ("on_log_error", on_error, OnLogError)):
            if value not in get_args(known):
                raise SettingError(
                    f"{key} is {value!r}, which is none of {', '.join(get_args(known))}",
                    details={"key": key, "value": value},
                    next_actions=(f"give {key}={get_args(known)[0]!r}, or leave it out",),
                )
        self._given, path = named(log)
        if self._given is not None:
            _refuse_parents(self._given)
            self._given.log.count()  # a closed one says so at once
        is_file = path and path != ":memory:" and not path.startswith(SERVER)
        if is_file:
            self._place = os.path.realpath(path)
        elif path.startswith(SERVER):
            self._place = path
        else:  # a number is of one transport for good; an address in memory is given to the next one
            self._place = f"{path}#{next(_numbers)}"
            weakref.finalize(self, _dropped, self._place).atexit = False
        self._path = self._place if is_file else path
        self.shown = path if is_file else "the log"
        self._durability, self._on_error = durability, on_error
        self._used: _Open | None = None
        self._rests_until = float("-inf")
        self._is_warned = self._is_closed = False
        self._names: dict[str, Beginning] = {}
        _logs.check(self._place, durability, self.shown)

    @property
    def rulebook(self) -> Rulebook:
        """Endpoints and rules: those of the store, else the user's."""
        from thinkback.session import config

        return self._given.rulebook if self._given is not None else config.rulebook()

    @property
    def rests(self) -> bool:
        """Whether the log has just failed, and is left alone for a while."""
        return time.monotonic() < self._rests_until

    def check_open(self) -> None:
        """Raise ``StoreError`` once it was closed."""
        if self._is_closed:
            raise StoreError("the transport is closed", next_actions=("make another client",))

    def answer(self, question: lookups.Asked) -> Any:
        """What the log answers. Raises ``Unavailable`` where a request is to do without."""
        if self.rests:
            raise Unavailable
        return self._tried(lambda: self._answered(self._log(), question), Unavailable)

    def _answered(self, log: _Open, question: lookups.Asked) -> Any:
        epoch = log.store.epoch()
        with log.lock:
            log.histories.drop_erased(_ONE, epoch)
            known = log.histories.take(_ONE, question.head) if isinstance(question, ReadHistory) else None
        if known is not None:
            return known
        return lookups.answer(log.store, question)

    def keep(self, history: History, weight: int) -> None:
        """Keep ``history`` for whoever goes on with it."""
        log = self._current()
        if log is not None:
            with log.lock:
                log.histories.keep(_ONE, history, weight)

    def epoch(self) -> int | None:
        """That of the log; ``None`` where it cannot be asked."""
        return None if self.rests else self._tried(lambda: self._log().store.epoch(), None)

    def record(self, entry: AppendRequest, epoch: int | None = None) -> bool:
        """Store a step; ``False`` where that cannot be. Raises ``HeadMovedError``.

        ``epoch`` is that of the log when the conversation was looked for in it: copies of earlier responses are left
        out where it is another one by now.
        """
        if self.rests:
            return False
        return self._tried(lambda: self._recorded(self._log(), entry, epoch), None) or False

    def _recorded(self, log: _Open, entry: AppendRequest, epoch: int | None) -> bool:
        earlier, record = copied(entry.commits), log.store.recognition.record
        try:
            return record(replace(entry, epoch=epoch if earlier else None)) is not None
        except ErasedSinceError:
            return record(without_copies(entry, earlier)) is not None

    def hold(self, attempt: bytes, entry: AppendRequest) -> None:
        """Keep the step of an ``attempt`` that brought nothing: the program mostly sends the same again."""
        if not self.rests:
            self._tried(lambda: self._log().hold(attempt, entry), None)

    @property
    def holds(self) -> bool:
        """Whether any attempt is held."""
        log = self._current()
        return log is not None and bool(log.held)

    def settle_held(self, attempt: bytes) -> None:
        """A request begins: what was held of its like is not recorded, what is held too long is."""
        log = self._current()
        if log is None:
            return
        with log.lock:
            log.held.pop(attempt, None)
        if log.held:
            self._tried(lambda: log.flush(time.monotonic() - AGAIN), None)

    def beginning(self, name: str) -> Beginning:
        """The session that a conversation of this name goes into."""
        found = self._names.get(name)
        if found is None:
            there = None if self.rests else self._tried(lambda: self._log().store.find_session(name), None)
            made = hashlib.sha256(f"thinkback conversation\n{name}".encode()).hexdigest()[:24]
            found = Beginning(there.id if there is not None else made, name)
            if there is not None:
                self._names[name] = found
        return found

    def close(self) -> None:
        """Let go of the log; the last transport on it closes it."""
        self._is_closed = True
        used, self._used = self._used, None
        if used is not None and _logs.leave(self._place, self):
            self._tried(used.close, None)

    def _current(self) -> _Open | None:
        """The log, where this process has it open; what its parent had open is the parent's."""
        used = self._used
        return used if used is not None and _logs.get(self._place) is used else None

    def _log(self) -> _Open:
        used = self._current()
        if used is not None:
            return used
        try:
            self._used = _logs.use(self._place, self, self._opened, self._durability, self.shown)
        except SettingError as wrong:  # a request goes on
            raise StoreError(wrong.message, details=wrong.details, next_actions=wrong.next_actions) from None
        return self._used

    def _opened(self) -> _Open:
        if self._given is not None:
            _refuse_parents(self._given)
        store = self._given.log if self._given is not None else open_store(self._path, self._durability)
        return _Open(self.shown, store, self._durability, is_ours=self._given is None)

    def _tried(self, work: Callable[[], T], instead: type[Exception] | None) -> T | None:
        """What ``work`` gives. Where the log is in trouble: ``instead`` is raised, or it is ``None``."""
        try:
            return work()
        except HeadMovedError:
            raise
        except (StoreError, NotFoundError) as error:
            if self._on_error == "raise":
                raise
            if isinstance(error, _DEFINITE):
                self.warn(f"{error.message}: the request goes on, and is not recorded")
            else:
                self._rests_until = time.monotonic() + REST
                self.warn(f"{error.message}: requests go on, and are not recorded meanwhile")
            if instead is not None:
                raise instead from None
            return None

    def warn(self, text: str) -> None:
        """Warn of trouble, once."""
        if not self._is_warned:
            self._is_warned = True
            warnings.warn(f"thinkback: {text}", RuntimeWarning, stacklevel=outside())
