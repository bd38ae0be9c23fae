"""What waits is found by any of its keys, in order, and once."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from thinkback.model.waiting import Waiting

KEYS = st.sampled_from("abc")


@given(st.lists(st.tuples(st.booleans(), KEYS, KEYS)))
def test_it_is_a_list_that_is_searched(moves: list[tuple[bool, str, str]]) -> None:
    """It gives what looking through a list from its beginning would give."""
    waiting = Waiting[int]()
    plain: list[tuple[int, str, str]] = []
    for at, (adds, one, other) in enumerate(moves):
        if adds:
            waiting.add(at, one, other)
            plain.append((at, one, other))
            continue
        found = next((entry for entry in plain if one in entry[1:]), None)
        found = found or next((entry for entry in plain if other in entry[1:]), None)
        if found is not None:
            plain.remove(found)
        assert waiting.take(one, other) == (None if found is None else found[0])

    assert [entry[0] for entry in plain] == waiting.all()


def test_many_cost_no_more_each_than_few() -> None:
    """A hundred thousand, taken last first."""
    waiting = Waiting[int]()
    began = time.process_time()
    for at in range(100_000):
        waiting.add(at, at, "any")
    for at in reversed(range(100_000)):
        assert at == waiting.take(at)

    assert [] == waiting.all()
    assert time.process_time() - began < 5
