"""Responses whose program drops them without closing them, up to where they are recorded.

Promises: to drop one takes no lock and does no I/O, as it happens wherever objects are collected. It is recorded by the
next request, ``why`` or close of a transport, at the latest when the process ends; so are those that are open then.
Must not: touch those of the process that this one was forked from.
"""

from __future__ import annotations

import gc
import os
import threading
from collections import deque
from collections.abc import Iterator
from typing import Protocol


class Unfinished(Protocol):
    """A response that a program has not read to its end."""

    def record(self, *, at_exit: bool = False) -> bool:
        """Record what came of it; ``False`` where its event loop is to do so."""


class Responses:
    """Those of one process: the ones that are not over, and those of them that were dropped."""

    def __init__(self) -> None:
        self.open: dict[int, Unfinished] = {}
        self.dropped: deque[Unfinished] = deque()

    def drop(self, response: Unfinished) -> None:
        """Nobody has it any more. In any thread, inside any lock."""
        self.dropped.append(response)

    def take(self) -> Iterator[Unfinished]:
        """Each of those that were dropped so far; who takes one records it, or drops it again."""
        for _ in range(len(self.dropped)):
            try:
                response = self.dropped.popleft()
            except IndexError:  # another thread was quicker
                return
            yield response


_of_process = Responses()


def responses() -> Responses:
    """Those of this process."""
    return _of_process


class Claim:
    """Who records one response: the first to say that it is over, in the process that it began in."""

    def __init__(self) -> None:
        self._taken, self._responses = threading.Lock(), _of_process

    def begin(self, response: Unfinished) -> None:
        """``response`` is given to the program."""
        self._responses.open[id(response)] = response

    def drop(self, response: Unfinished) -> None:
        """The program let go of it; for finalizers, in any thread, inside any lock."""
        if not self.is_taken:
            self._responses.drop(response)

    def take(self, response: Unfinished) -> bool:
        """It is over; whether the caller is to record it, and to close what it came by."""
        if self._responses is not _of_process:  # both are the parent's
            return False
        self._responses.open.pop(id(response), None)
        return self._taken.acquire(blocking=False)

    @property
    def is_taken(self) -> bool:
        """Whether anybody said so."""
        return self._taken.locked()


def record() -> None:
    """Record those that were dropped, but for those that an event loop is to record."""
    mine = _of_process
    for response in mine.take():
        if not response.record():
            mine.drop(response)


def record_all() -> None:
    """Record all that are not over: the process ends."""
    for response in list(_of_process.open.values()):
        response.record(at_exit=True)


_collector = threading.local()


def is_collecting() -> bool:
    """Whether objects are collected here: a generator of the program's client closes its response then, in any lock."""
    return getattr(_collector, "runs", False)


def _collects(phase: str, _: object, collector: threading.local = _collector) -> None:
    collector.runs = phase == "start"  # no global: those are gone while the interpreter ends


gc.callbacks.append(_collects)


def _forked() -> None:
    global _of_process
    _of_process = Responses()


os.register_at_fork(after_in_child=_forked)
