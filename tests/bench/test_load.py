"""The load run in a few seconds: what must hold at any speed."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.load import PLACES, Load, measure, table


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
def test_nothing_is_lost_or_refused_under_load() -> None:
    """Two sessions for each host at once: what the referee sent whole is in the log, and nothing more."""
    load = measure(1, 2 * len(PLACES), pace=0)
    assert ([], []) == (load.failures, load.refused)
    assert load.turns >= 2 * len(PLACES)
    assert load.sent == load.stored


def test_the_table_says_what_fell_short() -> None:
    """Growth compares the second half with the first; a lost response is counted."""
    held = [(0.0, 100), (4.0, 104), (5.0, 103), (9.0, 130)]
    load = Load(10, 1, [], ["deepseek: missing"], Counter(a=2), Counter(a=1), held, [0.001] * 999 + [0.3])
    met = {name: good for name, _, good, _ in table(load)}
    assert (1, 0.25) == (load.lost, load.growth)
    assert (False, False, False, True) == tuple(
        met[name] for name in ("requests refused", "responses lost", "growth, second half over first", "failed turns")
    )
    assert (0.3, 0.001) == (load.lag(0.999), load.lag(0.5))
