"""The list of sessions as values for a page: filtered, a page at a time.

Promises: a hundred thousand sessions are read from the log at most once in some seconds, and of those that a page does
not show nothing more than their summaries. Must not: know HTML.
"""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from sys import intern
from threading import Lock, Thread
from typing import NamedTuple, TypeAlias

from thinkback.drive.clock import now
from thinkback.errors import CorruptLogError, ThinkbackError
from thinkback.log.leases import is_due
from thinkback.log.protocol import SessionInfo, Summary
from thinkback.model.commits import TurnEnded
from thinkback.session.observing import readable_prices, usd_of
from thinkback.session.places import OWN, Place, day_of, places, places_of
from thinkback.session.store import SessionStore
from thinkback.session.usage import own_steps
from thinkback.turn.spending import spending
from thinkback.turn.usage import TokenUse

PAGE = 50
_FRESH = 3.0
"""Seconds for which a list that was read is shown as it is."""
_REST = 10
"""The same, in times of what reading it took: a large log that grows is not read all the time."""
_LONG = 0.25
"""Seconds of reading that nobody should wait for."""
_MOST_COUNTED = 5_000
"""Commits of a session whose cost a list tells, and of all that a page newly counts: the rest waits for the next."""
_TAIL = 6
_VALUES, _LONGEST_VALUE = 30, 100
"""Values of a facet, and characters of one."""
_DAY = 86_400_000_000
_REMEMBERED = 5_000
_MANY = 5_000
"""Sessions from which on the first page is read alone."""


class SessionRow(NamedTuple):
    """A session as listed, with its ``name`` as pages have it. ``reasoning`` are the tokens of it among ``tokens``,
    ``usd`` is what it cost if known.
    """

    info: SessionInfo
    name: str
    title: str
    program: str
    project: str
    models: tuple[str, ...]
    turns: int
    tokens: int
    reasoning: int
    usd: float | None
    state: str


class Wanted(NamedTuple):
    """Which sessions are wanted: by words, by what they are of, by the ``day`` (UTC) they were used last."""

    text: str = ""
    program: str = ""
    model: str = ""
    project: str = ""
    day: str = ""


Facets: TypeAlias = Mapping[str, Sequence[tuple[str, int]]]
"""Values by which a list can be narrowed, with how many of its sessions each has."""


class Listed(NamedTuple):
    """A page of a list: ``rows`` of the ``found`` sessions; ``number`` counts from 1 to ``last``."""

    rows: Sequence[SessionRow]
    found: int
    number: int
    last: int


class Known(NamedTuple):
    """A session with its summary and where it is from, what lists are narrowed by, and the words it is found by."""

    info: SessionInfo
    summary: Summary | None
    place: Place
    program: str
    project: str
    models: tuple[str, ...]
    day: int
    words: str


class _Cost(NamedTuple):
    """What a session cost and used, if known; whether something of it cannot be read, where all of it was looked at."""

    usd: float | None = None
    is_damaged: bool = False
    use: TokenUse | None = None


class _Every(NamedTuple):
    """All sessions as they were read at one moment: last used first, and by their ids; the log's ``epoch`` before."""

    sessions: Sequence[Known] = ()
    by_id: Mapping[str, Known] = {}
    epoch: int = 0


class Listing:
    """The sessions of ``store``; any thread may ask."""

    def __init__(
        self, store: SessionStore, clock: Callable[[], float] = time.monotonic, called: Callable[[str], str] = str
    ) -> None:
        self._store, self._called = store, called
        self._clock = clock
        self._lock = Lock()
        self._due = -math.inf
        self._took: float | None = None
        self.reading: Thread | None = None
        self._every = _Every()
        self._facets: tuple[Sequence[Known], Facets] | None = None
        self._costs: OrderedDict[tuple[str, int], _Cost] = OrderedDict()

    def forget(self) -> None:
        """Read the list anew at the next look: something was changed by way of the viewer."""
        self._due = -math.inf

    def every(self) -> Sequence[Known]:
        """All sessions, last used first."""
        return self._read().sessions

    def newest(self) -> tuple[Listed, int] | None:
        """The first page of all sessions, and how many there are, where there are so many that reading them all for it
        would take long; ``None`` where they were read, or there are few.
        """
        log = self._store.log
        if self._took is not None or (total := log.count_sessions()) < _MANY:
            return None
        infos = log.list_sessions(PAGE)
        summaries, where = log.summaries([info.id for info in infos]), places(log, [info.id for info in infos])
        room = [_MOST_COUNTED]
        rows = [self._row(_known(info, summaries.get(info.id), where[info.id]), room) for info in infos]
        return Listed(rows, total, 1, max(1, -(-total // PAGE))), total

    def page(self, found: Sequence[Known], number: int = 1) -> Listed:
        """A page of those that were found."""
        last = max(1, -(-len(found) // PAGE))
        number = min(max(number, 1), last)
        room = [_MOST_COUNTED]
        rows = [self._row(one, room) for one in found[(number - 1) * PAGE : number * PAGE]]
        return Listed(rows, len(found), number, last)

    def facets(self, found: Sequence[Known]) -> Facets:
        """The values by which those that were found can be narrowed; of all sessions, they are counted once."""
        known = self._facets
        if known is not None and known[0] is found:
            return known[1]
        facets = facets_of(found)
        if found is self._every.sessions:
            self._facets = found, facets
        return facets

    def row(self, info: SessionInfo) -> SessionRow:
        """One session."""
        known = self._read().by_id.get(info.id)
        known = known._replace(info=info) if known is not None else _known(info, None, Place(info.name))
        return self._row(known, [_MOST_COUNTED])

    def called(self, places: Mapping[str, Place]) -> dict[str, Place]:
        """``places`` by session id, each session as pages call it."""
        return {id: place._replace(session=self._called(place.session)) for id, place in places.items()}

    def places(self, ids: Iterable[str]) -> dict[str, Place]:
        """Where sessions are from, by their ids."""
        every = self._read().by_id
        return {id: every[id].place for id in ids if id in every}

    def _read(self) -> _Every:
        """All sessions. Where reading them takes long, what was read last is shown while they are read anew; never what
        was read before something was erased.
        """
        with self._lock:
            if self._took is not None and self._store.log.epoch() != self._every.epoch:
                self._refresh()
            elif self._clock() >= self._due:
                if self._took is None or self._took < _LONG:
                    self._refresh()
                elif self.reading is None or not self.reading.is_alive():
                    known = self._every
                    self.reading = Thread(target=self._refresh, daemon=True)
                    self.reading.start()
                    return known
            return self._every

    def _refresh(self) -> None:
        began, epoch = time.monotonic(), self._store.log.epoch()
        summaries = self._store.log.summaries()
        infos = self._store.sessions()
        places = places_of(infos, summaries)
        named = ((info, places[info.id]._replace(session=self._called(info.name))) for info in infos)
        by_id = {info.id: _known(info, summaries.get(info.id), place) for info, place in named}
        self._every = _Every([*by_id.values()], by_id, epoch)
        self._took = time.monotonic() - began
        self._due = self._clock() + max(_FRESH, _REST * self._took)

    def _row(self, known: Known, room: list[int]) -> SessionRow:
        info, summary = known.info, known.summary
        tally, about = (summary.tally, summary.about) if summary is not None else (None, None)
        said = about.cost if about is not None else None
        cost = self._cost(info, room)
        use = cost.use
        tokens = tally.tokens if tally is not None else 0
        name = self._called(info.name)
        return SessionRow(
            info,
            name,
            known.place.title or name,
            known.program if known.program != OWN else "",
            known.project,
            known.models,
            tally.turns if tally is not None else 0,
            tokens if use is None else (use.input or 0) + (use.output or 0),
            (tally.reasoning if tally is not None else 0) if use is None else use.reasoning or 0,
            said / 1_000_000 if said else cost.usd,
            "damaged" if cost.is_damaged else self._state(info),
        )

    def _cost(self, info: SessionInfo, room: list[int]) -> _Cost:
        """By prices; what was counted is remembered, as a look at all commits is not for nothing."""
        key = (info.id, info.updated)
        with self._lock:
            if key in self._costs:
                return self._costs[key]
        if info.commits > room[0]:
            return _Cost()
        room[0] -= info.commits
        try:
            steps = own_steps(self._store.log, info)
            cost = _Cost(usd_of(steps, readable_prices()), use=spending(steps).use)
        except CorruptLogError:
            cost = _Cost(is_damaged=True)
        except ThinkbackError:  # its own page says what is wrong with it
            return _Cost()
        with self._lock:
            self._costs[key] = cost
            while len(self._costs) > _REMEMBERED:
                self._costs.popitem(last=False)
        return cost

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


def _known(info: SessionInfo, summary: Summary | None, place: Place) -> Known:
    models = summary.tally.models if summary is not None else ()
    words = " ".join((place.title, info.name, place.session, place.program, place.project, *models)).lower()
    # Each name is one string in memory: going through all sessions need not look at the letters of each.
    program, project, models = intern(place.program), intern(place.project), tuple(map(intern, models))
    return Known(info, summary, place, program, project, models, info.updated // _DAY, words)


# A condition at a time: what is left is looked at by the next one, and no session costs a call.
def narrowed(sessions: Sequence[Known], wanted: Wanted) -> Sequence[Known]:
    """Those of ``sessions`` that are of all that is wanted but for the words, in their order."""
    _, program, model, project, day = wanted
    if program:
        sessions = [one for one in sessions if one.program == program]
    if project:
        sessions = [one for one in sessions if one.project == project]
    if model:
        sessions = [one for one in sessions if model in one.models]
    if day:
        days = {each for each in {one.day for one in sessions} if day_of(each * _DAY) == day}
        sessions = [one for one in sessions if one.day in days]
    return sessions


def saying(sessions: Sequence[Known], text: str, said: Collection[str]) -> Sequence[Known]:
    """Those whose title, name, program, project or models have all words of ``text``, and those that ``said`` it, by
    id; in their order.
    """
    for word in text.lower().split():
        if said:
            sessions = [one for one in sessions if word in one.words or one.info.id in said]
        else:
            sessions = [one for one in sessions if word in one.words]
    return sessions


def facets_of(sessions: Sequence[Known]) -> Facets:
    """The values that the most of ``sessions`` have; days from the newest on."""
    counted = {
        "program": Counter([one.program for one in sessions]),
        "model": Counter([model for one in sessions for model in one.models]),
        "project": Counter([one.project for one in sessions]),
    }
    days = sorted(Counter([one.day for one in sessions]).items(), reverse=True)[:_VALUES]
    most = {
        name: [each for each in counts.most_common(_VALUES) if 0 < len(each[0]) <= _LONGEST_VALUE]
        for name, counts in counted.items()
    }
    return {**most, "day": [(day_of(day * _DAY), count) for day, count in days]}
