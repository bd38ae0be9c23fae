"""The list of sessions as values for a page: filtered, a page at a time.

Promises: a hundred thousand sessions are read from the log at most once in some seconds, and of those that a page does
not show nothing more than their summaries. Must not: know HTML.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from threading import Lock, Thread
from typing import NamedTuple

from thinkback.drive.clock import now
from thinkback.errors import CorruptLogError, ThinkbackError
from thinkback.log.leases import is_due
from thinkback.log.protocol import SessionInfo, Summary
from thinkback.model.commits import TurnEnded
from thinkback.session.observing import readable_prices, usd_of
from thinkback.session.places import OWN, Place, day_of, places_of
from thinkback.session.store import SessionStore
from thinkback.session.usage import own_steps

PAGE = 50
_FRESH = 3.0
_LONG = 0.25
"""Seconds of reading that nobody should wait for."""
_MOST_COUNTED = 5_000
"""Commits of a session whose cost a list tells, and of all that a page newly counts: the rest waits for the next."""
_TAIL = 6
_VALUES, _LONGEST_VALUE = 30, 100
"""Values of a facet, and characters of one."""
_DAY = 86_400_000_000
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


class Wanted(NamedTuple):
    """Which sessions are wanted: by words, by what they are of, by the ``day`` (UTC) they were used last."""

    text: str = ""
    program: str = ""
    model: str = ""
    project: str = ""
    day: str = ""


EVERY = Wanted()


class Listed(NamedTuple):
    """A page of the list: ``rows`` of the ``found`` ones among ``total``; ``number`` counts from 1 to ``last``.

    ``facets`` are the values by which it can be narrowed, with how many of the found sessions each has.
    """

    rows: Sequence[SessionRow]
    found: int
    total: int
    number: int
    last: int
    facets: Mapping[str, Sequence[tuple[str, int]]] = {}


class _Known(NamedTuple):
    """A session with its summary, where it is from, and the words it is found by."""

    info: SessionInfo
    summary: Summary | None
    place: Place
    words: str

    @property
    def models(self) -> tuple[str, ...]:
        return self.summary.tally.models if self.summary is not None else ()

    def is_of(self, wanted: Wanted) -> bool:
        """Whether it is of all that is wanted but for the words."""
        _, program, model, project, day = wanted
        return (
            program in ("", self.place.program)
            and project in ("", self.place.project)
            and (model == "" or model in self.models)
            and (day == "" or day == day_of(self.info.updated))
        )


class Listing:
    """The sessions of ``store``; any thread may ask."""

    def __init__(self, store: SessionStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = Lock()
        self._at = -_FRESH
        self._took: float | None = None
        self.reading: Thread | None = None
        self._all: Mapping[str, _Known] = {}
        self._facets: Mapping[str, Sequence[tuple[str, int]]] | None = None
        self._costs: OrderedDict[tuple[str, int], float | None] = OrderedDict()

    def forget(self) -> None:
        """Read the list anew at the next look: something was changed by way of the viewer."""
        self._at = -_FRESH

    def page(self, wanted: Wanted = EVERY, number: int = 1, said: Container[str] = ()) -> Listed:
        """A page of the sessions whose title, name, program, project or model have all words that are wanted, and of
        those that ``said`` them (by id); last used first.
        """
        every = self._read()
        words = wanted.text.lower().split()
        if any(wanted):
            found = [
                one
                for one in every.values()
                if one.is_of(wanted) and (one.info.id in said or all(word in one.words for word in words))
            ]
            facets = _facets(found)
        else:
            found, facets = [*every.values()], self._facets or _facets(every.values())
            self._facets = facets
        last = max(1, -(-len(found) // PAGE))
        number = min(max(number, 1), last)
        room = [_MOST_COUNTED]
        rows = [self._row(one, room) for one in found[(number - 1) * PAGE : number * PAGE]]
        return Listed(rows, len(found), len(every), number, last, facets)

    def row(self, info: SessionInfo) -> SessionRow:
        """One session."""
        known = self._read().get(info.id)
        known = known._replace(info=info) if known is not None else _known(info, None, Place(info.name))
        return self._row(known, [_MOST_COUNTED])

    def of(self, wanted: Wanted) -> Sequence[str]:
        """The ids of the sessions that are wanted, whatever their words."""
        return [id for id, one in self._read().items() if one.is_of(wanted)]

    def places(self, ids: Iterable[str]) -> dict[str, Place]:
        """Where sessions are from, by their ids."""
        every = self._read()
        return {id: every[id].place for id in ids if id in every}

    def _read(self) -> Mapping[str, _Known]:
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
        infos = self._store.sessions()
        places = places_of(infos, summaries)
        self._all = {info.id: _known(info, summaries.get(info.id), places[info.id]) for info in infos}
        self._facets = None
        self._took, self._at = time.monotonic() - began, self._clock()

    def _row(self, known: _Known, room: list[int]) -> SessionRow:
        info, summary = known.info, known.summary
        tally, about = (summary.tally, summary.about) if summary is not None else (None, None)
        return SessionRow(
            info,
            known.place.title or info.name,
            known.place.program if known.place.program != OWN else "",
            known.place.project,
            known.models,
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
        prices = readable_prices()
        if prices is None:
            return None
        try:
            usd = usd_of(own_steps(self._store.log, info), prices)
        except ThinkbackError:  # its own page says what is wrong with it
            return None
        with self._lock:
            self._costs[key] = usd
            while len(self._costs) > _REMEMBERED:
                self._costs.popitem(last=False)
        return usd

    def _state(self, info: SessionInfo) -> str:
        """How its last turn ended; ``running`` where somebody has one under way, ``open`` where nobody has, ``damaged``
        where that cannot be read.
        """
        if not info.head.hash:
            return "empty"
        log = self._store.log
        lease = log.leases.find(info.id, info.branch, now())
        if lease is not None and not is_due(lease.deadline, lease.now):
            return "running"
        try:
            tail = log.read(info.id, since=max(info.head.seq - _TAIL, -1), branch=info.branch)
        except CorruptLogError:
            return "damaged"
        kinds = ("turn_ended", "user", "response", "request", "tool_result")
        last = next((commit for commit in reversed(tail) if commit.kind in kinds and not commit.edit), None)
        return last.value.state if last is not None and isinstance(last.value, TurnEnded) else "open"


def _known(info: SessionInfo, summary: Summary | None, place: Place) -> _Known:
    models = summary.tally.models if summary is not None else ()
    words = [place.title, info.name, place.program, place.project, *models]
    return _Known(info, summary, place, " ".join(words).lower())


def _facets(found: Iterable[_Known]) -> Mapping[str, Sequence[tuple[str, int]]]:
    """The values that the most of ``found`` have; days from the newest on."""
    programs, models, projects, days = Counter[str](), Counter[str](), Counter[str](), Counter[int]()
    for one in found:
        programs[one.place.program] += 1
        projects[one.place.project] += 1
        models.update(one.models)
        days[one.info.updated // _DAY] += 1
    newest = [(day_of(day * _DAY), count) for day, count in sorted(days.items(), reverse=True)[:_VALUES]]
    told = {"program": programs, "model": models, "project": projects}
    most = {
        name: [each for each in counts.most_common(_VALUES) if 0 < len(each[0]) <= _LONGEST_VALUE]
        for name, counts in told.items()
    }
    return {**most, "day": newest}
