"""A turn makes room for itself: before a request where the context fills up, and after a refusal as too long."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.turn.playbook import (
    ANSWER,
    Playbook,
    answers,
    begins,
    ends,
    gives,
    interrupts,
    keeps,
    refuses,
    rule,
    runs,
    said,
    sends,
    stored,
    stores,
    target,
    word,
)
from thinkback.errors import ProviderError, Veto
from thinkback.model.blocks import Origin, Text
from thinkback.model.commits import Compaction, Draft, Message, Response, TurnEnded
from thinkback.model.deltas import Status
from thinkback.model.rule import ModelInfo
from thinkback.model.target import Settings, Target
from thinkback.turn.plan import Plan

HOME = Origin("openai-chat", "https://house.example/v1", "thinker")
LONG = "word " * 400
FULL = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
REASON = '{"error": {"message": "Your input exceeds the context window.", "code": "context_length_exceeded"}}'


def turns(count: int) -> list[Draft]:
    """So many finished turns of about 1,000 tokens each."""
    drafts: list[Draft] = []
    for number in range(count):
        drafts += [
            Draft("user", Message(f"{number} {LONG}")),
            Draft("response", Response(HOME, content="text", blocks=1), f"r{number}"),
            Draft("assistant", Text(f"Answer {number}. {LONG}"), f"r{number}", 0),
            Draft("turn_ended", TurnEnded("completed")),
        ]
    return drafts


def place(context: int = 0, **changed: Any) -> Target:
    """A model with so much context that needs no reasoning back."""
    return target(rule(open_turn="may", later="may", **changed), info=ModelInfo("thinker", context=context))


def details(play: Playbook, state: str) -> list[str]:
    """What was said about the turn in a state."""
    return [delta.detail for delta in play.shown if isinstance(delta, Status) and delta.state == state]


def roles(play: Playbook) -> list[str]:
    """The roles of the messages of the last plan."""
    return [json.loads(message)["role"] for message in play.plans[-1].messages]


def test_a_context_that_fills_up_is_said_once_in_a_turn() -> None:
    """As a share of what the model takes; the request goes out as it is."""
    play = Playbook(log=turns(3), at=place(4_000), runnable=frozenset({"look"})) >> begins << keeps("user") << sends
    play >> answers(said("", "", "look-1")) << keeps("request response tool_call") << runs("look")
    play >> gives("look-1") << keeps("result") << sends
    assert ["75 % of 4,000 tokens (3,010 effective)"] == details(play, "filling")
    assert [] == details(play, "compacting")


def test_a_full_context_is_summarised_before_the_request() -> None:
    """The checkpoint is a commit of the turn, and the request says the summary instead of what it stands for."""
    play = Playbook(log=turns(6), at=place(6_500)) >> begins << keeps("user") << keeps("compaction") << sends
    assert ["filling", "compacting", "sending"] == play.statuses
    assert 13 > len(roles(play))
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    checkpoint = play.history.commits[25].value
    assert isinstance(checkpoint, Compaction)
    assert [checkpoint.before, checkpoint.after] == [6_019, play.plans[-1].counts.effective]
    assert "automatic" in details(play, "compacting")[0]


def test_a_checkpoint_that_the_program_refuses_is_not_made() -> None:
    """The turn goes on without it, and asks again when more was said."""
    asked: list[Compaction] = []

    def refuse(found: Compaction) -> str:
        asked.append(found)
        return "not now"

    play = Playbook(log=turns(6), at=place(6_500), refuses=refuse) >> begins << keeps("user") << sends
    assert (1, []) == (len(asked), details(play, "compacting"))
    play >> refuses(400, FULL) << keeps("request failed") << ends("failed", ProviderError)
    assert ["automatic: 93 % of 6,500 tokens (6,019 effective)", f"overflow: {FULL}"] == [each.reason for each in asked]


def test_each_plan_that_goes_out_is_told_and_may_be_refused() -> None:
    """One that a checkpoint replaces never goes out; a refusal ends the turn."""
    sent: list[Plan] = []
    play = Playbook(log=turns(6), at=place(6_500), sends=sent.append)
    play >> begins << keeps("user") << keeps("compaction") << sends
    assert play.plans == sent

    def veto(plan: Plan) -> None:
        raise Veto("not this one")

    Playbook(sends=veto) >> begins << keeps("user") << keeps("failed") << ends("failed", Veto)


def loop(rounds: int, at: Target, wanted: Settings | None = None) -> Playbook:
    """A turn of so many responses that each called a tool, up to the next request."""

    def plan() -> Plan:
        return play.history.plan(at, wanted or Settings(), None, {})

    play = Playbook("Go on!", at=at, plan=plan, runnable=frozenset({"look"}))
    play >> begins << keeps("user")
    for number in range(rounds):
        play << sends >> answers(said("", "", f"look-{number}")) << keeps("request response tool_call") << runs("look")
        play >> gives(f"look-{number}", LONG + LONG) << keeps("result")
    return play


def test_in_a_long_loop_old_results_are_trimmed_first() -> None:
    """Those of the last responses stay whole, and nothing is summarised."""
    play = loop(8, place(9_700)) << keeps("compaction") << sends
    sent = [json.loads(message) for message in play.plans[-1].messages]
    lengths = [len(message["content"]) for message in sent if message["role"] == "tool"]
    assert [True] * 4 + [False] * 4 == [length < 2 * len(LONG) for length in lengths]
    assert ["user", "assistant", "tool"] == roles(play)[:3]


def test_a_long_loop_is_summarised_between_its_responses() -> None:
    """What the turn is about stays, and so do its last responses; nothing is asked twice."""
    play = loop(8, place(10_000), Settings(compaction_thresholds="70/71/72")) << keeps("compaction") << sends
    assert ["user", "user", "assistant", "tool"] == roles(play)[:4]
    assert "Go on!" == json.loads(play.plans[-1].messages[1])["content"]
    assert len(roles(play)) < 12


def test_a_refusal_as_too_long_is_answered_with_fewer_turns() -> None:
    """Each time fewer stay, visibly, and the refused requests are in the log; then it is the provider's word."""
    play = Playbook(log=turns(12), at=place()) >> begins << keeps("user") << sends
    sizes = [len(roles(play))]
    for _ in range(3):
        play >> refuses(400, FULL) << keeps("request compaction") << sends
        sizes.append(len(roles(play)))
    assert sizes == sorted(set(sizes), reverse=True)
    play >> refuses(400, FULL) << keeps("request failed") << ends("failed", ProviderError)
    assert ["sending", "compacting"] * 3 + ["sending"] == play.statuses


def test_a_refusal_can_come_inside_the_stream() -> None:
    """A response that says nothing else is kept as failed, and the turn goes on with less."""
    play = Playbook(log=turns(6), at=place()) >> begins << keeps("user") << sends
    play >> answers(f"data: {REASON}\n\n".encode()) << keeps("request response") << keeps("compaction") << sends
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    assert play.outcome is not None
    assert 1 == len(play.outcome.responses)


def test_without_anything_to_take_the_refusal_stands() -> None:
    """In a stream as by a status."""
    play = Playbook(at=place()) >> begins << keeps("user") << sends
    play >> refuses(400, FULL) << keeps("request failed") << ends("failed", ProviderError)
    play = Playbook(at=place()) >> begins << keeps("user") << sends
    play >> answers(f"data: {REASON}\n\n".encode()) << keeps("request response") << keeps("failed")
    play << ends("failed", ProviderError)
    assert play.outcome is not None
    assert 1 == len(play.outcome.responses)


def test_what_had_begun_to_answer_is_not_asked_again() -> None:
    """A response that broke off after its first words was read by somebody."""
    play = Playbook(log=turns(6), at=place()) >> begins << keeps("user") << sends
    play >> answers(word("Well"), f"data: {REASON}\n\n".encode())
    play << keeps("request response assistant partial_failed") << ends("partial_failed", ProviderError)


def test_an_interrupt_while_a_checkpoint_is_stored_ends_the_turn() -> None:
    """The checkpoint stays; nothing is sent."""
    play = Playbook(log=turns(6), at=place(6_500)) >> begins << keeps("user") << stores("compaction")
    play >> interrupts >> stored << keeps("interrupted") << ends("interrupted")


@pytest.mark.parametrize("state", ["completed", "failed"])
def test_a_useless_attempt_is_said_and_the_request_goes_out(state: Any) -> None:
    """In the log and on the screen; the next turn does not try again."""
    play = Playbook(LONG * 6, at=place(3_500)) >> begins << keeps("user") << keeps("compaction") << sends
    assert "nothing was done: there is nothing left to take" in details(play, "compacting")[0]
    telling = answers(said("42", "Hm.")) if state == "completed" else refuses(500)
    play >> telling
    if state == "completed":
        play << keeps(ANSWER) << ends("completed")
        Playbook("Again?", history=play.history, at=place(3_500)) >> begins << keeps("user") << sends
