"""Group commit: callers that come while one is at work are served together by the next.

Promises: a single caller does its work on its own thread, without a hop; every caller returns after the work that
served it; an interrupted caller (``KeyboardInterrupt``) never leaves the others waiting.
Must not: know what the work is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Ticket(Generic[T]):
    """One caller in the queue. ``wake`` is held until its item was served or it is its turn to lead."""

    __slots__ = ("item", "leads", "wake")

    def __init__(self, item: T) -> None:
        self.item = item
        self.leads = False
        self.wake = threading.Lock()
        self.wake.acquire()


class Group(Generic[T]):
    """``work`` gets every waiting item at once, on the thread of one of the callers; it notes outcomes on the items."""

    def __init__(self, work: Callable[[list[T]], None]) -> None:
        self._work = work
        self._gate = threading.Lock()
        self._waiting: list[_Ticket[T]] = []
        self._led = False

    def run(self, item: T) -> None:
        """Return when ``work`` was called with ``item`` among its items."""
        ticket = _Ticket(item)
        try:
            with self._gate:
                self._waiting.append(ticket)
                first = not self._led
                if first:
                    self._led = ticket.leads = True
            if not first:
                ticket.wake.acquire()
            if ticket.leads:
                self._lead()
        finally:
            self._leave(ticket)

    def _lead(self) -> None:
        with self._gate:
            batch, self._waiting = self._waiting, []
        try:
            self._work([ticket.item for ticket in batch])
        finally:
            for ticket in batch:
                ticket.wake.release()

    def _leave(self, ticket: _Ticket[T]) -> None:
        """Hand the lead on; a caller that was interrupted while it waited also leaves the queue."""
        with self._gate:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if not ticket.leads:
                return
            ticket.leads = False
            self._led = bool(self._waiting)
            if self._led:
                self._waiting[0].leads = True
                self._waiting[0].wake.release()
