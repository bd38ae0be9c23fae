"""The list of sessions as values for a page: filtered, a page at a time.

Promises: a hundred thousand sessions are read from the log at most once in some seconds, and of those that a page does
not show nothing more than their summaries. Must not: know HTML.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock, Thread
from typing import NamedTuple

from thinkback.errors import ThinkbackError
from thinkback.log.leases import is_due
from thinkback.log.protocol import SessionInfo, Summary
from thinkback.model.commits import TurnEnded
from thinkback.session.store import SessionStore
from thinkback.settings.registry import TITLE

PAGE = 50
_FRESH = 3.0
_LONG = 0.25
"""Seconds of reading that nobody should wait for."""
_MOST_COUNTED = 5_000
"""Commits of a session whose cost a list tells, and of all that a page newly counts: the rest waits for the next."""
_TAIL = 6
_REMEMBERED = 5_000


class SessionRow(NamedTuple):
    """A session as listed. ``share`` is the part of its tokens that was reasoning, ``usd`` what it cost if known."""

    info: SessionInfo
    title: str
    program: str
    project: str
    models: tuple[str, ...]
    turns: int
    tokens: int
    share: float
    usd: float | None
    state: str


class Listed(NamedTuple):
    """A page of the list: ``rows`` of the ``found`` ones among ``total``; ``number`` counts from 1 to ``last``."""

    rows: Sequence[SessionRow]
    found: int
    total: int
    number: int
    last: int


class _Known(NamedTuple):
    """A session with its summary, and the words it is found by."""

    info: SessionInfo
    summary: Summary | None
    title: str
    words: str


class Listing:
    """The sessions of ``store``; any thread may ask."""

    def __init__(self, store: SessionStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = Lock()
        self._at = -_FRESH
        self._took: float | None = None
        self.reading: Thread | None = None
        self._all: Sequence[_Known] = ()
        self._costs: OrderedDict[tuple[str, int], float | None] = OrderedDict()

    def page(self, text: str = "", number: int = 1) -> Listed:
        """A page of those whose title, name, program, project or model have all words of ``text``, last used first."""
        every = self._read()
        words = text.lower().split()
        found = [one for one in every if all(word in one.words for word in words)] if words else every
        last = max(1, -(-len(found) // PAGE))
        number = min(max(number, 1), last)
        shown = found[(number - 1) * PAGE : number * PAGE]
        room = [_MOST_COUNTED]
        return Listed([self._row(one, room) for one in shown], len(found), len(every), number, last)

    def row(self, info: SessionInfo) -> SessionRow:
        """One session."""
        known = next((one for one in self._read() if one.info.id == info.id), None)
        return self._row(_Known(info, known.summary if known else None, known.title if known else "", ""), [0])

    def _read(self) -> Sequence[_Known]:
        """All sessions. Where reading them takes long, what was read last is shown while they are read anew."""
        with self._lock:
            if self._clock() - self._at >= _FRESH:
                if self._took is None or self._took < _LONG:
                    self._refresh()
                elif self.reading is None or not self.reading.is_alive():
                    known = self._all
                    self.reading = Thread(target=self._refresh, daemon=True)
                    self.reading.start()
                    return known
            return self._all

    def _refresh(self) -> None:
        began = time.monotonic()
        summaries = self._store.log.summaries()
        self._all = [_known(info, summaries.get(info.id)) for info in self._store.sessions()]
        self._took, self._at = time.monotonic() - began, self._clock()

    def _row(self, known: _Known, room: list[int]) -> SessionRow:
        info, summary = known.info, known.summary
        tally, about = (summary.tally, summary.about) if summary is not None else (None, None)
        return SessionRow(
            info,
            known.title or info.name,
            about.program if about is not None else "",
            about.project if about is not None else "",
            tally.models if tally is not None else (),
            tally.turns if tally is not None else 0,
            tally.tokens if tally is not None else 0,
            min(tally.reasoning / tally.tokens, 1.0) if tally is not None and tally.tokens else 0.0,
            about.cost / 1_000_000 if about is not None and about.cost is not None else self._cost(info, room),
            self._state(info),
        )

    def _cost(self, info: SessionInfo, room: list[int]) -> float | None:
        """By prices; what was counted is remembered, as a look at all commits is not for nothing."""
        key = (info.id, info.updated)
        with self._lock:
            if key in self._costs:
                return self._costs[key]
        if info.commits > room[0]:
            return None
        room[0] -= info.commits
        from thinkback.session.observing import costs
        from thinkback.session.usage import own_steps

        try:
            found = costs(own_steps(self._store.log, info))
        except ThinkbackError:  # a fault of the price file is for the commands that are about prices
            return None
        usd = found.usd if found.known else None
        with self._lock:
            self._costs[key] = usd
            while len(self._costs) > _REMEMBERED:
                self._costs.popitem(last=False)
        return usd

    def _state(self, info: SessionInfo) -> str:
        """How its last turn ended; ``running`` where somebody has one under way, ``open`` where nobody has."""
        if not info.head.hash:
            return "empty"
        log = self._store.log
        lease = log.leases.find(info.id, info.branch, time.time_ns() // 1000)
        if lease is not None and not is_due(lease.deadline, lease.now):
            return "running"
        tail = log.read(info.id, since=max(info.head.seq - _TAIL, -1), branch=info.branch)
        kinds = ("turn_ended", "user", "response", "request", "tool_result")
        last = next((commit for commit in reversed(tail) if commit.kind in kinds and not commit.edit), None)
        return last.value.state if last is not None and isinstance(last.value, TurnEnded) else "open"


def _known(info: SessionInfo, summary: Summary | None) -> _Known:
    tally, about = (summary.tally, summary.about) if summary is not None else (None, None)
    title = info.settings.get(TITLE) or (tally.title if tally is not None else "") or info.purpose
    words = [title, info.name, *(tally.models if tally is not None else ())]
    words += [about.program, about.project] if about is not None else []
    return _Known(info, summary, title, " ".join(words).lower())
