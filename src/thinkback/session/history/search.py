"""``session.search``: full-text search in what was said and thought.

A search sees what was stored before it: it fills the index first, in transactions of bounded size.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack, get_args

from thinkback.drive.clock import now
from thinkback.errors import ThinkbackError
from thinkback.log.progress import Meter, Progress
from thinkback.log.protocol import Hit, Query, Store
from thinkback.model.commits import Commit, Kind, Priority
from thinkback.session.places import NOWHERE, day_of, owners_of, places
from thinkback.session.times import Time, moment

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation

# Commits in a transaction of the index: few enough that nobody waits long for it.
BATCH = 2000
COUNTED = 10_000
"""Hits, the newest, that are counted by facets."""
_DAY = 86_400_000_000


class Filters(TypedDict, total=False):
    """What a search may be narrowed by; all that is given must hold.

    ``kinds`` are those of commits (``reasoning``, ``user``, ``tool_call`` ...); ``model`` is the served or requested
    one; ``tool`` one that the same response called after it (of a call or result: its own). ``program`` and
    ``project`` are those of sessions. ``since`` is inside, ``until`` is not: a ``datetime``, ISO 8601 text (UTC where
    it names no zone), a time before now (``30d``, ``12h``, ``2w``), or microseconds UTC.
    Tokens are estimated. ``before`` is the last hit of the page before this one, of at most ``limit`` (50) hits.
    """

    kinds: Sequence[str]
    model: str
    tool: str
    priority: Priority | str | None
    since: Time | None
    until: Time | None
    min_tokens: int | None
    max_tokens: int | None
    limit: int
    before: SearchHit | None
    program: str
    project: str


class SearchHit:
    """A hit of a search; ``commit`` is read from the log when it is asked for."""

    __slots__ = ("_log", "hit")

    def __init__(self, log: Store, hit: Hit) -> None:
        self._log = log
        self.hit = hit

    @property
    def commit(self) -> Commit:
        """The commit that was found. Raises ``NotFoundError`` if it was removed meanwhile."""
        return self._log.find_commit(self.hit.hash, self.hit.session)[1]

    def __repr__(self) -> str:
        return f"<SearchHit {self.hit.kind} {self.hit.hash[:12]} in {self.hit.session}: {self.hit.excerpt!r}>"


class Facets(NamedTuple):
    """How many of ``hits``, the newest ``COUNTED``, are of each program, model, project and day (UTC), the most first;
    ``has_more``: older ones were found too.
    """

    hits: int
    has_more: bool
    counts: dict[str, dict[str, int]]


class Search:
    """Search in one session: all that its branches reach, with what it shares with the session it was forked from."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def __call__(self, text: str = "", *, everywhere: bool = False, **filters: Unpack[Filters]) -> list[SearchHit]:
        """The commits that hold all words of ``text``, ``"words in quotes"`` side by side, newest first.

        ``everywhere`` looks in all sessions. Raises ``ThinkbackError`` for a filter that says nothing.
        """
        conversation = self._conversation
        return search(conversation.store.log, text, "" if everywhere else conversation.info.id, **filters)

    def reasoning(self, text: str = "", *, everywhere: bool = False, **filters: Unpack[Filters]) -> list[SearchHit]:
        """Like ``search()``, in reasoning only."""
        filters["kinds"] = ("reasoning",)
        return self(text, everywhere=everywhere, **filters)


def search(
    log: Store, text: str = "", session: str = "", progress: Progress | None = None, **filters: Unpack[Filters]
) -> list[SearchHit]:
    """What is found in ``log``, in one session (by id) or in all of them."""
    query = _query(log, text, session, **filters)
    _fill(log, progress)
    return [SearchHit(log, hit) for hit in log.search.find(query)]


def facets(
    log: Store,
    text: str = "",
    session: str = "",
    progress: Progress | None = None,
    *,
    reasoning: bool = False,
    **filters: Unpack[Filters],
) -> Facets:
    """What ``search`` finds, counted instead of shown; among ``reasoning`` alone, if wanted."""
    if reasoning:
        filters["kinds"] = ("reasoning",)
    filters["limit"] = COUNTED + 1  # one more than is counted, to know whether there are more
    query = _query(log, text, session, **filters)
    _fill(log, progress)
    hits = log.search.find_bare(query)
    where = places(log)
    found: dict[str, Counter[str]] = {"program": Counter(), "model": Counter(), "project": Counter(), "day": Counter()}
    # What is told apart by no facet is counted together.
    for (id, model, day), count in Counter(
        (hit.session, hit.model, hit.time // _DAY) for hit in hits[:COUNTED]
    ).items():
        place = where.get(id, NOWHERE)
        found["program"][place.program] += count
        found["model"][model] += count
        found["project"][place.project] += count
        found["day"][day_of(day * _DAY)] += count
    counts = {facet: dict(each.most_common()) for facet, each in found.items()}
    return Facets(len(hits[:COUNTED]), len(hits) > COUNTED, counts)


def _fill(log: Store, progress: Progress | None) -> None:
    meter = Meter(progress, 0, "commits")
    while added := log.search.fill(BATCH):
        meter.add(added)


def _query(
    log: Store,
    text: str,
    session: str,
    *,
    kinds: Sequence[str] = (),
    model: str = "",
    tool: str = "",
    priority: Priority | str | None = None,
    since: Time | None = None,
    until: Time | None = None,
    min_tokens: int | None = None,
    max_tokens: int | None = None,
    limit: int = 50,
    before: SearchHit | None = None,
    program: str = "",
    project: str = "",
) -> Query:
    known = get_args(Kind)
    wanted = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    for kind in wanted:
        _check("kind", kind, known)
    if priority is not None:
        _check("priority", priority, tuple(Priority))
    return Query(
        text,
        wanted,
        session,
        model,
        tool,
        None if priority is None else Priority(priority),
        moment(since, now()),
        moment(until, now()),
        min_tokens,
        max_tokens,
        limit,
        None if before is None else before.hit.arrival,
        owners_of(log, program, project),
    )


def _check(what: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        close = difflib.get_close_matches(word, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        raise ThinkbackError(f"there is no {what} {word!r}", details={what: word}, next_actions=(hint,))
