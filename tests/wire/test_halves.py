"""Letters that a stream cuts in two are shown whole; a half that stays alone is shown, too."""

from __future__ import annotations

import pytest

from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.halves import Halves

CALL = ToolCallDelta(1, "c")
CASES: list[tuple[list[Delta], list[Delta]]] = [
    ([TextDelta("a\ud83d", 0), TextDelta("\ude00b", 0)], [TextDelta("a", 0), TextDelta("😀b", 0)]),
    ([TextDelta("\ud83d", 0), TextDelta("\ude00", 0)], [TextDelta("😀", 0)]),
    (
        [TextDelta("\ud83d", 0), TextDelta("\ud83d", 0), TextDelta("\ude00", 0)],
        [TextDelta("\ud83d", 0), TextDelta("😀", 0)],
    ),
    ([ReasoningDelta("\ud83d", 0), TextDelta("\ude00", 1)], [ReasoningDelta("\ud83d", 0), TextDelta("\ude00", 1)]),
    ([TextDelta("\ud83d", 0), CALL], [TextDelta("\ud83d", 0), CALL]),
    (
        [TextDelta("\ude00", 0), TextDelta("a\ud83d", 0)],
        [TextDelta("\ude00", 0), TextDelta("a", 0), TextDelta("\ud83d", 0)],
    ),
]


@pytest.mark.parametrize(("deltas", "shown"), CASES)
def test_letters_in_two_pieces_are_whole(deltas: list[Delta], shown: list[Delta]) -> None:
    """Given one by one or all at once."""
    for given in ([deltas], [[delta] for delta in deltas]):
        halves = Halves()
        found = [delta for some in given for delta in halves.joined(some)]

        assert shown == [*found, *halves.released()]
        assert [] == halves.released()
