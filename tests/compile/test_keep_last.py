"""``stripFromContext`` and ``keepLast``: the last N responses of finished turns, and the cost (3.9)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compile.build import Talk, build, call, entry, rule, say, settings, tagged, think
from thinkback.model.target import Settings

COST = "; it went along before, so a prompt cache ends at this message"


def three() -> Talk:
    """Three finished turns and a question."""
    return Talk().turn("a").turn("b").turn("c").user("d")


@pytest.mark.parametrize(
    ("wanted", "fields"),
    [
        (Settings(), ["on a", "on b", "on c"]),
        (settings(strip_from_context="none"), ["on a", "on b", "on c"]),
        (settings(strip_from_context="allButLast"), [None, None, "on c"]),
        (settings(strip_from_context="all"), [None, None, None]),
        (settings(keep_last=2), [None, "on b", "on c"]),
        (settings(keep_last=9), ["on a", "on b", "on c"]),
        (settings(keep_last=2, strip_from_context="all"), [None, "on b", "on c"]),
    ],
)
def test_the_last_n(wanted: Settings, fields: list[str | None]) -> None:
    """Of finished turns the last N responses with reasoning keep it."""
    assert fields == build(three(), None, wanted).fields


def test_the_unit_is_the_response() -> None:
    """N counts responses, not turns: of a turn with two the later one is kept."""
    talk = Talk().loop("a").reply(think("last"), say("done")).end().user("b")
    assert build(talk, None, settings(keep_last=1)).fields == [None, "last"]


def test_the_turn_under_way_is_never_stripped() -> None:
    """The open turn keeps all of its reasoning and uses up none of N."""
    talk = Talk().turn("a").turn("b").loop("c").reply(think("second"), say("x"))
    assert build(talk, None, settings(keep_last=1)).fields == [None, "on b", "plan", "second"]
    assert build(talk, None, settings(keep_last=0)).fields == [None, None, "plan", "second"]


@pytest.mark.parametrize(
    "blocks",
    [
        (say("x"),),
        (think("Thinking...", marker=True), say("x")),
        (think(" "), say("x")),
    ],
)
def test_responses_without_reasoning_are_not_counted(blocks: Any) -> None:
    """A response without reasoning, or with a marker only, uses up none of N."""
    talk = Talk().turn("a").turn("b", *blocks).user("c")
    assert build(talk, None, settings(keep_last=1)).fields == ["on a", None]


def test_a_carrier_alone_counts() -> None:
    """A response whose reasoning is an opaque value alone is one of the last N."""
    talk = Talk().turn("a", entry("t", signature="s"), say("x")).turn("b", entry(data="d"), say("x")).user("c")
    messages = build(talk, rule(form="details"), settings(keep_last=1)).messages
    assert [("reasoning_details" in each) for each in messages if each["role"] == "assistant"] == [False, True]


CARRY = settings(keep_last=3, carry=True)


def test_an_app_carries_the_last_three() -> None:
    """As keepLast = 3, as long as every turn brings reasoning (REASONING_CONTEXT_MAX)."""
    talk = Talk().turn("a").turn("b").turn("c").turn("d").user("e")
    built = build(talk, None, CARRY)
    assert [None, "on b", "on c", "on d"] == built.fields
    assert "the app carries the last 3" in built.decisions[0].reason


@pytest.mark.parametrize(
    "blocks",
    [
        (say("x"),),
        (think("Thinking...", marker=True), say("x")),
    ],
)
def test_a_turn_without_reasoning_empties_what_an_app_carries(blocks: Any) -> None:
    """What came before it does not come back, what comes after it counts from one."""
    talk = Talk().turn("a").turn("b").turn("c", *blocks)
    assert [None, None, None] == build(talk, None, CARRY).fields
    talk.turn("d").user("e")
    assert [None, None, None, "on d"] == build(talk, None, CARRY).fields
    assert ["on a", "on b", None, "on d"] == build(talk, None, settings(keep_last=3)).fields


def test_only_a_finished_turn_that_was_answered_empties_it() -> None:
    """A turn under way may still reason, and one that failed said nothing about it."""
    talk = Talk().turn("a").user("b").reply(call())
    assert ["on a", None] == build(talk, None, CARRY).fields
    failed = Talk().turn("a").user("b").reply(say("x"), complete=False).end("failed").user("c")
    assert ["on a"] == build(failed, None, CARRY).fields


@given(st.lists(st.booleans(), max_size=12))
def test_what_is_carried_is_what_the_words_say(thinking: list[bool]) -> None:
    """Of any turns: the last three that reasoned since the last that did not; what came before is settled."""
    talk = Talk()
    for at, thinks in enumerate(thinking):
        talk.turn(str(at), *(() if thinks else (say("x"),)))
    since = max((at + 1 for at, thinks in enumerate(thinking) if not thinks), default=0)
    kept = range(since, len(thinking))[-3:]
    built = build(talk.user("now"), None, CARRY)
    assert [f"on {at}" if at in kept else None for at in range(len(thinking))] == built.fields
    # the last turn may still change
    assert built.state.settled >= max((at + 1 for at, thinks in enumerate(thinking[:-1]) if not thinks), default=0)


@pytest.mark.parametrize("header", [{"complete": False}, {}])
def test_withheld_responses_are_not_counted(header: Any) -> None:
    """A response that is not replayed uses up none of N."""
    talk = Talk().turn("a").user("b")
    talk.reply(think("lost"), call(), **header).end("failed" if header else "capped").user("c")
    assert build(talk, None, settings(keep_last=1)).fields == ["on a"]


def test_stripping_one_response_leaves_its_text() -> None:
    """What is stripped is the reasoning; text, also around tags, stays."""
    talk = Talk().turn("a", tagged("t"), say("x")).user("b")
    assert build(talk, rule(form="tags"), settings(keep_last=0)).messages[1]["content"] == "x"


@pytest.mark.parametrize(
    ("row", "wanted", "costs"),
    [
        (rule(), settings(keep_last=1), [COST, COST, COST, ""]),
        (rule(), settings(strip_from_context="allButLast"), [COST, COST, COST, ""]),
        (rule(), settings(keep_last=0), [COST, "", COST, ""]),
        (rule(open_turn="never"), settings(keep_last=0), ["", "", "", ""]),
        (rule(open_turn="must"), settings(include_in_context=False), [COST, "", COST, ""]),
        (rule(), settings(include_in_context=False), ["", "", "", ""]),
        (rule(), settings(include_in_context=False, keep_last=1), ["", "", "", ""]),
    ],
)
def test_the_decision_reports_the_cost(row: Any, wanted: Settings, costs: list[str]) -> None:
    """A setting that takes away what was sent before says that the cache ends there.

    With N = 0 only the first step of a turn was sent before: its last response never was.
    """
    talk = Talk()
    for text in "ab":
        talk.loop(text).reply(think(f"end of {text}"), say("x")).end()
    reasons = build(talk.user("c"), row, wanted).reasons
    assert [COST if reason.endswith(COST) else "" for reason in reasons] == costs


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5])
def test_settled_turns_are_those_out_of_reach(number: int) -> None:
    """A turn is settled once N later responses with reasoning are finished; the last finished one always waits."""
    talk = Talk()
    for at in range(6):
        talk.turn(str(at))
    built = build(talk.user("now"), None, settings(keep_last=number))
    assert max(6 - max(number, 1), 0) == built.state.settled
    assert built.fields == [None] * (6 - number) + [f"on {at}" for at in range(6 - number, 6)]
