"""Circuit breakers, with a clock in hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thinkback.servers.gateway.upstreams.breakers import Breakers


class Clock:
    """Seconds that a test moves on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_failures_in_a_row_open_it() -> None:
    """One fewer does not, and a success between them begins anew."""
    breakers = Breakers(Clock(), failures=3)
    for told in ("failed", "failed", "succeeded", "failed", "failed"):
        getattr(breakers, told)("a")
        assert breakers.admits("a")
    breakers.failed("a")
    assert not breakers.admits("a")
    assert [True, False] == [breakers.rests_for(key) > 0 for key in "ab"]
    assert breakers.admits("b")


def test_one_request_sees_when_the_time_is_up() -> None:
    """The others wait for what it finds; where nothing is heard of it, another one goes a cooldown later."""
    clock = Clock()
    breakers = Breakers(clock, failures=1, cooldown=30.0)
    breakers.failed("a")
    clock.now += 29.0
    assert (False, 1.0) == (breakers.admits("a"), breakers.rests_for("a"))
    clock.now += 1.0
    assert [True, False, False] == [breakers.admits("a") for _ in range(3)]
    clock.now += 30.0
    assert [True, False] == [breakers.admits("a") for _ in range(2)]


def test_what_it_finds_counts() -> None:
    """An answer closes it, a failure opens it for as long again."""
    clock = Clock()
    breakers = Breakers(clock, failures=2, cooldown=30.0)
    breakers.failed("a")
    breakers.failed("a")
    clock.now += 30.0
    assert breakers.admits("a")
    breakers.failed("a")
    assert 30.0 == breakers.rests_for("a")
    clock.now += 30.0
    assert breakers.admits("a")
    breakers.succeeded("a")
    assert [True, True] == [breakers.admits("a") for _ in range(2)]
    assert 0.0 == breakers.rests_for("a")


def test_change_of_the_limits_holds_at_once() -> None:
    """Also for what failed before."""
    breakers = Breakers(Clock(), failures=5)
    breakers.failed("a")
    breakers.adjust(2, 10.0)
    breakers.failed("a")
    assert 10.0 == breakers.rests_for("a")


def test_names_without_end_are_forgotten() -> None:
    """The oldest first."""
    breakers = Breakers(Clock(), failures=1)
    for name in range(5000):
        breakers.failed(name)
    assert breakers.admits(0)
    assert not breakers.admits(4999)


@given(st.lists(st.sampled_from(["failed", "succeeded", "later"])))
def test_it_never_stays_open_for_longer_than_the_cooldown(told: list[str]) -> None:
    """Whatever happens, a cooldown later somebody may ask."""
    clock = Clock()
    breakers = Breakers(clock, failures=2, cooldown=30.0)
    for what in told:
        if what == "later":
            clock.now += 7.0
            breakers.admits("a")
        else:
            getattr(breakers, what)("a")
    clock.now += 30.0
    assert breakers.admits("a")
