"""Items with words, such as the summary of a compaction: their maker gets them back, others the words."""

from __future__ import annotations

from tests.compile.build import HERE, Talk, build, native, origin, say, target
from tests.compile.test_guard import changed
from thinkback.compile import units
from thinkback.model.blocks import Carrier, Text, Unknown
from thinkback.model.commits import Message

SUMMARY = "So far: the build fails."
WIRE = '{"type":"compaction","content":"So far: the build fails.","signature":"SIG"}'


def test_the_words_of_an_item_go_where_the_item_cannot() -> None:
    """To its maker it goes as it is; to anybody else its words, in its place, with the reason; no carrier with them."""
    item = Unknown(WIRE, (Carrier("signature", "SIG"),), text=SUMMARY)
    own = build(Talk(HERE).turn("a", item, say("x")).user("b"))
    other = build(Talk(changed(requested_model="m2", served_model="m2")).turn("a", item, say("x")).user("b"))

    assert WIRE.encode() in own.body
    assert SUMMARY.encode() in other.body
    assert b"SIG" not in other.body
    assert ["text", "drop"] == other.actions
    assert other.decisions[0].reason.startswith("its words go as text: ")
    assert len(SUMMARY) == other.decisions[0].characters


def test_an_item_without_carriers_is_told_in_words_too() -> None:
    """Nothing ties it, but its form is its dialect's."""
    item = Unknown('{"type":"compaction","content":"So far."}', text="So far.")
    other = build(Talk(changed(requested_model="m2", served_model="m2")).turn("a", item, say("x")).user("b"))
    assert b"So far." in other.body
    assert b"compaction" not in other.body
    assert ["text"] == other.actions


def test_a_response_of_nothing_else_is_a_message() -> None:
    """A summary alone tells another model something; an item without words tells nothing."""
    assert units.says(Unknown(WIRE, text=SUMMARY))
    assert not units.says(Unknown(WIRE))
    other = build(
        Talk(changed(requested_model="m2", served_model="m2")).turn("a", Unknown(WIRE, text=SUMMARY)).user("b")
    )
    assert ["user", "assistant", "user"] == [each["role"] for each in other.messages]


def test_words_in_a_message_of_a_person_go_along() -> None:
    """A client may give a summary back in its own message."""
    message = Message("see", (Text("see"), Unknown(WIRE, text=SUMMARY)), "", "anthropic")
    built = build(Talk(origin("openai-chat")).note("user", message), target(native(), "openai-responses"))
    assert SUMMARY.encode() in built.body
    assert b"SIG" not in built.body
    assert [] == built.actions


def test_what_is_told_in_plain_words_has_them() -> None:
    """A response that is flattened, or a withheld one: the words stand in the text, or the item is dropped."""
    item = Unknown(WIRE, text=SUMMARY)
    flat = Talk(HERE).turn("a", item, say("x"))
    flat = flat.repair("flatten", *[commit.hash for commit in flat.commits if commit.kind == "response"])
    assert SUMMARY.encode() in build(flat.user("b")).body
    withheld = build(Talk().turn("a", item, complete=False).user("b"))
    assert ["drop"] == withheld.actions
    assert SUMMARY.encode() not in withheld.body
