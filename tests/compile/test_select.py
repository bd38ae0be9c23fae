"""Edits and priorities: what people said about commits decides what goes of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.compile.build import (
    ANTHROPIC,
    GEMINI,
    RESPONSES,
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
    thought,
    tied,
)
from thinkback.errors import ContextRefused, ReplayRefused
from thinkback.model.blocks import Block, Carrier, Media, Text, ToolResult, Unknown
from thinkback.model.commits import Message, Priority
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


def test_the_last_edit_of_a_message_goes() -> None:
    """Edits of edits too; what the original looked like on the wire does not come back."""
    talk = Talk().note("user", Message("a", wire='{"role":"user","content":"a","name":"n"}', dialect="openai-chat"))
    original = talk.hashes("user")[0]
    talk.edit(original, Message("b")).edit(talk.commits[-1].hash, Message("c"))
    assert ["c"] == build(talk).texts
    assert [] == build(talk).decisions
    assert ["d"] == build(talk.edit(original, Message("d"))).texts


def test_an_edit_goes_as_it_is() -> None:
    """What an edit says of the wire is the edit's own."""
    wire = '{"role":"user","content":"b","name":"n"}'
    talk = Talk().user("a")
    talk.edit(talk.hashes("user")[0], Message("b", wire=wire, dialect="openai-chat"))
    assert [wire.encode()] == build(talk).raw


def test_an_edit_to_the_original_is_no_change() -> None:
    """Restoring brings back what was voided."""
    talk = two_turns(signed(), say("x"), origin=origin(ANTHROPIC))
    text = talk.hashes("assistant")[0]
    before = build(talk, SIGNED).body
    talk.edit(text, say("y"))
    assert b"SIG" not in build(talk, SIGNED).body
    talk.edit(text, say("x"))
    assert before == build(talk, SIGNED).body


def test_an_edited_answer_loses_what_it_carried() -> None:
    """The text goes in other words, and no carrier of the response does, each with the reason."""
    talk = two_turns(signed(), redone := say("x"), origin=origin(ANTHROPIC))
    talk.edit(talk.hashes("assistant")[0], say("y"))
    edit = talk.commits[-1].hash[:12]
    built = build(talk, SIGNED)
    assert {"role": "assistant", "content": "y"} == built.messages[1]
    why = f"edited by commit {edit}"
    assert [("reasoning", why), ("signature", why)] == built.dropped
    assert redone.text not in built.body.decode()[30:60]


def test_edited_reasoning_goes_as_text_where_text_goes() -> None:
    """A field takes it in its new words; where reasoning must be the block it was it stays away."""
    talk = two_turns(think("first", signature="SIG"), say("x"))
    talk.edit(talk.hashes()[0], think("second", signature="SIG"))
    built = build(talk)
    assert ["second"] == built.fields
    assert ["field", "drop"] == built.actions
    assert built.reasons[1].startswith("edited by commit")
    assert ["drop", "drop"] == build(talk, native()).actions


def test_details_without_their_carriers_are_told_as_text() -> None:
    """Where entries go back unmodified, those of a response that was edited go as text beside, or not at all."""
    talk = two_turns(entry("plan", signature="SIG"), say("x"))
    talk.edit(talk.hashes("assistant")[0], say("y"))
    built = build(talk, rule(form="details", field="reasoning"))
    assert "plan" == built.messages[1]["reasoning"]
    assert "reasoning_details" not in built.messages[1]
    assert [("signature", built.reasons[-1])] == built.dropped
    assert built.reasons[-1].startswith("edited by commit")
    talk = two_turns(entry(data="SECRET"), say("x"))
    talk.edit(talk.hashes("assistant")[0], say("y"))
    assert ["drop"] == build(talk, rule(form="details", field="reasoning")).actions


def test_an_edited_call_keeps_its_result() -> None:
    """Whatever id the edit gave it."""
    talk = Talk().user("a").reply(signed_call("c1", "SIG"), content="null").result("c1", "r")
    talk.edit(talk.hashes("tool_call")[0], call("c9"))
    messages = build(talk).messages
    assert ["c9", "c9"] == [messages[1]["tool_calls"][0]["id"], messages[2]["tool_call_id"]]
    assert "r" == messages[2]["content"]
    assert {"thought_signature": f"edited by commit {talk.commits[-1].hash[:12]}"} == reasons(talk)


@pytest.mark.parametrize("value", [ToolResult("c5", "s"), Message("s"), say("s")])
def test_an_edited_result(value: Any) -> None:
    """It answers the same call; nothing else of the response is touched."""
    talk = (
        Talk(origin(ANTHROPIC))
        .user("a")
        .reply(signed(), call())
        .note("tool_result", ToolResult("c1", "r", wire='{"type":"tool_result"}', dialect=ANTHROPIC), "resp1")
    )
    talk.edit(talk.hashes("tool_result")[0], value)
    body = build(talk, SIGNED).body
    assert b'"content":"s"' in body
    assert b"SIG" in body


def test_edits_that_fit_nothing_are_passed_over() -> None:
    """A newer version may edit into what this one cannot say there."""
    talk = Talk().user("a").reply(say("x"), call()).result("c1", "r")
    for kind in ("user", "assistant", "tool_result"):
        talk.edit(talk.hashes(kind)[0], Unknown("{}") if kind != "assistant" else ToolResult("c1", "s"))
    assert ["a", "x", "r"] == build(talk).texts


def test_a_text_may_be_edited_into_what_a_message_holds() -> None:
    """Programs edit with what they have at hand."""
    talk = two_turns(say("x"))
    talk.edit(talk.hashes("assistant")[0], Message("y")).edit(talk.hashes("user")[0], say("c"))
    assert ["c", "y", "b"] == build(talk).texts


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


def test_what_is_stored_is_counted_as_it_is_stored() -> None:
    """Whatever people said about it; what goes counts as it goes."""
    talk = Talk().turn("a").turn("b").user("c")
    before = build(talk).counts
    talk.annotate(talk.hashes("response")[0]).annotate(talk.hashes("user")[0])
    talk.edit(talk.hashes("user")[2], Message("long " * 40))
    after = build(talk).counts
    assert before.raw == after.raw
    assert after.effective > before.effective


def test_content_goes_in_its_role() -> None:
    """A user's and a system's are messages, an assistant's is an answer of nobody's."""
    talk = Talk().content("rule", "system").content("fact").content("draft", "assistant").user("b")
    built = build(talk)
    assert ["system", "user", "assistant", "user"] == [each["role"] for each in built.messages]
    assert ["rule", "fact", "draft", "b"] == built.texts
    assert [] == built.decisions
    edited = talk.edit(talk.hashes("content")[2], say("final"))
    assert ["rule", "fact", "final", "b"] == build(edited).texts


def test_content_that_is_skipped_by_its_type() -> None:
    """An annotation beats the type, either way."""
    talk = Talk().user("a").content("note", priority=Priority.SKIP).content("draft", "assistant").user("b")
    note, draft = talk.hashes("content")
    assert ["a", "draft", "b"] == build(talk).texts
    assert [("text", "note is skip by its type")] == build(talk).dropped
    talk.annotate(note, Priority.NORMAL).annotate(draft)
    assert ["a", "note", "b"] == build(talk).texts


def test_a_summary_of_other_work_is_the_users() -> None:
    """With one plain sentence of what it is."""
    talk = Talk().user("a").summary("It works.", purpose="try it").summary("Done.")
    first, second = build(talk).texts[1:]
    assert first == "This is what came out of work done elsewhere (try it).\n\nIt works."
    assert second == "This is what came out of work done elsewhere.\n\nDone."
    talk.edit(talk.hashes("branch_summary")[1], msgspec.structs.replace(talk.commits[-1].value, text="Redone."))
    assert build(talk).texts[-1].endswith("\n\nRedone.")


def test_reasoning_that_a_person_wrote_down_belongs_to_no_response() -> None:
    """It is shown to people; of a text that a person put into the assistant's mouth an answer is made."""
    talk = Talk().user("a").note("reasoning", think("aside")).note("assistant", say("x")).user("b")
    built = build(talk)
    assert ["a", "x", "b"] == built.texts
    assert [("reasoning", "it was written down by a person and belongs to no response")] == built.dropped
    talk = Talk().note("reasoning", think("aside")).user("b").end("capped")
    assert ["b"] == build(talk).texts


def test_nothing_left_is_refused_before_the_network() -> None:
    """With what was left out, some of it by name."""
    talk = Talk().system()
    for text in "abcd":
        talk.user(text).annotate("")
    with pytest.raises(ContextRefused, match="nothing is left to send, and e would refuse it") as caught:
        build(talk)
    assert 4 == caught.value.details["left_out"]
    assert f"{talk.hashes('user')[0][:12]} (annotated as skip), " in caught.value.message
    assert caught.value.message.endswith(" and 1 more")
    assert ["Be brief."] == build(Talk().system()).texts


@pytest.mark.parametrize(("speech", "refused"), [("anthropic", True), ("gemini", False), ("openai-chat", False)])
def test_an_answer_that_stands_first_is_refused_where_the_dialect_does(speech: str, refused: bool) -> None:
    """Gemini refuses only an answer with calls."""
    talk = Talk(origin(speech)).user("a").reply(say("x")).user("b")
    talk.annotate(talk.hashes("user")[0])
    if refused:
        with pytest.raises(ContextRefused, match="the first message that is left is not the user's"):
            build(talk, target(native(), speech))
    else:
        assert b"x" in build(talk, target(native(), speech)).body
    talk = Talk(origin(speech)).user("a").reply(call()).result().user("b")
    talk.annotate(talk.hashes("user")[0])
    if speech == "openai-chat":
        assert ["c1", "42", "b"] == build(talk).texts
    else:
        with pytest.raises(ContextRefused):
            build(talk, target(native(), speech))


def test_media_and_unknown_items_may_be_skipped() -> None:
    """Each is told of."""
    image = Media("image/png", data="AAAA", carriers=(Carrier("thought_signature", "SIG"),))
    talk = Talk(origin(GEMINI)).user("a").reply(say("x"), image, Unknown('{"odd":1}')).end().user("b")
    talk.annotate(talk.hashes("media")[0]).annotate(talk.hashes("other")[0])
    built = build(talk, target(native(), GEMINI))
    assert ["text", "thought_signature", "text"] == [what for what, _ in built.dropped]
    assert b"AAAA" not in built.body


def test_a_marker_is_no_reasoning_whatever_is_said_of_it() -> None:
    """A provider's placeholder is never replayed."""
    talk = two_turns(thought(ANTHROPIC, "...", marker=True), say("x"), origin=origin(ANTHROPIC))
    talk.annotate(talk.hashes()[0], Priority.PINNED).edit(talk.hashes("assistant")[0], Text("y"))
    assert ["a placeholder of the provider, not reasoning"] == build(talk, SIGNED).reasons
