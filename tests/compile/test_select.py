"""Edits, and what programs and people put into a conversation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.compile.build import (
    ANTHROPIC,
    GEMINI,
    Talk,
    build,
    call,
    entry,
    native,
    origin,
    rule,
    say,
    signed_call,
    target,
    think,
    thought,
)
from thinkback.errors import ContextRefused
from thinkback.model.blocks import Block, Carrier, Media, Text, ToolResult, Unknown
from thinkback.model.commits import Message, Priority
from thinkback.model.rule import Rule
from thinkback.model.target import Settings

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


@pytest.mark.parametrize("row", [rule(open_turn="must", missing=("none",)), rule(later="must", missing=("none",))])
def test_required_reasoning_goes_as_it_was_made(row: Rule) -> None:
    """What the endpoint demands is the model's own; the decision says that an edit does not hold."""
    talk = Talk().loop("a", first="plan")
    if row.later == "must":
        talk.end().user("b")
    talk.edit(talk.hashes()[0], think("other"))
    built = build(talk, row)
    assert ["plan"] == built.fields
    edit = talk.commits[-1].hash[:12]
    assert built.reasons[0].endswith(f"; edited by commit {edit}, but what is required goes as it was made")
    assert 1 == len(built.decisions)


def test_required_reasoning_keeps_what_it_carries() -> None:
    """An edit of it voids nothing while it is required, and all of the response once its turn ended."""
    talk = Talk(origin(ANTHROPIC)).user("a").reply(signed(), call()).result()
    talk.edit(talk.hashes()[0], think("other"))
    assert ["native", "native"] == build(talk, SIGNED).actions
    talk.reply(say("x")).end().user("b")
    assert ["drop", "drop"] == build(talk, SIGNED).actions


def test_reasoning_may_be_edited_into_a_text() -> None:
    """It is told as one then, and what it carried is lost."""
    talk = two_turns(think("t", signature="SIG"), say("x"))
    talk.edit(talk.hashes()[0], say("y "))
    built = build(talk)
    assert ["a", "y x", "b"] == built.texts
    assert ["text", "signature"] == [what for what, _ in built.dropped]


def test_a_response_that_people_changed_is_tied_to_nothing_by_its_calls() -> None:
    """They get other ids, so that no provider takes it for the response that it knows."""
    talk = Talk(origin(ANTHROPIC)).user("a").reply(signed(), say("x"), call("c1"), call("c2")).result("c1", "one")
    talk.result("c2", "two").end().user("b")
    assert b'"id":"c1"' in build(talk, SIGNED).body
    talk.edit(talk.hashes("assistant")[0], say("y"))
    built = build(talk, SIGNED)
    ids = [part["id"] for part in built.messages[1]["content"] if part["type"] == "tool_use"]
    assert ids == [part["tool_use_id"] for part in built.messages[2]["content"]]
    assert {"c1", "c2"}.isdisjoint(ids)
    assert ["one", "two"] == [part["content"] for part in built.messages[2]["content"]]
