"""How far long work has come."""

from __future__ import annotations

from thinkback.log.progress import Meter


def test_reports_begin_at_nothing_and_end_with_all() -> None:
    """Each hundredth; more than was expected is no more than all, less is all as well."""
    for total, done in ((1000, 1000), (1000, 1007), (1000, 994)):
        told: list[tuple[int, int, str]] = []
        meter = Meter(lambda *said, to=told: to.append(said), total, "commits")
        assert list(range(done)) == list(meter.over(range(done)))
        meter.end()
        assert [(0, total, "commits"), (10, total, "commits"), (20, total, "commits")] == told[:3]
        assert (done, done, "commits") == told[-1]
        assert told == sorted(told, key=lambda each: each[0])
        assert len(told) <= 102


def test_unknown_total_is_nothing() -> None:
    """Each thousand, by the size of what was done."""
    told: list[tuple[int, int, str]] = []
    meter = Meter(lambda *said: told.append(said), 0, "bytes")
    assert ["abc"] * 500 == list(meter.over(["abc"] * 500, len))
    meter.end()
    assert [(0, 0, "bytes"), (1002, 0, "bytes"), (1500, 0, "bytes")] == told


def test_nobody_need_wait() -> None:
    """Without anybody to tell, the items go through as they are."""
    meter = Meter(None, 3, "commits")
    assert [1, 2] == list(meter.over([1, 2]))
    meter.end()
