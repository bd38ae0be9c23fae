"""Spending: what is used is counted once, and a budget that is spent ends it until its period does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.servers.gateway.harness.offices import Clock, Troubled
from thinkback.errors import StoreError
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.access.spending import MOST_OUTPUT, Reservation, Spending, period_of, resets
from thinkback.servers.gateway.grant import Budget, Grant
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.records import Use
from thinkback.stores.gateway_state.state import MOST_USED, GatewayState

USED = Use(1, 60, 40, 30)


def spending(office: Any, clock: Clock, blind: bool = False) -> Spending:
    """Spending by a clock of the test."""
    return Spending(office, blind=blind, clock=clock.seconds, now=clock.now)


def grant(period: str = "total", **limits: int) -> Grant:
    """A key with a budget."""
    return Grant("k", budget=Budget(period, **limits))  # type: ignore[arg-type]


@pytest.fixture(params=["sqlite", "postgres"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GatewayState]:
    """A gateway's state in each database."""
    place = request.getfixturevalue("database") if request.param == "postgres" else str(tmp_path / "state")
    opened = open_gateway_state(place)
    yield opened
    opened.close()


def test_what_is_used_is_stored_by_day_month_and_in_all(tmp_path: Path) -> None:
    """Two requests, one flush: each period has the sum."""

    async def run() -> None:
        office, clock = Troubled(tmp_path), Clock()
        counted = spending(office, clock)
        counted.add(grant(), USED)
        counted.add(grant(), USED)
        await counted.flush()
        await counted.flush()
        assert ["spending.add"] == office.calls
        both = USED.plus(USED)
        assert {"2026-11-30": both, "2026-11": both, "total": both} == office.spending.read("k")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("period", "limits", "status", "retry_after", "said"),
    [
        (
            "day",
            {"tokens": 100},
            429,
            30.0,
            "100 tokens per day is spent .100 used.; it resets at 2026-12-01T",
        ),
        ("month", {"reasoning": 30}, 429, 30.0, "30 reasoning tokens per month is spent"),
        ("total", {"tokens": 500, "reasoning": 7}, 403, None, "7 reasoning tokens in all is spent .30 used.$"),
    ],
)
def test_a_spent_budget_refuses_and_says_when_it_begins_anew(
    tmp_path: Path, period: str, limits: dict[str, int], status: int, retry_after: float | None, said: str
) -> None:
    """Input and output together, reasoning by itself; before it is spent nothing is refused."""

    async def run() -> None:
        counted, asked = spending(Troubled(tmp_path), Clock()), grant(period, **limits)
        await counted.check(asked)
        counted.add(asked, USED)
        with pytest.raises(Refused, match=said) as caught:
            await counted.check(asked)
        assert (status, "budget_spent", retry_after) == (
            caught.value.status,
            caught.value.code,
            caught.value.retry_after,
        )
        await counted.flush()
        with pytest.raises(Refused):
            await counted.check(asked)

    asyncio.run(run())


def test_a_budget_begins_anew_with_its_period(tmp_path: Path) -> None:
    """Yesterday's tokens are not today's."""

    async def run() -> None:
        clock = Clock()
        counted = spending(Troubled(tmp_path), clock)
        counted.add(grant(), USED)
        await counted.flush()
        for period in ("day", "month"):
            with pytest.raises(Refused):
                await counted.check(grant(period, tokens=100))
        clock.wait(31)
        for period in ("day", "month"):
            await counted.check(grant(period, tokens=100))
        with pytest.raises(Refused):
            await counted.check(grant(tokens=100))

    asyncio.run(run())


def test_what_others_use_is_seen_after_a_second(tmp_path: Path) -> None:
    """Two processes share a budget."""

    async def run() -> None:
        office, clock = Troubled(tmp_path), Clock()
        ours, theirs = spending(office, clock), spending(office, clock)
        await ours.check(grant(tokens=100))
        theirs.add(grant(), USED)
        await theirs.flush()
        await ours.check(grant(tokens=100))
        clock.wait(1)
        with pytest.raises(Refused, match="is spent"):
            await ours.check(grant(tokens=100))

    asyncio.run(run())


def test_a_key_without_a_budget_asks_nobody(tmp_path: Path) -> None:
    """The hot path of most keys."""

    async def run() -> None:
        office = Troubled(tmp_path)
        await spending(office, Clock()).check(Grant("k"))
        assert [] == office.calls

    asyncio.run(run())


def test_what_could_not_be_stored_is_stored_later_once(tmp_path: Path) -> None:
    """A flush that fails loses nothing, and what comes meanwhile goes along."""

    async def run() -> None:
        office, clock = Troubled(tmp_path), Clock()
        counted = spending(office, clock)
        counted.add(grant(), USED)
        office.trouble = True
        with pytest.raises(StoreError):
            await counted.flush()
        counted.add(grant(), USED)
        office.trouble = False
        await counted.flush()
        await counted.flush()
        assert USED.plus(USED) == office.spending.read("k")["total"]

    asyncio.run(run())


def test_a_flush_that_is_called_off_still_counts_once(tmp_path: Path) -> None:
    """The server may end while a thread stores."""

    async def run() -> None:
        office = Troubled(tmp_path)
        counted = spending(office, Clock())
        counted.add(grant(), USED)
        flush = asyncio.ensure_future(counted.flush())
        await asyncio.sleep(0)
        flush.cancel()
        await counted.flush()
        assert USED == office.spending.read("k")["total"]

    asyncio.run(run())


def test_budgets_of_a_database_in_trouble(tmp_path: Path) -> None:
    """By itself a 503; where the gateway may pass, what is known counts, and what is not known stops nobody."""

    async def run() -> None:
        office, clock = Troubled(tmp_path), Clock()
        office.trouble = True
        with pytest.raises(Refused, match="cannot be checked") as caught:
            await spending(office, clock).check(grant(tokens=100))
        assert 503 == caught.value.status
        passing = spending(office, clock, blind=True)
        await passing.check(grant(tokens=100))
        passing.add(grant(), USED)
        with pytest.raises(Refused, match="is spent"):
            await passing.check(grant(tokens=100))

    asyncio.run(run())


def test_old_days_are_forgotten(tmp_path: Path) -> None:
    """After more than a year the days of a key go; its months and its total stay."""

    async def run() -> None:
        office, clock = Troubled(tmp_path), Clock()
        counted = spending(office, clock)
        counted.add(grant(), USED)
        await counted.flush()
        assert 0 == await counted.forget()
        clock.wait(401 * 86_400)
        assert 1 == await counted.forget()
        assert {"2026-11", "total"} == set(office.spending.read("k"))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("now", "day", "month"),
    [("2026-12-31T23:59", "2027-01-01", "2027-01-01"), ("2028-02-28T01:00", "2028-02-29", "2028-03-01")],
)
def test_when_a_period_ends(now: str, day: str, month: str) -> None:
    """Days and months are those of UTC."""
    moment, tomorrow, next_month = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (now, day, month))
    assert tomorrow == resets(Budget("day"), moment)
    assert next_month == resets(Budget("month"), moment)
    assert None is resets(Budget("total"), moment)
    assert now[:7] == period_of(Budget("month"), moment)


HUGE = st.sampled_from([0, 60, 2**31, 2**62, 2**63 - 1, 2**63, 10**30])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), HUGE), min_size=1, max_size=20), st.sets(st.sampled_from("abcd"))
)
def test_one_keys_use_stops_no_other(
    tmp_path_factory: pytest.TempPathFactory, used: list[tuple[str, int]], refused: set[str]
) -> None:
    """Whatever some keys used, and whichever of them the database refuses: all others are stored, and after a restart
    what was spent is spent.
    """
    names = {name: f"{name}\ud800" if name in refused else name for name in "abcdefgh"}

    async def run() -> None:
        office, clock = Troubled(tmp_path_factory.mktemp("office")), Clock()
        counted = spending(office, clock)
        for name, tokens in used:
            counted.add(Grant(names[name]), Use(1, tokens, 60, tokens))
            with suppress(UnicodeEncodeError):
                await counted.flush()
        for _ in range(3):
            with suppress(UnicodeEncodeError):
                await counted.flush()
        again = spending(office, clock)
        for name in {name for name, _ in used} - refused:
            asked = sum(each == name for each, _ in used)
            tokens = sum(tokens for each, tokens in used if each == name)
            found = office.spending.read(name)["total"]
            assert (asked, min(tokens, MOST_USED), 60 * asked) == (found.requests, found.input, found.output)
            with pytest.raises(Refused, match="is spent"):
                await again.check(Grant(name, budget=Budget("total", tokens=60)))

    asyncio.run(run())


def test_a_sum_that_is_too_large_is_no_failure_in_either_database(tmp_path: Path, office: GatewayState) -> None:
    """Three times more than 64 bits hold: the sum stays at the most, and other keys are counted."""

    async def run() -> None:
        counted = spending(office, Clock())
        for _ in range(3):
            counted.add(grant(), Use(1, 2**63, 2**62, 10**30))
            counted.add(Grant("other"), USED)
            await counted.flush()
        assert Use(3, MOST_USED, MOST_USED, MOST_USED) == office.spending.read("k")["total"]
        assert Use(3, 180, 120, 90) == office.spending.read("other")["total"]

    asyncio.run(run())


def test_request_reserves_what_it_will_use_until_it_ends(tmp_path: Path) -> None:
    """One that is alone is served while anything is left; a second where both fit; settled, it counts as it was."""

    async def run() -> None:
        counted, asked = spending(Troubled(tmp_path), Clock()), grant("total", tokens=5_000)
        await counted.check(asked)
        first = counted.reserve(asked, 2_000)
        second = counted.reserve(asked, 500)
        assert first is not None
        assert second is not None
        assert (3_000, 1_500) == (first.tokens, second.tokens)
        with pytest.raises(Refused, match="reserved by the 2 requests that run") as caught:
            counted.reserve(asked, 0)
        assert (429, "budget_reserved", 1.0) == (caught.value.status, caught.value.code, caught.value.retry_after)
        for reservation in (first, second):
            counted.add(asked, Use(1, 100, 300, 0))
            counted.settle(reservation, Use(1, 100, 300, 0))
        third = counted.reserve(asked, 4_100)
        assert third is not None
        assert 4_400 == third.tokens
        counted.settle(third, Use())
        fourth = counted.reserve(asked, 10**9)
        assert fourth is not None
        counted.add(asked, Use(1, 5_000, 0, 0))
        counted.settle(fourth, Use(1, 5_000, 0, 0))
        with pytest.raises(Refused, match="is spent"):
            counted.reserve(asked, 0)

    asyncio.run(run())


def test_reasoning_is_reserved_too_and_a_key_without_a_budget_reserves_nothing(tmp_path: Path) -> None:
    """Two kinds of budget; what a provider claims makes no mean absurd."""

    async def run() -> None:
        counted, asked = spending(Troubled(tmp_path), Clock()), grant("total", reasoning=1_500)
        assert counted.reserve(Grant("k"), 10**9) is None
        first = counted.reserve(asked, 10**9)
        assert first is not None
        with pytest.raises(Refused, match="1500 reasoning tokens is reserved by the request that runs"):
            counted.reserve(asked, 0)
        counted.settle(first, Use(1, 0, 10**8, 10**8))
        following = counted.reserve(grant("total", tokens=10**9), 0)
        assert following is not None
        assert MOST_OUTPUT == following.tokens

    asyncio.run(run())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 20_000),
    st.lists(st.one_of(st.integers(0, 3_000), st.none()), max_size=40),
    st.randoms(use_true_random=False),
)
def test_a_budget_is_overspent_by_one_request_at_most(
    tmp_path_factory: pytest.TempPathFactory, limit: int, acts: list[int | None], chance: random.Random
) -> None:
    """Any order of beginnings and ends, each request within what it reserved: what is beyond the budget is less than
    one request's; and whenever nothing runs, one is served as long as anything is left.
    """

    async def run() -> None:
        counted = spending(Troubled(tmp_path_factory.mktemp("office")), Clock())
        asked = grant("total", tokens=limit)
        await counted.check(asked)
        running, used, largest = list[Reservation](), 0, 0
        for act in [*acts, *[None] * len(acts)]:
            if act is None:
                if running:
                    ended = running.pop(chance.randrange(len(running)))
                    use = Use(1, chance.randint(0, ended.tokens), 0, 0)
                    used, largest = used + use.input, max(largest, use.input)
                    counted.add(asked, use)
                    counted.settle(ended, use)
                continue
            try:
                reservation = counted.reserve(asked, act)
            except Refused:
                assert running or used >= limit
            else:
                assert reservation is not None
                running.append(reservation)
        assert used < limit + max(largest, 1)

    asyncio.run(run())
