"""What was used, in numbers for a page: by day, model, project and effort, and which turns took longest or cost most.

Promises: what a response used is what ``thinkback usage`` counts (``session.usage``); a session is read again only once
it changed, in a thread of its own, and of each only its sums are kept; one that cannot be read is left out and named.
Must not: know HTML, write.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from threading import Lock, Thread
from typing import Literal, NamedTuple, TypeAlias

from thinkback.drive.clock import now
from thinkback.errors import CorruptLogError, NotFoundError, ThinkbackError
from thinkback.log.protocol import SessionInfo, Store
from thinkback.model.commits import Commit, Request, TurnEnded
from thinkback.observe.cost import Prices
from thinkback.session.observing import readable_prices, usd_of
from thinkback.session.places import NOWHERE, Place, day_of, places
from thinkback.session.store import SessionStore
from thinkback.session.usage import lines_of, own_steps, program_of
from thinkback.turn.spending import StepUse

FRESH = 5.0
"""Seconds for which the list of sessions is taken as it was read."""
PATIENCE = 1.5
"""Seconds for which a page waits for what is being read."""
MOST = 10
"""Turns of a day that are kept, and that a page lists, and rows of a table."""
DAYS = (7, 30, 90, 0)
_COLUMNS = 92
"""Days of a chart; of more, months."""
_LEAST = 7
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
UNSET = "unset"
_KEY = "reasoning.effort"

Group: TypeAlias = Literal["day", "model", "project", "effort"]


class Sums(NamedTuple):
    """Responses together; ``priced`` of them have a price, which is ``usd`` together."""

    responses: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    usd: float = 0.0
    priced: int = 0

    def plus(self, other: Sums) -> Sums:
        """Both."""
        return Sums(*map(sum, zip(self, other, strict=True)))  # type: ignore[arg-type]

    @property
    def share(self) -> float:
        """The part of the output that was reasoning."""
        return min(self.reasoning / self.output, 1.0) if self.output else 0.0

    @property
    def mean(self) -> float:
        """Tokens of reasoning a response."""
        return self.reasoning / self.responses if self.responses else 0.0

    @property
    def hits(self) -> float:
        """The part of the input that was read from a cache."""
        return min(self.cached / self.input, 1.0) if self.input else 0.0


class TurnFigures(NamedTuple):
    """A turn of ``session`` (an id), from its ``prompt`` to its last response or its end."""

    session: str
    prompt: str
    time: int
    model: str
    effort: str
    state: str
    seconds: float
    reasoning: int
    usd: float | None


class _Key(NamedTuple):
    day: str
    model: str
    effort: str
    program: str


class _Session(NamedTuple):
    """What is kept of a session: ``mark`` says as of when, ``turns`` how many ended how, by day and effort."""

    mark: tuple[int, int, int]
    sums: Sequence[tuple[_Key, Sums]]
    turns: Sequence[tuple[str, str, str, int]]


class Row(NamedTuple):
    """A line of a table: a name, what was used, and how its turns ended."""

    name: str
    sums: Sums
    states: Counter[str]

    @property
    def turns(self) -> int:
        """All turns."""
        return sum(self.states.values())

    @property
    def completed(self) -> float:
        """The part of the turns that completed."""
        return self.states["completed"] / self.turns if self.turns else 0.0


class Report(NamedTuple):
    """A page: of ``sessions``, ``read`` are in it so far. ``ended`` is how all turns
    ended, unless one model is asked for. ``left`` names how many rows of a group are not listed.

    ``unread`` are sessions (ids) that cannot be read; ``is_stopped``: the log did not answer when it was read last.
    """

    total: Sums
    ended: Row
    days: Sequence[Row]
    models: Sequence[Row]
    projects: Sequence[Row]
    efforts: Sequence[Row]
    slowest: Sequence[TurnFigures]
    dearest: Sequence[TurnFigures]
    left: dict[str, int]
    read: int
    sessions: int
    by_month: bool
    unread: Sequence[str] = ()
    is_stopped: bool = False


class Figures:
    """The figures of ``store``; any thread may ask. ``clock`` counts seconds."""

    def __init__(self, store: SessionStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._lock = Lock()
        self._at = -FRESH
        self._reading: Thread | None = None
        self._known: dict[str, _Session] = {}
        self._tops: dict[str, tuple[list[TurnFigures], list[TurnFigures]]] = {}
        self._unread: frozenset[str] = frozenset()
        self._is_stopped = False
        # where each session is from, by its id
        self.places: dict[str, Place] = {}
        self._epoch = 0
        self._sessions = 0

    def report(self, days: int = 30, project: str = "", model: str = "", patience: float = PATIENCE) -> Report:
        """What was used in the last ``days`` (0: ever), in one project and by one model where they are named.

        Waits ``patience`` seconds at most for what changed; the rest is there at a later look.
        """
        epoch = self._refresh(patience)
        since = day_of(now() - (days - 1) * 86_400_000_000) if days else ""
        with self._lock:
            if self._epoch != epoch:  # titles and directories may have been erased since they were read
                self.places = {}
            known, place_of, sessions = dict(self._known), self.places, self._sessions
            unread = sorted(self._unread - known.keys())
            tops = [top for day, top in self._tops.items() if day >= since]
        cells = list(_cells(known, place_of, since, project, model))
        found = {day for day, *_ in cells}
        by_month = len(found) > _COLUMNS
        length = 7 if by_month else 10
        left: dict[str, int] = {}
        groups = {
            "models": _rows(((model, sums) for _, model, _, _, sums in cells), ()),
            "projects": _rows(((name, sums) for _, _, _, name, sums in cells), ()),
        }
        for name, rows in groups.items():
            rows.sort(key=lambda row: (-row.sums.output, row.name))
            left[name] = max(len(rows) - MOST, 0)
        ended = [] if model else [*_ended(known, place_of, since, project)]
        efforts = _rows(((effort, sums) for _, _, effort, _, sums in cells), ended)
        outcome = Row("", Sums(), sum((row.states for row in efforts), Counter()))
        efforts.sort(key=lambda row: EFFORTS.index(row.name) if row.name in EFFORTS else len(EFFORTS))
        turns = [
            turn
            for pair in tops
            for turn in {*pair[0], *pair[1]}
            if (not project or place_of.get(turn.session, NOWHERE).project == project) and model in ("", turn.model)
        ]
        return Report(
            _total(sums for *_, sums in cells),
            outcome,
            _in_time(_rows(((day[:length], sums) for day, *_, sums in cells), ()), since, by_month),
            groups["models"][:MOST],
            groups["projects"][:MOST],
            efforts,
            _largest(turns, lambda turn: turn.seconds),
            _largest((turn for turn in turns if turn.usd), lambda turn: turn.usd or 0.0),
            left,
            len(known),
            sessions,
            by_month,
            unread,
            self._is_stopped,
        )

    def _refresh(self, patience: float) -> int:
        """Read what changed, in one thread however many ask; returns the log's epoch of before."""
        try:
            epoch = self._store.log.epoch()
        except ThinkbackError:  # as of when the titles are is not known then
            self._is_stopped = True
            return -1
        with self._lock:
            reading = self._reading
            is_due = self._clock() - self._at >= FRESH or epoch != self._epoch
            if (reading is None or not reading.is_alive()) and is_due:
                reading = self._reading = Thread(target=self._read, daemon=True)
                reading.start()
        if reading is not None:
            reading.join(patience)
        return epoch

    def _read(self) -> None:
        log = self._store.log
        try:
            epoch = log.epoch()
            infos, where, prices = log.list_sessions(), places(log), readable_prices()
            with self._lock:
                self.places, self._epoch, self._sessions = where, epoch, len(infos)
                gone = self._known.keys() - {info.id for info in infos}
                for id in gone:
                    self._forget(id)
            unread: list[str] = []
            for info in sorted(infos, key=lambda info: -info.updated):
                mark = (info.updated, hash(info.head.hash), info.commits)
                known = self._known.get(info.id)
                if known is None or known.mark != mark:
                    try:
                        self._take(info, mark, where.get(info.id, NOWHERE), prices)
                    except (CorruptLogError, NotFoundError):  # damaged, or deleted meanwhile: the others are counted
                        unread.append(info.id)
                        with self._lock:
                            self._forget(info.id)
        except ThinkbackError:  # the log is closed, or does not answer: the next look tries again
            self._is_stopped = True
            return
        self._unread, self._is_stopped, self._at = frozenset(unread), False, self._clock()

    def _take(self, info: SessionInfo, mark: tuple[int, int, int], place: Place, prices: Prices | None) -> None:
        steps, turns = _figures(self._store.log, info, place, prices)
        ended = Counter((day_of(turn.time), turn.effort, turn.state) for turn in turns)
        sums: dict[_Key, Sums] = {}
        for key, used in steps:
            sums[key] = sums.get(key, Sums()).plus(used)
        with self._lock:
            self._forget(info.id)
            self._known[info.id] = _Session(mark, tuple(sums.items()), tuple((*key, n) for key, n in ended.items()))
            for turn in turns:
                slow, dear = self._tops.setdefault(day_of(turn.time), ([], []))
                _keep(slow, turn, lambda one: one.seconds)
                if turn.usd:
                    _keep(dear, turn, lambda one: one.usd or 0.0)

    def _forget(self, id: str) -> None:
        known = self._known.pop(id, None)
        days = {key.day for key, _ in known.sums} | {day for day, *_ in known.turns} if known is not None else set()
        for day in days & self._tops.keys():
            for top in self._tops[day]:
                top[:] = [turn for turn in top if turn.session != id]


def _largest(turns: Iterable[TurnFigures], measure: Callable[[TurnFigures], float]) -> list[TurnFigures]:
    """The turns that took most, one of each session: ten of one would say the same ten times."""
    most: dict[str, TurnFigures] = {}
    for turn in turns:
        if turn.session not in most or measure(turn) > measure(most[turn.session]):
            most[turn.session] = turn
    return heapq.nlargest(MOST, most.values(), key=measure)


def _keep(top: list[TurnFigures], turn: TurnFigures, measure: Callable[[TurnFigures], float]) -> None:
    if len(top) < MOST or measure(turn) > measure(top[-1]):
        top.append(turn)
        top.sort(key=measure, reverse=True)
        del top[MOST:]


def _cells(
    known: dict[str, _Session], place_of: dict[str, Place], since: str, project: str, model: str
) -> Iterator[tuple[str, str, str, str, Sums]]:
    """Day, model, effort, project and sums of what is asked for."""
    for id, session in known.items():
        name = place_of.get(id, NOWHERE).project
        if project in ("", name):
            for key, sums in session.sums:
                if key.day >= since and model in ("", key.model):
                    yield key.day, key.model, key.effort, name, sums


def _ended(
    known: dict[str, _Session], place_of: dict[str, Place], since: str, project: str
) -> Iterator[tuple[str, str, int]]:
    """Effort, state, and how many turns."""
    for id, session in known.items():
        if project in ("", place_of.get(id, NOWHERE).project):
            yield from ((effort, state, number) for day, effort, state, number in session.turns if day >= since)


def _rows(cells: Iterable[tuple[str, Sums]], ended: Iterable[tuple[str, str, int]]) -> list[Row]:
    sums: dict[str, Sums] = {}
    for name, used in cells:
        sums[name] = sums.get(name, Sums()).plus(used)
    states: dict[str, Counter[str]] = {}
    for name, state, number in ended:
        states.setdefault(name, Counter())[state] += number
    return [Row(name, sums.get(name, Sums()), states.get(name, Counter())) for name in dict.fromkeys((*sums, *states))]


def _in_time(rows: Sequence[Row], since: str, by_month: bool) -> list[Row]:
    """In order; days on which nothing was asked have a row, too."""
    if by_month or not rows:
        return sorted(rows)
    found = {row.name: row for row in rows}
    first, last = date.fromisoformat(since or min(found)), date.fromisoformat(max(found))
    first = min(first, last - timedelta(days=_LEAST - 1))
    days = (str(first + timedelta(days=number)) for number in range((last - first).days + 1))
    return [found.get(day, Row(day, Sums(), Counter())) for day in days]


def _total(sums: Iterable[Sums]) -> Sums:
    found = Sums()
    for each in sums:
        found = found.plus(each)
    return found


class _Asking(NamedTuple):
    """The request for a response: the turn it is in, the effort, and the model."""

    prompt: str
    effort: str
    model: str = ""


class _Turns:
    """The turns of a session's lines: when each began and how it ended, by the hash of its question.

    ``asked`` is what was asked for each response, ``last`` what was asked for last in each turn: a turn that failed may
    have no response.
    """

    def __init__(self) -> None:
        self.asked: dict[str, _Asking] = {}
        self.last: dict[str, _Asking] = {}
        self.begun: dict[str, int] = {}
        self.ended: dict[str, tuple[int, str]] = {}

    def follow(self, line: Sequence[Commit]) -> None:
        """Take in a line, from its beginning."""
        prompt, efforts = "", dict[str, str]()
        for commit in line:
            value = commit.value
            if commit.edit:
                continue
            if commit.kind == "user":
                prompt = commit.hash
                self.begun[prompt] = commit.time
            elif isinstance(value, Request):
                efforts[commit.response] = effort = value.settings.get(_KEY, "") or UNSET
                self.last[prompt] = _Asking(prompt, effort, value.target.get("model", ""))
            elif commit.kind == "response":
                self.asked[commit.hash] = _Asking(prompt, efforts.pop(commit.response, UNSET))
            elif isinstance(value, TurnEnded) and prompt:
                self.ended[prompt] = (commit.time, value.state)


def _figures(
    log: Store, info: SessionInfo, place: Place, prices: Prices | None
) -> tuple[list[tuple[_Key, Sums]], list[TurnFigures]]:
    """What each response of a session used, and its turns."""
    known = _Turns()
    for line in lines_of(log, info):
        known.follow(line)
    used: list[tuple[_Key, Sums]] = []
    failed = known.ended.keys() - {asking.prompt for asking in known.asked.values()}
    parent = log.find_session(info.parent) if failed and info.parent else None
    if parent is not None:  # a fork's past is not its own
        failed -= {commit.hash for line in lines_of(log, parent) for commit in line}
    turns: dict[str, list[tuple[StepUse, _Asking, Sums]]] = {prompt: [] for prompt in failed}
    for step in own_steps(log, info):
        asking = known.asked.get(step.commit, _Asking("", UNSET))
        sums = _sums(step, prices)
        # the same few words of a hundred thousand sessions are one each
        words = (day_of(step.time), step.model, asking.effort, program_of(step, place))
        used.append((_Key(*map(sys.intern, words)), sums))
        if asking.prompt:
            turns.setdefault(asking.prompt, []).append((step, asking, sums))
    return used, [_turn(info.id, prompt, known, found) for prompt, found in turns.items()]


def _turn(session: str, prompt: str, known: _Turns, found: Sequence[tuple[StepUse, _Asking, Sums]]) -> TurnFigures:
    begun, asking = known.begun[prompt], known.last.get(prompt, _Asking(prompt, UNSET))
    over, state = known.ended.get(prompt, (begun, "open"))
    total, until, model = Sums(), over, asking.model
    if found:
        last, asking, _ = found[-1]
        total, model = _total(sums for _, _, sums in found), last.model
        until = max(step.time for step, _, _ in found)
    return TurnFigures(
        session,
        prompt,
        begun,
        model,
        asking.effort,
        state,
        max(until - begun, 0) / 1_000_000,
        total.reasoning,
        total.usd if total.priced else None,
    )


def _sums(step: StepUse, prices: Prices | None) -> Sums:
    use, usd = step.use, usd_of([step], prices)
    return Sums(
        1,
        use.input or 0,
        use.cached or 0,
        use.output or 0,
        use.reasoning or 0,
        usd or 0.0,
        int(usd is not None),
    )
