"""Every ordered pair of dialects, in every situation: a conversation moved there and back is accepted at both ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.moves import PLACES, SITUATIONS, Place, move
from thinkback.session.store import open
from thinkback_referee import Referee

PAIRS = [(source, goal) for source in PLACES for goal in PLACES if source != goal]


def told(place: Place) -> str:
    """Its dialect."""
    return place.dialect


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize(("source", "goal"), PAIRS, ids=lambda place: place.dialect)
def test_a_conversation_moves_there_and_back(
    source: Place, goal: Place, situation: str, referee: Referee, tmp_path: Path
) -> None:
    """Both referees accept it, nothing foreign shows, and the original carriers come back."""
    with open(tmp_path / "log.db") as store:
        moved = move(referee, store, source, goal, situation)
    assert moved.fault == ""


def test_the_pairs_cover_every_dialect() -> None:
    """One place for each dialect there is."""
    from thinkback.wire.registry import PACKAGES

    assert {place.dialect for place in PLACES} == set(PACKAGES)
