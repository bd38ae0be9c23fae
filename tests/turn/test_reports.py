"""What the provider says it did with reasoning, put beside the decisions that sent it."""

from __future__ import annotations

from tests.compile.build import ANTHROPIC, RESPONSES, Talk, native, origin, say, target, thought, tied
from thinkback.model.commits import Response
from thinkback.model.target import Decision
from thinkback.turn.reports import report_of, reported
from thinkback.wire.result import Report

DROPPED = '{"input_transformations":[{"type":"thinking_dropped","path":"messages.1.content.0","reason":"model"}]}'


def words(decisions: list[Decision]) -> list[str]:
    """What was reported of each decision."""
    return [decision.reported for decision in decisions]


def test_a_report_of_a_place_is_about_the_block_there() -> None:
    """Text and signature of the block, and no other block of the message."""
    talk = Talk(origin(ANTHROPIC)).turn(
        "a", thought(ANTHROPIC, "t", "SIG1"), say("x"), thought(ANTHROPIC, "u", "SIG2"), say("y")
    )
    plan = talk.user("b").plan(target(native(), ANTHROPIC))
    answer = Talk(origin(ANTHROPIC)).reply(say("z"), envelope=DROPPED)
    plan.answered(report_of("resp1", answer.commits), talk.commits)
    assert ["thinking_dropped: model"] * 2 + ["", ""] == words(plan.decisions)


def test_a_report_of_a_message_is_about_all_in_it() -> None:
    """Where no part is named."""
    talk = Talk(origin(ANTHROPIC)).turn("a", thought(ANTHROPIC, "t", "SIG1"), say("x")).user("b")
    decisions = talk.plan(target(native(), ANTHROPIC)).decisions
    assert ["gone", "gone"] == words(reported(decisions, Report((("messages.1", "gone"),)), talk.commits))
    assert ["", ""] == words(reported(decisions, Report((("messages.3", "gone"),)), talk.commits))
    assert decisions == reported(decisions, Report(), talk.commits)


def test_a_report_of_an_item_is_about_its_block() -> None:
    """By the id that the item carries, and only where it was sent."""
    blocks = (thought(RESPONSES, "s", "ENC", "rs_1"), tied(say("x"), "msg_1"))
    talk = Talk(origin(RESPONSES)).turn("a", *blocks).user("b")
    report = Report((("rs_1", "dropped: model_mismatch"), ("input.9.content.1", "gone")))
    sent = reported(talk.plan(target(native(), RESPONSES)).decisions, report, talk.commits)
    assert ["dropped: model_mismatch"] * 3 + [""] == words(sent)
    strange = target(native(), RESPONSES, base_url="https://other.example")
    assert {""} == set(words(reported(talk.plan(strange).decisions, report, talk.commits)))


def test_a_response_that_did_not_come_reports_nothing() -> None:
    """Neither does one of a dialect that has no words for it."""
    chat = Talk().reply(say("x"))
    assert Report() == report_of("resp1", chat.commits)
    assert Report() == report_of("gone", chat.commits)
    assert isinstance(chat.commits[0].value, Response)
