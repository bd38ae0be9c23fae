"""The comparison with peers: its page says what the referee said, and thinkback's own column is all ok."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from bench.peers import with_thinkback
from bench.peers.places import KEY, PLACES, Place
from bench.peers.play import (
    ALONE,
    LOOP,
    NEXT,
    SWITCH,
    SWITCH_OPEN,
    SWITCHES,
    Call,
    Cell,
    Locate,
    Outcome,
    Peer,
    play,
)
from bench.peers.table import Judged, page, shortened
from thinkback_referee import Referee

NAMES = list(PLACES)
RING = list(zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True))
DEEPSEEK, ANTHROPIC = "DeepSeek chat", "Anthropic 4.5"


class Breaks:
    """A client that raises before it asks."""

    def __init__(self, place: Place, locate: Locate, stream: bool) -> None:
        pass

    def say(self, text: str) -> Sequence[Call]:
        raise ValueError(f"cannot say\nTraceback of {KEY}")

    def give(self, results: Mapping[str, str]) -> Sequence[Call]:
        raise NotImplementedError

    def move(self, place: Place) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


OTHER = Peer("other", ("other-package",), Breaks, frozenset({DEEPSEEK}), "as it does", "n/a: no way")


def cell(peer: str, outcome: Outcome, kind: str = LOOP, abroad: str = "") -> Cell:
    """A conversation at DeepSeek in one piece."""
    return Cell(peer, kind, DEEPSEEK, abroad, False, outcome)


@pytest.mark.parametrize("home", PLACES)
def test_thinkback_is_ok_at_each_place(referee: Referee, home: str) -> None:
    """No conversation at one place is refused, and no turn's notes are lost."""
    found = [play(with_thinkback.PEER, referee, kind, PLACES[home], None, stream=False) for kind in ALONE]
    assert [("", "", False)] * len(ALONE) == [(each.refused, each.failed, each.lost) for each in found]


@pytest.mark.parametrize(("home", "abroad"), RING)
def test_thinkback_is_ok_at_another_place_and_back(referee: Referee, home: str, abroad: str) -> None:
    """Nor is one that moves, between turns or inside a tool loop."""
    found = [play(with_thinkback.PEER, referee, kind, PLACES[home], PLACES[abroad], stream=True) for kind in SWITCHES]
    assert [("", "", False)] * len(SWITCHES) == [(each.refused, each.failed, each.lost) for each in found]


def test_thinkback_goes_on_in_an_open_loop_at_a_router_that_wants_signatures(referee: Referee) -> None:
    """Calls that another place made have none there: that turn goes on without thinking."""
    home, abroad = PLACES[DEEPSEEK], PLACES["OpenRouter chat"]
    assert not play(with_thinkback.PEER, referee, SWITCH_OPEN, home, abroad, stream=False).refused


def test_client_that_raises_has_failed(referee: Referee) -> None:
    """Its error is the result, without what it says of this machine."""
    found = play(OTHER, referee, LOOP, PLACES[DEEPSEEK], None, stream=False)
    assert Outcome(failed="ValueError: cannot say\n") == found


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (Outcome(known=2), "ok"),
        (Outcome(known=1), "forgot"),
        (Outcome(known=2, lost=True), "forgot"),
        (Outcome(refused="no"), "refused"),
        (Outcome(refused="no", strict=True), "strict"),
        (Outcome(failed="broken"), "failed"),
    ],
)
def test_a_word_says_what_came_of_it(outcome: Outcome, word: str) -> None:
    """Fewer code words than with the best client are forgotten ones."""
    mine = cell("other", outcome)
    assert word == Judged([mine, cell("best", Outcome(known=2))]).word(mine)


def test_page_shows_versions_results_and_numbered_texts() -> None:
    """A place without a way is n/a, deviations name their kind, equal texts share a number."""
    cells = [
        cell("other", Outcome()),
        cell("other", Outcome(refused="bad messages[3].x"), NEXT),
        cell("thinkback", Outcome()),
        cell("thinkback", Outcome(refused="bad messages[7].x"), SWITCH, ANTHROPIC),
        cell("thinkback", Outcome(), SWITCH, "Gemini"),
    ]
    peers = [OTHER, with_thinkback.PEER]
    lines = page(cells, peers, {"other-package": "7.1", "thinkback": "0.1"}).splitlines()
    assert "| other | other-package 7.1 | as it does | n/a: no way |" in lines
    assert f"| {DEEPSEEK} | next turn: refused [1] | ok |" in lines
    assert f"| {ANTHROPIC} | n/a | n/a |" in lines
    assert f"| {SWITCH} | {DEEPSEEK} | ok 1, refused 1 [1] |" in lines
    assert "1. bad messages[N].x" in lines


def test_texts_lose_what_differs_from_run_to_run() -> None:
    """Ids and positions go, cells stay cells, and long texts end."""
    assert "Item 'rs_…' at input[N] a\\|b &lt;x>" == shortened("Item 'rs_0a-1f' at input[12]\n a|b <x>")
    assert 240 == len(shortened("a" * 999))
