"""The shape of a request: messages, fields, tools, and the pairing of calls with answers."""

from __future__ import annotations

import pytest

from tests.referee.talk import WEATHER, Body, body, result, said, user
from thinkback_referee import Ledger, Verdict, judge, profile_for

KEPT: Body = {"reasoning_content": " "}


def judged(*messages: object, **parameters: object) -> Verdict:
    profile = profile_for("deepseek", "deepseek-v4-pro")
    assert profile is not None
    return judge(profile, {"model": "deepseek-v4-pro", "messages": list(messages), **parameters}, Ledger())


@pytest.mark.parametrize(
    ("reason", "messages"),
    [
        ("empty messages", []),
        ("bad role at messages[0]", ["hi"]),
        ("bad role at messages[0]", [{"role": "developer", "content": "hi"}]),
        ("no content at messages[0]", [{"role": "user"}]),
        ("no content at messages[1]", [user("hi"), said(None), user("on")]),
        ("bad content at messages[0]", [{"role": "user", "content": ["hi"]}]),
        ("unknown field thinkback_id at messages[0]", [{**user("hi"), "thinkback_id": 1}]),
        ("unknown field signature at messages[1]", [user("hi"), said("yo", signature="x"), user("on")]),
        ("misplaced reasoning_content at messages[0]", [{**user("hi"), "reasoning_content": "x"}]),
        ("bad reasoning_content at messages[1]", [user("hi"), said("yo", reasoning_content=["x"]), user("on")]),
        ("last message is an assistant message", [user("hi"), said("yo")]),
        ("bad tool_calls at messages[0]", [{**user("hi"), "tool_calls": []}]),
        ("bad tool_calls at messages[1]", [user("hi"), said("", tool_calls={"id": "c1"}), user("on")]),
        ("bad tool_calls at messages[1]", [user("hi"), said("", tool_calls=[{"id": "c1"}]), user("on")]),
        ("answer without a call at messages[1]", [user("hi"), {"role": "tool", "content": "x"}]),
    ],
)
def test_malformed_messages_are_refused(reason: str, messages: list[object]) -> None:
    """Each malformed history is refused with 400 and the place of the fault."""
    verdict = judged(*messages)
    assert (400, reason) == (verdict.status, verdict.reason)
    assert verdict.message


@pytest.mark.parametrize(
    ("reason", "parameters"),
    [
        ("messages is not an array", {"messages": "hi"}),
        ("stream is not a boolean", {"stream": "yes"}),
        ("tools is not an array", {"tools": {}}),
        ("bad type of tools[0]", {"tools": [{"type": "web_search"}]}),
        ("unnamed tools[1]", {"tools": [WEATHER, {"type": "function", "function": {}}]}),
    ],
)
def test_malformed_parameters_are_refused(reason: str, parameters: Body) -> None:
    """Parameters of the wrong shape are refused before anything is looked at."""
    profile = profile_for("deepseek", "deepseek-v4-pro")
    assert profile is not None
    verdict = judge(profile, {**body("deepseek-v4-pro", user("hi")), **parameters}, Ledger())
    assert (400, reason) == (verdict.status, verdict.reason)


@pytest.mark.parametrize(
    ("reason", "messages"),
    [
        ("unanswered call at messages[1]", [user("hi"), said("", "a", **KEPT)]),
        ("unanswered call at messages[1]", [user("hi"), said("", "a", "b", **KEPT), result("b"), user("on")]),
        ("unanswered call at messages[1]", [user("hi"), said("", "a", **KEPT), user("on"), result("a")]),
        ("answer without a call at messages[1]", [user("hi"), result("a")]),
        ("answer without a call at messages[3]", [user("hi"), said("", "a", **KEPT), result("a"), result("a")]),
        ("answer without a call at messages[2]", [user("hi"), said("", "a", **KEPT), result("b")]),
        ("repeated call id at messages[1]", [user("hi"), said("", "a", "a", **KEPT), result("a"), result("a")]),
    ],
)
def test_calls_and_answers_must_pair_up(reason: str, messages: list[Body]) -> None:
    """Every call has exactly one answer directly after its message, and no answer is without a call."""
    verdict = judged(*messages)
    assert (400, reason) == (verdict.status, verdict.reason)


def test_an_unanswered_call_is_named_in_the_usual_words() -> None:
    """The text is OpenAI's and lists the ids without an answer."""
    verdict = judged(user("hi"), said("", "a", "b", **KEPT), result("a"))
    expected = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: b"
    )
    assert expected == verdict.message


def test_answers_may_come_in_any_order() -> None:
    """Within the group after a message the order of the answers is free."""
    assert judged(user("hi"), said("", "a", "b", **KEPT), result("b"), result("a")).ok


def test_a_client_dump_of_nulls_is_accepted() -> None:
    """The fields that the official client adds to every message do no harm."""
    dumped = said("yo", refusal=None, annotations=None, audio=None, function_call=None, **KEPT)
    assert judged(user("hi"), dumped, user("on")).ok


def test_a_prefix_may_come_last() -> None:
    """An assistant message marked as a prefix may end the conversation."""
    assert judged(user("hi"), said("yo", prefix=True)).ok
