"""Priorities: what people want of commits decides what goes, as far as the endpoint leaves the choice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import (
    ANTHROPIC,
    GEMINI,
    RESPONSES,
    Talk,
    build,
    call,
    native,
    origin,
    rule,
    say,
    settings,
    signed_call,
    tagged,
    target,
    think,
    thought,
    tied,
)
from thinkback.errors import ReplayRefused
from thinkback.model.blocks import Block
from thinkback.model.commits import Priority
from thinkback.model.rule import Rule, Switch
from thinkback.model.target import Settings

STRIP = settings(strip_from_context="all")
SIGNED = target(native(need_signature=("thinking",)), ANTHROPIC)


def two_turns(*blocks: Block, **fields: Any) -> Talk:
    """A finished turn of ``blocks``, and a question."""
    return Talk(**fields).user("a").reply(*blocks).end().user("b")


def signed(text: str = "t", value: str = "SIG") -> Block:
    """Reasoning of a dialect that signs it."""
    return thought(ANTHROPIC, text, value)


def reasons(talk: Talk, to: Any = None, wanted: Settings | None = None) -> dict[str, str]:
    """What stays away, and why."""
    return dict(build(talk, to, wanted).dropped)


def test_a_skipped_message_stays_away() -> None:
    """With the reason that was given, until the annotation is taken back."""
    talk = Talk().system().turn("a").user("b")
    talk.annotate(talk.hashes("user")[0], reason="noise").annotate(talk.hashes("system")[0])
    built = build(talk)
    assert ["re a", "b"] == built.texts
    assert [("text", "annotated as skip"), ("text", "annotated as skip: noise")] == built.dropped
    talk.annotate(talk.hashes("user")[0], None, default=True).annotate(talk.hashes("system")[0], Priority.NORMAL)
    assert ["Be brief.", "a", "re a", "b"] == build(talk).texts


def test_what_is_said_of_tags_changes_nothing() -> None:
    """Only a priority decides what goes."""
    talk = Talk().turn("a")
    state = build(talk).state
    talk.annotate(talk.hashes("user")[0], None, tags=("t",), message="m")
    assert build(talk).state.selection is None is state.selection


def test_a_skipped_response_goes_with_its_results() -> None:
    """Its header stands for all of it."""
    talk = Talk().loop("a").reply(say("x")).end().user("b")
    talk.annotate(talk.hashes("response")[0], reason="detour")
    built = build(talk)
    assert ["a", "x", "b"] == built.texts
    assert [("reasoning", "annotated as skip: detour")] == built.dropped


def test_a_skipped_call_goes_with_its_result() -> None:
    """The other calls of the response stay, and what the response carried does not."""
    talk = Talk().user("a").reply(think("t", signature="SIG"), call("c1"), call("c2"), content="null")
    talk.result("c1", "one").result("c2", "two")
    talk.annotate(talk.hashes("tool_call")[0])
    built = build(talk)
    assert ["c2"] == [each["id"] for each in built.messages[1]["tool_calls"]]
    assert ["c2"] == [each["tool_call_id"] for each in built.messages[2:]]
    assert "two" == built.messages[2]["content"]
    assert ["reasoning", "signature", "text"] == [decision.what for decision in built.decisions]
    assert ["field", "drop", "drop"] == built.actions


def test_calls_that_share_an_id_keep_their_own_results() -> None:
    """The first is skipped, and the second result still answers the second call."""
    talk = Talk().user("a").reply(call(""), call(""), content="null").result("", "one").result("", "two")
    talk.result("", "three")
    talk.annotate(talk.hashes("tool_call")[0])
    assert ["two"] == [each["content"] for each in build(talk).messages if each["role"] == "tool"]


def test_a_skipped_result_is_said_to_be_left_out() -> None:
    """A call must be answered."""
    talk = Talk().loop("a").annotate("")
    assert ["a", "c1", "(left out)"] == build(talk).texts


def test_a_response_of_which_nothing_is_left_stays_away() -> None:
    """Reasoning alone is no answer."""
    talk = two_turns(think("t"), say("x"))
    talk.annotate(talk.hashes("assistant")[0])
    built = build(talk)
    assert ["a", "b"] == built.texts
    assert ("reasoning", "nothing else is left of its response: annotated as skip") in built.dropped


def test_skipped_reasoning_voids_what_its_response_carries() -> None:
    """It stays away with every carrier of the response; the ids that tie items to it too."""
    talk = Talk(origin(RESPONSES)).user("a")
    talk.reply(thought(RESPONSES, "t", "SIG", "rs_1"), thought(RESPONSES, "u", "GIS", "rs_2"), tied(say("x"), "msg_1"))
    talk.end().user("b").annotate(talk.hashes()[0])
    built = build(talk, target(native(tied=True), RESPONSES))
    assert {"annotated as skip"} == {reason for _, reason in built.dropped}
    assert ["drop"] * 7 == built.actions
    assert b"_1" not in built.body
    assert b"SIG" not in built.body


def test_carriers_of_a_signature_on_a_call_are_void() -> None:
    """Gemini signs calls: a stand-in takes the place of what was voided."""
    row = native(signed_calls=True, dummy="DUMMY", missing=("dummy",))
    talk = Talk(origin(GEMINI)).user("a").reply(say("x"), signed_call("c1", "SIG")).result()
    talk.annotate(talk.hashes("assistant")[0])
    built = build(talk, target(row, GEMINI))
    assert b"SIG" not in built.body
    assert b"DUMMY" in built.body


def test_required_reasoning_beats_skip_until_its_turn_ends() -> None:
    """The decision says so; afterwards it stays away."""
    talk = Talk(origin(ANTHROPIC)).user("a").reply(signed(), call()).result()
    talk.annotate(talk.hashes()[0], reason="wrong")
    built = build(talk, SIGNED)
    assert b"SIG" in built.body
    assert all("; annotated as skip: wrong, but what is required goes" in reason for reason in built.reasons)
    talk.reply(say("x")).end().user("b")
    assert {"annotated as skip: wrong"} == {reason for _, reason in build(talk, SIGNED).dropped}


def test_required_reasoning_that_people_voided_is_refused() -> None:
    """Before the network, with the block named, where the rule has nothing to put in its place."""
    talk = Talk(origin(ANTHROPIC)).user("a").reply(signed(), say("x"), call()).result()
    talk.annotate(talk.hashes("assistant")[0])
    strict = target(native(need_signature=("thinking",), missing=()), ANTHROPIC)
    with pytest.raises(ReplayRefused, match="annotated as skip") as caught:
        build(talk, strict)
    assert talk.hashes()[0] == caught.value.details["block"]


@pytest.mark.parametrize("priority", [Priority.NORMAL, Priority.IMPORTANT, Priority.PINNED])
@pytest.mark.parametrize(
    "wanted", [STRIP, settings(keep_last=0), settings(include_in_context=False), settings(enabled=False)]
)
def test_an_annotation_lifts_what_settings_say(wanted: Settings, priority: Priority) -> None:
    """Of the reasoning it names, and of no other."""
    talk = Talk().turn("a").turn("b").user("c")
    talk.annotate(talk.hashes()[0], priority, reason="key")
    built = build(talk, None, wanted)
    assert ["on a", None] == built.fields
    assert ["field", "drop"] == built.actions
    assert built.reasons[0].endswith(f"an annotation asks for it (rule r); annotated as {priority}: key")


def test_an_annotation_lifts_one_of_two_thoughts_where_each_stands_for_itself() -> None:
    """In tags too, where the other goes with its tags."""
    for blocks in ((think("one"), think("two")), (tagged("one"), tagged("two"))):
        talk = two_turns(*blocks, say("x"))
        talk.annotate(talk.hashes()[0], Priority.PINNED)
        form: Any = "tags" if blocks[0].source_field == "content" else "field"
        built = build(talk, rule(form=form), STRIP)
        assert b"one" in built.body
        assert b"two" not in built.body
        assert [form, "drop"] == built.actions


def test_an_annotation_lifts_a_whole_response_where_that_goes_whole() -> None:
    """Opaque reasoning goes whole or not at all."""
    talk = two_turns(signed("one", "SIG"), signed("two", "GIS"), say("x"), origin=origin(ANTHROPIC))
    talk.annotate(talk.hashes()[1], Priority.PINNED)
    built = build(talk, SIGNED, STRIP)
    assert ["native"] * 4 == built.actions
    assert "annotated as pinned" in built.reasons[2]
    assert "annotated" not in built.reasons[0]


def test_a_pinned_response_pins_its_reasoning() -> None:
    """What is said of the header holds for reasoning of which nothing else is said."""
    talk = two_turns(think("one"), think("two"), say("x"))
    talk.annotate(talk.hashes("response")[0], Priority.PINNED).annotate(talk.hashes()[1])
    assert ["one"] == build(talk, None, STRIP).fields


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        (rule(later="never"), Settings()),
        (rule(form="none"), Settings()),
        (rule(), settings(strict=True)),
    ],
)
def test_no_annotation_shows_reasoning_to_who_must_not_see_it(row: Rule, wanted: Settings) -> None:
    """Neither does it make anything valid."""
    talk = two_turns(think("one"), say("x"))
    talk.annotate(talk.hashes()[0], Priority.PINNED)
    assert [None] == build(talk, row, wanted).fields
    talk = two_turns(think("one"), say("x"))
    talk.annotate(talk.hashes()[0], Priority.PINNED)
    assert [None] == build(talk, target(rule(), model="m7")).fields


def test_lifted_reasoning_turns_the_hosts_retention_on() -> None:
    """Otherwise the host would throw away what was sent."""
    row = rule(keep_switch=Switch({"keep": 1}, asked=True), drop_switch=Switch({"keep": 0}))
    talk = Talk().turn("a").turn("b").turn("c").user("d")
    off = settings(include_in_context=False)
    assert {"keep": 0} == build(talk, row, off).params
    talk.annotate(talk.hashes()[0], Priority.PINNED)
    assert {"keep": 1} == build(talk, row, off).params
    talk.annotate(talk.hashes()[2], Priority.PINNED).annotate(talk.hashes()[0])
    assert {"keep": 1} == build(talk, row, off).params


def test_skipped_reasoning_does_not_count_for_keep_last() -> None:
    """The last N are those among what was selected."""
    talk = Talk().turn("a").turn("b").user("c")
    talk.annotate(talk.hashes()[1])
    assert ["on a", None] == build(talk, None, settings(keep_last=1)).fields


def test_foreign_reasoning_that_was_edited_is_told_all_the_same() -> None:
    """Only what it carried is void, and that was never valid here."""
    other = origin("openai-chat", endpoint="https://other.example")
    talk = two_turns(think("t"), say("x"), origin=other)
    talk.edit(talk.hashes("assistant")[0], say("y"))
    for row in (rule(), native()):
        built = build(talk, row, settings(foreign="text"))
        assert "text" in built.actions
        assert "y" in built.texts[1]
