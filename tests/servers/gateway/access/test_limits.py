"""Limits of a key: how many at once, and how many per minute."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.gateway.harness.offices import Clock
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.access import limits
from thinkback.servers.gateway.access.limits import Limiter, SharedMinutes
from thinkback.servers.gateway.grant import Grant, Limits
from thinkback.stores.gateway_state import open_gateway_state


def refusal(limiter: Limiter, grant: Grant) -> tuple[str, float | None]:
    """Code of the refusal, and when to come again."""
    with pytest.raises(Refused) as caught, limiter.entered(grant):
        pass
    assert 429 == caught.value.status
    return caught.value.code, caught.value.retry_after


def test_so_many_at_once_and_no_more() -> None:
    """A place is free again when a request ends, however it ends."""
    limiter, grant = Limiter(), Grant("k", limits=Limits(at_once=2))
    with ExitStack() as inside:
        for _ in range(2):
            inside.enter_context(limiter.entered(grant))
        assert ("too_many_at_once", 1.0) == refusal(limiter, grant)
        with limiter.entered(Grant("other", limits=Limits(at_once=2))):
            pass
    with pytest.raises(ZeroDivisionError), limiter.entered(grant):
        raise ZeroDivisionError
    with limiter.entered(grant), limiter.entered(grant):
        pass


def test_so_many_per_minute_and_no_more() -> None:
    """A refusal says when the next one may come, and then it may."""
    clock = Clock()
    limiter, grant = Limiter(clock=clock.seconds), Grant("k", limits=Limits(per_minute=6))
    for _ in range(6):
        with limiter.entered(grant):
            pass
    assert ("too_many_per_minute", 10.0) == refusal(limiter, grant)
    clock.wait(4)
    assert 6.0 == pytest.approx(refusal(limiter, grant)[1], abs=1e-3)
    clock.wait(6.001)
    with limiter.entered(grant):
        pass
    assert "too_many_per_minute" == refusal(limiter, grant)[0]


@given(st.lists(st.floats(0, 30), max_size=60), st.integers(1, 20))
def test_no_run_of_requests_is_more_than_saved_and_earned(pauses: list[float], per_minute: int) -> None:
    """Whatever the pauses: in any time no more begin than one minute's worth and what was earned meanwhile."""
    clock = Clock()
    limiter, grant = Limiter(Limits(per_minute=per_minute), clock.seconds), Grant("k")
    began: list[float] = []
    for pause in pauses:
        clock.wait(pause)
        try:
            with limiter.entered(grant):
                began.append(clock.seconds())
        except Refused:
            pass
    for first in range(len(began)):
        for last in range(first, len(began)):
            earned = (began[last] - began[first]) * per_minute / 60
            assert last - first + 1 <= per_minute + earned + 1e-3


def test_the_limits_of_the_configuration_hold_for_keys_without_their_own() -> None:
    """A key's own number counts before the default."""
    limiter = Limiter(Limits(at_once=1))
    with limiter.entered(Grant("k")):
        assert "too_many_at_once" == refusal(limiter, Grant("k"))[0]
    own = Grant("own", limits=Limits(at_once=2))
    with limiter.entered(own), limiter.entered(own):
        pass


def test_keys_that_are_idle_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys take no more memory than is allowed; one under way is never forgotten."""
    clock = Clock()
    monkeypatch.setattr(limits, "REMEMBERED", 10)
    limiter = Limiter(Limits(per_minute=5, at_once=1), clock.seconds)
    with limiter.entered(Grant("busy")):
        for number in range(100):
            clock.wait(10)
            with limiter.entered(Grant(str(number))):
                pass
        assert 11 >= len(limiter._gates)
        assert "too_many_at_once" == refusal(limiter, Grant("busy"))[0]


def test_a_minute_is_counted_in_the_store_and_a_refusal_here(tmp_path: Path) -> None:
    """Two processes of one store: who is refused is so without the database until the time is over; a key without a
    limit never needs it.
    """
    office, clock = open_gateway_state(tmp_path), Clock()
    grant = Grant("k", limits=Limits(per_minute=2))

    async def run() -> None:
        one, other = (SharedMinutes(office, clock=clock.seconds) for _ in range(2))
        await one.enter(grant)
        await other.enter(grant)
        for each in (one, other, one):
            with pytest.raises(Refused) as caught:
                await each.enter(grant)
            assert (429, "too_many_per_minute") == (caught.value.status, caught.value.code)
            assert 0 < (caught.value.retry_after or 0) <= 30
        office.close()
        with pytest.raises(Refused, match="may begin 2 requests per minute"):
            await one.enter(grant)
        await one.enter(Grant("without"))
        clock.wait(31)
        with pytest.raises(Refused) as caught:
            await one.enter(grant)
        assert (503, "store_unavailable") == (caught.value.status, caught.value.code)
        blind = SharedMinutes(office, clock=clock.seconds, blind=True)
        for _ in range(2):
            await blind.enter(grant)
        with pytest.raises(Refused, match="may begin 2 requests per minute"):
            await blind.enter(grant)

    asyncio.run(run())


@pytest.mark.parametrize("blind", [True, False])
def test_a_database_that_does_not_answer_rests(tmp_path: Path, blind: bool) -> None:
    """For a second nobody waits for it, then the next request asks again."""
    office, clock, asked = open_gateway_state(tmp_path), Clock(), 0
    take = office.rates.take

    def failing(tenant: str, key: str, per_minute: int) -> float:
        nonlocal asked
        asked += 1
        return take(tenant, key, per_minute)

    office.rates.take = failing  # type: ignore[method-assign]
    office.close()
    minutes = SharedMinutes(office, clock=clock.seconds, blind=blind)

    async def enter() -> None:
        with nullcontext() if blind else pytest.raises(Refused, match="cannot be checked"):
            await minutes.enter(Grant("k", limits=Limits(per_minute=9)))

    async def run() -> None:
        for _ in range(3):
            await enter()
        assert 1 == asked
        clock.wait(1.1)
        await enter()
        assert 2 == asked

    asyncio.run(run())


def test_keys_that_were_refused_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys take no more memory than is allowed."""
    office = open_gateway_state(tmp_path)
    monkeypatch.setattr(limits, "REMEMBERED", 3)
    minutes = SharedMinutes(office, defaults=Limits(per_minute=1))

    async def run() -> None:
        for number in range(5):
            await minutes.enter(Grant(str(number)))
            with pytest.raises(Refused):
                await minutes.enter(Grant(str(number)))

    asyncio.run(run())
    office.close()
    assert 3 >= len(minutes._shut)
