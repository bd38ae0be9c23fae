"""What the turn asks of its host: requests, permissions, places, the word of hooks; and what fails there."""

from __future__ import annotations

import pytest

from tests.turn.playbook import (
    ANSWER,
    Playbook,
    answers,
    begins,
    breaks,
    ends,
    fails,
    gives,
    interrupts,
    keeps,
    questions,
    refuses,
    replies,
    runs,
    said,
    sends,
    stored,
    stores,
)
from thinkback.errors import ReplayRefused, SettingError, Veto
from thinkback.turn import events
from thinkback.turn.permissions import Verdict


def sent(**ask: object) -> Playbook:
    """A turn whose first request is out; every question is scripted."""
    play = Playbook(scripted=True, **ask) >> begins << keeps("user")  # type: ignore[arg-type]
    return play << questions(events.BuildRequest) >> replies << questions(events.Review) >> replies << sends


def called(*ids: str) -> Playbook:
    """The same, and the response calls ``ids``."""
    play = sent(runnable=frozenset({"look", "go"})) >> answers(said("", "Hm.", *ids))
    return play << keeps(f"request response reasoning{' tool_call' * len(ids)}")


def test_a_request_is_built_and_reviewed_before_it_is_sent() -> None:
    """Each step of a tool loop asks again; nothing of it is stored."""
    play = called("look-1") << questions(events.Permit) >> replies << runs("look") >> gives("look-1")
    play << keeps("result") << questions(events.BuildRequest) >> replies << questions(events.Review) >> replies
    play << sends >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")


@pytest.mark.parametrize("error", [ReplayRefused("signature lost"), OSError("settings.toml"), KeyError("x")])
def test_a_plan_that_fails_ends_the_turn(error: Exception) -> None:
    """The message stays, nothing is sent, and the caller gets the error as it was raised."""
    play = Playbook(scripted=True) >> begins << keeps("user") << questions(events.BuildRequest) >> fails(error)
    play << keeps("failed") << ends("failed", type(error))
    assert play.outcome is not None
    assert play.outcome.error is error


def test_a_plan_that_fails_after_a_tool_ends_the_turn() -> None:
    """The result of the tool is in the log."""
    play = called("look-1") << questions(events.Permit) >> replies << runs("look") >> gives("look-1")
    play << keeps("result") << questions(events.BuildRequest) >> fails(SettingError("effort"))
    play << keeps("failed") << ends("failed", SettingError)


def test_a_hook_that_fails_ends_the_turn_before_the_network() -> None:
    """There is no record of a request that never went out."""
    play = Playbook(scripted=True) >> begins << keeps("user") << questions(events.BuildRequest) >> replies
    play << questions(events.Review) >> fails(Veto("not this one")) << keeps("failed") << ends("failed", Veto)
    assert [] == play.statuses


def test_permissions_that_cannot_be_read_deny_the_call() -> None:
    """The other calls keep their verdicts, and none is run."""
    play = called("look-1", "go-1") << questions(events.Permit)
    first = play.question
    play << questions(events.Permit) >> fails(SettingError("the file is broken"))
    play.question = first
    play >> replies << keeps("denied result:not_run result:not_run denied") << ends("denied")
    assert play.outcome is not None
    assert "go was denied: the permissions could not be read: the file is broken" == play.outcome.reason


def test_verdicts_come_in_any_order_and_count_once() -> None:
    """A second word on a call is ignored, and one on no call."""
    play = called("look-1", "go-1")
    play << questions(events.Permit)
    first = play.question
    play << questions(events.Permit)
    second = play.question
    assert first is not None
    assert second is not None
    for id, action in ((second.id, "allow"), (second.id, "deny"), ("nobody", "deny")):
        play.tell(events.Permitted(id, Verdict(action), play.now))  # type: ignore[arg-type]
    play.tell(events.Failed(second.id, SettingError("late"), play.now))
    play.nothing()
    play.tell(events.Permitted(first.id, Verdict("allow"), play.now))
    play << runs("look", "go")


@pytest.mark.parametrize("telling", [refuses(503, "busy"), breaks("connect")])
def test_a_place_that_cannot_be_chosen_ends_the_turn(telling: object) -> None:
    """The record of the request stays; the error is what choosing raised."""
    play = sent() >> telling << questions(events.NextPlace) >> fails(SettingError("profile"))  # type: ignore[operator]
    play << keeps("request failed") << ends("failed", SettingError)


def test_a_failed_choice_takes_no_second_answer() -> None:
    """What comes late counts for nothing."""
    play = sent() >> refuses(503, "busy") << questions(events.NextPlace) >> fails(SettingError("profile"))
    play << stores("request failed")
    play >> replies >> fails(SettingError("again")) >> stored << ends("failed", SettingError)


@pytest.mark.parametrize("kind", [events.BuildRequest, events.Review])
def test_interrupted_while_a_request_is_made(kind: type[events.Question]) -> None:
    """The turn ends at once; the answer that comes later counts for nothing."""
    play = Playbook(scripted=True) >> begins << keeps("user") << questions(events.BuildRequest)
    if kind is events.Review:
        play >> replies << questions(events.Review)
    play >> interrupts << keeps("interrupted") << ends("interrupted")
    play >> replies
    play.nothing()


def test_interrupted_while_the_next_place_is_chosen() -> None:
    """The record of what went out stays; the request that is over is not given up once more."""
    play = sent() >> breaks("connect") << questions(events.NextPlace) >> interrupts
    play << keeps("request interrupted") << ends("interrupted")


def test_interrupted_while_permissions_are_read() -> None:
    """The calls are recorded as interrupted, and a late verdict runs nothing."""
    play = called("look-1") << questions(events.Permit) >> interrupts
    play << keeps("result:interrupted interrupted") << ends("interrupted")
    play >> replies
    play.nothing()


def test_an_answer_to_no_question_is_ignored() -> None:
    """Of whatever kind."""
    play = sent()
    for event in (
        events.Built("nobody", play.plans[0], play.now),
        events.Reviewed("nobody", "", play.now),
        events.PlaceChosen("nobody", "elsewhere", play.now),
        events.Failed("nobody", SettingError("x"), play.now),
    ):
        play.tell(event)
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")


def test_an_answer_of_another_kind_is_a_fault_of_the_host() -> None:
    """It is not taken for what was asked."""
    play = Playbook(scripted=True) >> begins << keeps("user") << questions(events.BuildRequest)
    assert play.question is not None
    with pytest.raises(TypeError, match="Reviewed is no answer to BuildRequest"):
        play.tell(events.Reviewed(play.question.id, "", play.now))
