"""Spending: what is used is counted once, and a budget that is spent ends it until its period does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.servers.gateway.harness.offices import Clock, Troubled
from thinkback.errors import StoreError
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.access.spending import Spending, period_of, resets
from thinkback.servers.gateway.grant import Budget, Grant
from thinkback.stores.gateway_state.records import Use

USED = Use(1, 60, 40, 30)


def spending(office: Any, clock: Clock, blind: bool = False) -> Spending:
    """Spending by a clock of the test."""
    return Spending(office, blind=blind, clock=clock.seconds, now=clock.now)


def grant(period: str = "total", **limits: int) -> Grant:
    """A key with a budget."""
    return Grant("k", budget=Budget(period, **limits))  # type: ignore[arg-type]


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
