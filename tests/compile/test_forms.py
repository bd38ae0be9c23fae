"""The forms in which reasoning goes back: field, tags, details; and what never does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import (
    BEDROCK,
    ELSEWHERE,
    Talk,
    build,
    call,
    entry,
    native,
    origin,
    rule,
    say,
    settings,
    signed_call,
    tagged,
    target,
    think,
)
from thinkback.compile.forms import own_field
from thinkback.model.blocks import Carrier

DETAILS = rule(form="details", field="reasoning")
TAGS = rule(form="tags")


def last(*blocks: Any, row: Any = None, **header: Any) -> dict[str, Any]:
    """The assistant message made of ``blocks``."""
    return build(Talk().turn("a", *blocks, **header).user("b"), row).messages[1]


def test_field_takes_the_rule_s_name_and_its_doubles() -> None:
    """The text goes into the rule's field, and the same text into the fields beside it."""
    row = rule(field="reasoning", also=("reasoning_content",))
    assert last(think("t"), say("x"), row=row) == {
        "role": "assistant",
        "content": "x",
        "reasoning": "t",
        "reasoning_content": "t",
    }


@pytest.mark.parametrize(
    ("received", "name"),
    [
        ("reasoning", "reasoning"),
        ("reasoning_text", "reasoning_text"),
        ("", "reasoning_content"),
        ("content", "reasoning_content"),
        ("reasoning_details", "reasoning_content"),
    ],
)
def test_an_empty_field_is_the_name_the_text_came_in(received: str, name: str) -> None:
    """A rule without a field name sends the text back under the name it came in, if that is a field for text."""
    block = entry("t") if received == "reasoning_details" else think("t", received)
    assert last(block, say("x"), row=rule(field=""))[name] == "t"


def test_pieces_of_one_field_join_as_they_were_cut() -> None:
    """Pieces of one field are joined without anything between them, different fields on lines of their own."""
    row = rule(field="reasoning_content")
    assert last(think("one "), say("x"), think("two"), row=row)["reasoning_content"] == "one two"
    assert last(think("one"), think("", "reasoning"), think("two", "reasoning"), row=row)["reasoning_content"] == (
        "one\ntwo"
    )


def test_white_space_around_reasoning_is_kept() -> None:
    """Text goes back as it came, white space included."""
    assert last(think("\n t \n"), say("x"))["reasoning_content"] == "\n t \n"


@pytest.mark.parametrize("row", [rule(), TAGS, DETAILS, rule(form="details", field="")])
@pytest.mark.parametrize("blocks", [(think(""),), (think(" \n"),), (think(""), think(" "))])
def test_empty_reasoning_is_omitted(row: Any, blocks: Any) -> None:
    """Reasoning that is empty or blank is not sent in any form, and each piece has its decision."""
    built = build(Talk().turn("a", *blocks, say("x")).user("b"), row)
    assert built.messages[1] == {"role": "assistant", "content": "x"}
    assert built.reasons == ["empty reasoning is omitted"] * len(blocks)


def test_a_placeholder_goes_back_with_the_thought_behind_it() -> None:
    """The field is as it came; tags of its own are no part of it, and a placeholder alone is no reasoning."""
    lead = "Thinking... "
    assert last(think("one", opening=lead), say("x"))["reasoning_content"] == "Thinking... one"
    assert last(think("one", opening=lead), think(" two"), say("x"))["reasoning_content"] == "Thinking... one two"
    assert last(tagged("one"), say("x"))["reasoning_content"] == "one"
    assert "reasoning_content" not in last(think("", opening=lead, signature="s", kind="none"), say("x"))


def test_carriers_have_no_place_beside_a_field() -> None:
    """A field takes text only; the carrier is dropped and said so."""
    built = build(Talk().turn("a", think("t", signature="sig"), say("x")).user("b"))
    assert [(each.action, each.what, each.reason) for each in built.decisions] == [
        ("field", "reasoning", "goes back in reasoning_content: the endpoint keeps it (rule r)"),
        ("drop", "signature", "the endpoint has no place for it beside reasoning_content"),
    ]


def test_tags_give_the_exact_slices_back() -> None:
    """With tags the content goes back byte for byte, wherever the tags stood."""
    blocks = (tagged("\none\n"), say("\n\nanswer"), tagged("two", opening="<thinking>", closing="</thinking>"))
    assert last(*blocks, row=TAGS)["content"] == "<think>\none\n</think>\n\nanswer<thinking>two</thinking>"


def test_other_forms_strip_tags() -> None:
    """Without the tags form the content goes out without tags, the text where the rule wants it."""
    message = last(tagged("one"), say("\n\nanswer"))
    assert message == {"role": "assistant", "content": "answer", "reasoning_content": "one"}
    assert last(tagged("one"), say("\n\nanswer"), row=rule(later="never"))["content"] == "answer"


def test_text_that_came_in_a_field_gets_tags() -> None:
    """Text from a field goes between tags at the start of content where the rule wants tags."""
    assert last(think("one"), say("answer"), row=TAGS)["content"] == "<think>\none\n</think>\n\nanswer"


def test_no_place_beside_tags() -> None:
    """Where content has tags of its own, other text and carriers are dropped with a decision each."""
    built = build(Talk().turn("a", tagged("one", signature="s"), think("else"), say("x")).user("b"), TAGS)
    assert built.messages[1]["content"] == "<think>one</think>x"
    assert built.actions == ["tags", "drop", "drop"]


def test_details_go_back_unmodified_and_in_order() -> None:
    """Entries go back as the objects they came as, in order, encrypted ones included."""
    entries = (entry("one", signature="s1"), entry(data="d1"), entry("two", format="x"))
    built = build(Talk().turn("a", *entries, say("x")).user("b"), DETAILS)
    joined = ",".join(each.wire for each in entries)
    assert f'"reasoning_details":[{joined}]'.encode() in built.raw[1]
    assert [(each.action, each.what) for each in built.decisions] == [
        ("native", "reasoning"),
        ("native", "signature"),
        ("native", "encrypted"),
        ("native", "reasoning"),
    ]
    assert {each.reason for each in built.decisions} == {"entry goes back unmodified: the endpoint keeps it (rule r)"}


@pytest.mark.parametrize(
    ("block", "goes"),
    [
        (entry("t", format="g", signature="s"), False),
        (entry(format="g", data="d"), True),
        (entry("t", format="a"), False),
        (entry("t", format="a", signature="s"), True),
        (entry(format="a", data="d"), True),
        (entry("t", format="x"), True),
    ],
)
def test_entries_that_must_not_go_back(block: Any, goes: bool) -> None:
    """``drop_details`` drops types of a format, ``need_signature`` drops text without its signature."""
    row = rule(form="details", field="", drop_details={"g": ("reasoning.text",)}, need_signature=("a",))
    built = build(Talk().turn("a", block, say("x")).user("b"), row)
    assert goes is ("reasoning_details" in built.messages[1])
    assert set(built.actions) == {"native" if goes else "drop"}


@pytest.mark.parametrize("wire", ['{"type":5,"format":["x"],"signature":7}', '{"format":null}', "{}"])
def test_odd_entries_pass_through(wire: str) -> None:
    """Whatever a host puts into an entry, it goes back as it came."""
    row = rule(form="details", drop_details={"g": ("reasoning.text",)}, need_signature=("a",), repeat_text=("a",))
    built = build(Talk().turn("a", think("t", "reasoning_details", wire=wire), say("x")).user("b"), row)
    assert f'"reasoning_details":[{wire}]'.encode() in built.raw[1]


def test_empty_details_are_kept_as_empty() -> None:
    """``[]`` goes back as ``[]`` where the rule wants it, and only where it came."""
    row = rule(form="details", empty_details=True)
    assert last(say("x"), row=row, message='{"reasoning_details":[]}')["reasoning_details"] == []
    assert "reasoning_details" not in last(say("x"), row=row)
    foreign = Talk(ELSEWHERE).turn("a", say("x"), message='{"reasoning_details":[]}').user("b")
    assert "reasoning_details" not in build(foreign, row).messages[1]
    assert "reasoning_details" not in last(say("x"), row=DETAILS, message='{"reasoning_details":[]}')
    assert "reasoning_details" not in last(say("x"), row=rule(empty_details=True), message='{"reasoning_details":[]}')
    assert "reasoning_details" not in last(
        say("x"), row=rule(form="tags", empty_details=True), message='{"reasoning_details":[]}'
    )


def test_text_beside_details() -> None:
    """Text that came beside the entries goes back beside them; where the rule has no field for it, it is dropped."""
    blocks = (entry("one", signature="s"), think("more", "reasoning"), say("x"))
    assert last(*blocks, row=DETAILS)["reasoning"] == "more"
    built = build(Talk().turn("a", *blocks).user("b"), rule(form="details", field=""))
    assert "reasoning" not in built.messages[1]
    assert built.reasons[-1] == "the endpoint takes no text beside its details"


@pytest.mark.parametrize(("field", "sent"), [("reasoning", True), ("", False)])
def test_text_whose_details_were_lost(field: str, sent: bool) -> None:
    """Text whose details were lost goes back alone, or not at all where the rule has no field for it."""
    built = build(Talk().turn("a", think("t", "reasoning"), say("x")).user("b"), rule(form="details", field=field))
    assert sent is ("reasoning" in built.messages[1])
    assert built.reasons == [
        "goes back in reasoning: the endpoint keeps it (rule r)"
        if sent
        else "the endpoint takes no text without its details"
    ]


@pytest.mark.parametrize(
    ("format", "repeats", "text"), [("a", ("reasoning",), "onetwo"), ("b", ("reasoning",), None), ("a", (), None)]
)
def test_repeated_text(format: str, repeats: tuple[str, ...], text: str | None) -> None:
    """``repeat_text`` repeats the readable text beside the entries of a format, where it came repeated."""
    row = rule(form="details", field="reasoning", repeat_text=("a",))
    message = last(entry("one", format=format), entry("two", format=format), say("x"), row=row, repeats=repeats)
    assert text == message.get("reasoning")


def test_repeated_text_leaves_other_text_alone() -> None:
    """Text that came beside the entries is what goes beside them, not the repetition of another field."""
    row = rule(form="details", field="reasoning", repeat_text=("a",))
    blocks = (entry("one", format="a"), think("more", "reasoning_content"), say("x"))
    assert last(*blocks, row=row, repeats=("reasoning",))["reasoning"] == "more"


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ((entry("t"), say("x")), "details"),
        ((tagged("t"), say("x")), "tags"),
        ((think("t"), say("x")), "tags"),
    ],
)
def test_as_received(blocks: Any, expected: str) -> None:
    """``as_received`` gives tags back as tags and details as details, whatever the rule's form says."""
    message = last(*blocks, row=rule(form="tags", as_received=True))
    assert expected == ("details" if "reasoning_details" in message else "tags")
    assert ("<think>" in message["content"]) is (expected == "tags")


@pytest.mark.parametrize("row", [rule(), TAGS, DETAILS])
@pytest.mark.parametrize("block", [think("Thinking...", marker=True), think("t", "reasoning", is_hidden=True)])
def test_markers_and_doubles_are_never_replayed(row: Any, block: Any) -> None:
    """A provider's placeholder and a hidden double of other reasoning never go back, in no form."""
    built = build(Talk().turn("a", block, say("x")).user("b"), row)
    assert built.messages[1] == {"role": "assistant", "content": "x"}
    assert built.actions == ["drop"]


def test_a_marker_among_tags_is_cut_out() -> None:
    """Of tagged pieces only those that may go are written."""
    built = build(Talk().turn("a", tagged("Thinking...", marker=True), tagged("t"), say("x")).user("b"), TAGS)
    assert built.messages[1]["content"] == "<think>t</think>x"


def test_blocks_of_the_rule_s_own_form_beat_their_doubles() -> None:
    """Where a host sent the same twice, the entries or slices go back complete, and what repeats them does not."""
    blocks = (think("Let me", "reasoning"), entry("Let  me", signature="s", is_hidden=True), say("x"))
    built = build(Talk().turn("a", *blocks).user("b"), DETAILS)
    assert "reasoning" not in built.messages[1]
    assert built.messages[1]["reasoning_details"][0]["signature"] == "s"
    assert built.actions == ["drop", "native", "native"]
    slices = (think("t"), tagged("t", is_hidden=True), say("x"))
    assert last(*slices, row=TAGS) == {"role": "assistant", "content": "<think>t</think>x"}
    assert last(*slices) == {"role": "assistant", "content": "x", "reasoning_content": "t"}


def test_an_opaque_value_goes_out_once() -> None:
    """The same opaque value on several blocks or messages goes out with the first one only."""
    talk = Talk().turn("a", entry("1", signature="s"), entry("2", signature="s"), say("x"))
    talk.turn("b", entry("3", signature="s"), entry("4", signature="t"), say("y")).user("c")
    built = build(talk, DETAILS)
    assert built.body.count(b'"s"') == built.body.count(b'"t"') == 1
    assert built.actions == ["native", "native", "drop", "drop", "drop", "drop", "native", "native"]
    assert built.reasons[2] == "its opaque value goes out with an earlier block, and never twice"


def test_a_value_that_stayed_away_may_go_later() -> None:
    """A value that an earlier message has but does not send goes out with the next one."""
    talk = (
        Talk().turn("a", entry("1", signature="s"), say("x")).turn("b", entry("2", signature="s"), say("y")).user("c")
    )
    built = build(talk, DETAILS, settings(keep_last=1))
    assert built.actions == ["drop", "drop", "native", "native"]


def test_phases_may_repeat() -> None:
    """A phase is no opaque value: the same word stands on many blocks."""
    thoughts = [entry(text, carriers=(Carrier("phase", "p"),)) for text in "ab"]
    assert build(Talk().turn("a", *thoughts, say("x")).user("b"), DETAILS).actions == ["native"] * 4
    calls = signed_call("c1", "p", "phase"), signed_call("c2", "p", "phase")
    built = build(Talk().user("a").reply(*calls).result().result("c2"))
    assert built.actions == ["native", "native"]


def test_calls_share_no_opaque_value() -> None:
    """A signature on two calls goes out with the first; the second is written without it."""
    talk = Talk().user("a").reply(signed_call("c1"), signed_call("c2")).result().result("c2")
    talk.reply(signed_call("c3")).result("c3")
    built = build(talk)
    assert built.body.count(b"abc") == 1
    assert built.actions == ["native", "drop", "drop"]


def test_calls_that_share_an_id_keep_what_they_carry() -> None:
    """They get ids that tell them apart, inside the object that holds the opaque value."""
    built = build(Talk().user("a").reply(call("c1"), signed_call("c1")).result().result())
    calls = built.messages[1]["tool_calls"]
    assert [each.get("held") for each in calls] == [None, "abc"]
    assert [each["id"] for each in calls] == [m["tool_call_id"] for m in built.messages[2:]]
    assert len({each["id"] for each in calls}) == 2
    assert built.actions == ["native"]


def test_own_fields() -> None:
    """Only tags and details have blocks of their own."""
    assert [own_field(form) for form in ("tags", "details", "field", "none")] == [
        "content",
        "reasoning_details",
        "",
        "",
    ]


def test_a_piece_without_a_text_is_told_of_by_what_it_carries() -> None:
    """Beside one that has a text, whose field has no place for it."""
    built = build(Talk().turn("a", think("t"), think("", signature="SIG"), say("x")).user("b"))
    assert ["t"] == built.fields
    assert [("field", "reasoning"), ("drop", "signature")] == [(each.action, each.what) for each in built.decisions]


def test_tags_of_a_text_go_back_in_it_where_reasoning_goes_in_its_place() -> None:
    """The text goes out as it came."""
    talk = Talk(origin(BEDROCK)).turn("a", tagged("one"), say("x")).user("b")
    built = build(talk, target(native(), BEDROCK))
    assert b'[{"text":"<think>one</think>"},{"text":"x"}]' in built.body
    assert ["tags"] == built.actions
