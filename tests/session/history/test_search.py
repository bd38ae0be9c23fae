"""Searching a session, and all of them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from tests.session.chats import get_weather, open_session
from thinkback.drive.clock import now
from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.log.protocol import About
from thinkback.model import canonical
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Erased, Priority
from thinkback.session.history import search
from thinkback.session.history.search import BATCH
from thinkback.session.places import day_of, places
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.session.times import microseconds
from thinkback_referee import Referee


def session_of(store: SessionStore, name: str = "s") -> Session:
    """A session that asks nobody."""
    return store.session(name, base_url="https://api.example.com/v1", model="m")


def test_the_reasoning_of_a_turn_is_found_when_it_is_over(store: SessionStore) -> None:
    """By its words, by the tool that followed, by its model; and the commit is at hand."""
    with Referee() as referee:
        session = open_session(store, referee)
        session.chat("What is the weather in Oslo?", tools=[get_weather])
        reasoning = next(commit for commit in session.log() if commit.kind == "reasoning")
        assert isinstance(reasoning.value, ThinkingBlock)
        phrase = " ".join(reasoning.value.thought.split()[:3])
        (first, *_) = reversed(session.search.reasoning(f'"{phrase}"', tool="get_weather", model=session.target.model))
    assert reasoning == first.commit
    assert ("reasoning", "get_weather", session.id) == (first.hit.kind, first.hit.tool, first.hit.session)
    assert reasoning.hash[:12] in repr(first)


def test_a_search_sees_everything_that_was_stored_before(store: SessionStore) -> None:
    """More than one transaction of the index may be needed for it."""
    session = session_of(store)
    with session.batch() as batch:
        for n in range(BATCH + 5):
            batch.commit(f"needle {n}")
    assert BATCH + 5 == len(session.search("needle", limit=9999))
    session.reasoning("needles and needle")
    assert ["reasoning"] == [found.hit.kind for found in session.search.reasoning("needle")]


def test_a_session_is_searched_alone_unless_everywhere(store: SessionStore) -> None:
    """The store searches all of them, or one by its name."""
    for name in ("one", "two"):
        session_of(store, name).reasoning(f"blue in {name}")
    one = session_of(store, "one")
    assert 1 == len(one.search("blue"))
    assert 2 == len(one.search("blue", everywhere=True)) == len(store.search("blue")) == len(store.find_reasoning())
    (found,) = store.find_reasoning("blue", session="two")
    assert "blue in two" == found.hit.excerpt
    assert ["user"] == [found.hit.kind for found in _said(one).search(kinds="user")]
    with pytest.raises(NotFoundError, match="there is no session"):
        store.search("blue", session="three")


def test_pages_follow_each_other(store: SessionStore) -> None:
    """``before`` is the last hit of the page before."""
    session = session_of(store)
    made = [session.reasoning(f"blue {n}").hash for n in range(5)]
    first = session.search("blue", limit=3)
    second = session.search("blue", limit=3, before=first[-1])
    assert list(reversed(made)) == [found.hit.hash for found in (*first, *second)]


def test_times_are_said_in_many_ways(store: SessionStore) -> None:
    """What was stored a moment ago is after an hour ago and before in an hour."""
    session = session_of(store)
    session.reasoning("blue")
    soon = datetime.now(UTC) + timedelta(hours=1)
    ago = soon - timedelta(hours=2)
    for since, until in (
        (ago, soon),
        (ago.isoformat(), soon.isoformat()),
        (ago.astimezone(UTC).replace(tzinfo=None).isoformat(), soon.astimezone(timezone(timedelta(hours=5)))),
        (now() - 3_600_000_000, None),
        (date(2020, 1, 1), "2999-01-01"),
    ):
        assert 1 == len(session.search("blue", since=since, until=until))
    assert [] == session.search("blue", since=soon)
    assert [] == session.search("blue", until="2020-01-01T00:00:00Z")
    assert 1_577_836_800_000_001 == microseconds("2020-01-01T00:00:00.000001Z")


def test_a_priority_that_was_given_is_found(store: SessionStore) -> None:
    """As the enumeration or as its word."""
    session = session_of(store)
    commit = session.reasoning("blue")
    session.reasoning("blue too")
    session.annotate(commit.hash, Priority.PINNED)
    for priority in (Priority.PINNED, "pinned"):
        assert [commit.hash] == [found.hit.hash for found in session.search("blue", priority=priority)]


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        ({"kinds": ("reasonin",)}, "did you mean reasoning?"),
        ({"kinds": ("x",)}, "there are system, "),
        ({"priority": "high"}, "there are skip, normal"),
        ({"since": "yesterday"}, "2026-07-01T12:30:00Z"),
    ],
)
def test_a_filter_that_says_nothing_is_refused(store: SessionStore, filters: dict[str, object], told: str) -> None:
    """With what could be meant."""
    with pytest.raises(ThinkbackError) as caught:
        session_of(store).search("blue", **filters)  # type: ignore[arg-type]
    assert told in str(caught.value)


def test_a_fork_finds_what_it_shares(store: SessionStore) -> None:
    """And not what its parent said after."""
    session = session_of(store)
    session.reasoning("blue before")
    fork = session.branches.fork("fork")
    session.reasoning("blue after")
    assert ["blue before"] == [found.hit.excerpt for found in fork.search("blue")]


def test_what_was_erased_is_not_found(store: SessionStore) -> None:
    """An index that was filled before forgets it."""
    session = session_of(store)
    commit = session.reasoning("blue secret")
    assert 1 == len(session.search("secret"))
    store.log.care.erase(session.id, {commit.hash: canonical.encode(Erased("asked for", now()))})
    assert [] == session.search("secret")


@pytest.mark.parametrize("counted", [3, 9, 10_000])
def test_facets_are_what_counting_the_hits_gives(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch, counted: int
) -> None:
    """In the same order, which is that of the newest where as many are of each; it says whether there are more."""
    monkeypatch.setattr(search, "COUNTED", counted)
    for name, program in (("a", "codex"), ("b", "pi"), ("c", "codex")):
        session = session_of(store, name)
        store.log.describe(session.id, About(program, f"of {name}"))
        for _ in range(3):
            session.reasoning("blue")
    hits = [found.hit for found in store.search("blue", limit=counted)]
    where = places(store.log)
    slow: dict[str, Counter[str]] = {
        "program": Counter(where[hit.session].program for hit in hits),
        "model": Counter(hit.model for hit in hits),
        "project": Counter(where[hit.session].project for hit in hits),
        "day": Counter(day_of(hit.time) for hit in hits),
    }
    found = search.facets(store.log, "blue")
    assert (len(hits), counted < 9) == (found.hits, found.has_more)
    assert {facet: each.most_common() for facet, each in slow.items()} == {
        facet: [*counts.items()] for facet, counts in found.counts.items()
    }


def _said(session: Session) -> Session:
    session.commit("hello")
    return session
