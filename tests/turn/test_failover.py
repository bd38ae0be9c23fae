"""Another place takes over where one does not answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.turn.playbook import (
    ANSWER,
    CALLS,
    Playbook,
    answers,
    begins,
    breaks,
    brings,
    cancels,
    ends,
    fires,
    gives,
    interrupts,
    keeps,
    refuses,
    runs,
    said,
    sends,
    status,
    stored,
    stores,
    target,
    thought,
    waits,
)
from thinkback.errors import NetworkError, PhaseTimeout, ProviderError
from thinkback.model.commits import Request
from thinkback.model.deltas import Status
from thinkback.turn import events


def falls_back(play: list[Playbook], *models: str) -> Callable[[str], str]:
    """Each failure leads to the next of ``models`` at the same house."""
    left = list(models)

    def next_place(reason: str) -> str:
        if not left:
            return ""
        play[0].at = target(model=left.pop(0))
        return play[0].at.model

    return next_place


def playbook(*models: str, **ask: object) -> Playbook:
    """A turn whose places are ``thinker`` and then ``models``."""
    known: list[Playbook] = []
    known.append(Playbook(fail_over=falls_back(known, *models), **ask))  # type: ignore[arg-type]
    return known[0] >> begins << keeps("user") << sends


@pytest.mark.parametrize("code", [408, 429, 500, 503, 529])
def test_a_place_that_is_busy_or_broken_is_left(code: int) -> None:
    """The next one is asked at once, and the record of the first request stays."""
    play = playbook("other") >> refuses(code, "busy") << keeps("request") << sends
    assert "other" == play.plans[-1].target.model
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    records = [commit.value for commit in play.history.commits if isinstance(commit.value, Request)]
    assert ["thinker", "other"] == [record.target["model"] for record in records]
    assert ["sending", "failing_over", "sending"] == play.statuses
    assert Status("failing_over", f"other; HTTP {code}: busy") in play.shown


@pytest.mark.parametrize("phase", ["network", "connect", "first_byte", "idle", "total"])
@pytest.mark.parametrize("permanent", [False, True])
def test_a_place_that_is_not_reached_is_left(phase: events.Phase, permanent: bool) -> None:
    """Another place may be reached where this one never will be."""
    play = playbook("other") >> breaks(phase, permanent) << keeps("request") << sends
    assert "other" == play.plans[-1].target.model


@pytest.mark.parametrize("code", [400, 401, 403, 404, 413])
def test_a_request_that_is_refused_for_what_it_says_stays(code: int) -> None:
    """What is wrong with the request or the key is told, not carried elsewhere."""
    playbook("other") >> refuses(code) << keeps("request failed") << ends("failed", ProviderError)


@pytest.mark.parametrize(
    ("code", "words"), [(401, "bad"), (402, "pay"), (403, "no"), (400, "API key not valid. Pass a valid API key.")]
)
def test_a_place_that_does_not_take_its_key_is_left_where_nobody_could_mend_it(code: int, words: str) -> None:
    """A caller whose clients know nothing of keys; without a next place it is told, and not asked again."""
    play = playbook("other", leaves_on_bad_key=True) >> refuses(code, words) << keeps("request") << sends
    assert "other" == play.plans[-1].target.model
    play >> refuses(code, words) << keeps("request failed") << ends("failed", ProviderError)


def test_the_last_place_is_asked_again() -> None:
    """Where there is no next one, the ordinary retries follow, all of them."""
    play = playbook("second", "third", max_retries=1) >> refuses(503) << keeps("request") << sends
    play >> breaks("connect") << keeps("request") << sends >> refuses(429) << waits(0.375) >> fires << sends
    assert "third" == play.plans[-1].target.model
    play >> refuses(429) << keeps("request failed") << ends("failed", ProviderError)


def test_the_last_place_that_never_answers_ends_the_turn() -> None:
    """The error is that of the last place."""
    play = playbook("other") >> refuses(503) << keeps("request") << sends >> breaks("network", True)
    play << keeps("request failed") << ends("failed", NetworkError)
    play = playbook("other") >> refuses(503) << keeps("request") << sends >> breaks("total")
    play << keeps("request timed_out") << ends("timed_out", PhaseTimeout)


def test_a_response_that_began_is_not_moved() -> None:
    """What was shown cannot be taken back: the turn ends with what arrived."""
    play = playbook("other") >> status(200) >> brings(thought("Hm.")) >> breaks()
    play << keeps("request response reasoning partial_failed") << ends("partial_failed", NetworkError)


def test_a_turn_moves_between_its_steps_too() -> None:
    """The reasoning of the first place is foreign to the second: the guard leaves it out."""
    play = playbook("other", runnable=frozenset({"look"})) >> answers(said("", "Hm.", "look-1")) << keeps(CALLS)
    play << runs("look") >> gives("look-1") << keeps("result") << sends >> refuses(500) << keeps("request") << sends
    assert [" "] == play.reasoning()
    assert ["placeholder"] == [decision.action for decision in play.plans[-1].decisions if decision.message >= 0]


def test_interrupted_while_it_moves() -> None:
    """The record is kept; nothing is sent to the next place."""
    play = playbook("other") >> refuses(500) << stores("request") >> interrupts
    play.nothing()
    play >> stored << keeps("interrupted") << ends("interrupted")


def test_interrupted_at_the_next_place() -> None:
    """It is given up as any request is."""
    play = playbook("other") >> refuses(500) << keeps("request") << sends >> interrupts << cancels
    play << keeps("request interrupted") << ends("interrupted")
