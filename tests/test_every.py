"""A test of every case tries all of them, and names the one that fails."""

from __future__ import annotations

import pytest

from tests.every import every


def test_every_case_is_tried_and_the_failing_one_is_named() -> None:
    """Those of two decorators in every combination."""
    tried = []

    @every(("a", "b"), [(1, 2), (3, 4)])
    @every("c", "xy")
    def law(a: int, b: int, c: str) -> None:
        tried.append((a, b, c))
        assert (a, c) != (3, "y")

    with pytest.raises(AssertionError) as caught:
        law()

    assert [(1, 2, "x"), (1, 2, "y"), (3, 4, "x"), (3, 4, "y")] == tried
    assert ["case: {'c': 'y'}", "case: {'a': 3, 'b': 4}"] == caught.value.__notes__
