"""A response that goes as text in the user's words: what it said and did, in its place, and nothing that was opaque."""

from __future__ import annotations

import json

from tests.compile.build import ANTHROPIC, BEDROCK, INTERACTIONS, Built, Talk, build, native, origin, rule, target
from thinkback.model.blocks import Carrier, Media, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.target import Settings

ASKED = native(later="must", missing=("flatten-exchange-to-text",), need_signature=("thought",))
CALL = ToolCall("c1", "look", '{"at":1}')


def signed(text: str = "Hm.", value: str = "SIG") -> ThinkingBlock:
    """A thought step."""
    return ThinkingBlock(text, source_field="thought", kind="summary", carriers=(Carrier("signature", value),))


def roles(built: Built) -> list[str]:
    """Who says what."""
    return [message["role"] for message in built.messages]


def refused(talk: Talk, stage: str = "flatten") -> Talk:
    """``talk`` after a repair that names each of its responses."""
    return talk.repair(stage, *[commit.hash for commit in talk.commits if commit.kind == "response"])


def test_responses_are_told_with_the_results_of_their_calls() -> None:
    """All that was said is there, in order; no message of the assistant's, no result, no carrier is."""
    talk = Talk(origin(ANTHROPIC)).user("a?")
    talk.reply(ThinkingBlock("Hm.", signature="SIG", source_field="thinking"), Text("Let me see."), CALL).result()
    talk.reply(Text("It is 42."), Media("image/png", data="AAAA", name="plot"), Unknown('{"type":"odd"}')).end()
    built = build(refused(talk).user("b?"), target(native(), ANTHROPIC))
    assert ["user"] * 4 == [message["role"] for message in built.messages]
    told = [message["content"] for message in built.messages]
    assert told[1].endswith('Let me see.\n\n(It called look with {"at":1}, and the result was:)\n42')
    assert told[2].endswith("(image/png plot, which cannot be shown here)\n\n(a part that cannot be shown here)")
    assert b"SIG" not in b"".join(built.raw)
    assert ["drop", "drop", "text", "drop", "drop", "text"] == [each.action for each in built.decisions]
    assert [1, 2] == [each.message for each in built.decisions if each.action == "text"]


def test_neighbours_of_one_role_are_one_message() -> None:
    """Where roles alternate, the text is a part of what the user says before and behind it."""
    talk = refused(Talk(origin(BEDROCK)).user("a?").reply(signed(), Text("A.")).end()).user("b?")
    built = build(talk, target(native(), BEDROCK))
    body = json.loads(b"".join(built.request.body(built.writer, built.end)))
    assert [("user", 3)] == [(each["role"], len(each["content"])) for each in body["messages"]]
    assert [0] == [each.message for each in built.decisions if each.action == "text"]


def test_a_response_that_said_nothing_leaves_nothing() -> None:
    """Reasoning alone is no text."""
    talk = Talk().user("a?").reply(ThinkingBlock("Hm.", source_field="reasoning_content")).end()
    assert ["user", "user"] == roles(build(refused(talk).user("b?")))


def test_text_stays_text_when_the_history_grows() -> None:
    """What is answered after it goes as it came, and what is bound to its prefix is valid behind the text."""
    bound = target(native(prefix_bound=True, later="should"), ANTHROPIC)
    talk = refused(Talk(origin(ANTHROPIC)).user("a?").reply(Text("A.")).end()).user("b?")
    talk.answer(bound, ThinkingBlock("Hm.", signature="SIG", source_field="thinking"), Text("B.")).end().user("c?")
    sent = [json.loads(message) for message in talk.plan(bound).messages]
    assert ["user", "user", "user", "assistant", "user"] == [message["role"] for message in sent]
    assert ["thinking", "text"] == [part["type"] for part in sent[3]["content"]]


def test_text_is_no_conversation_that_the_assistant_begins() -> None:
    """An endpoint that wants the user first takes it."""
    talk = Talk(origin(ANTHROPIC)).reply(Text("A.")).end()
    assert "user" == build(refused(talk).user("b?"), target(native(), ANTHROPIC)).messages[0]["role"]


def test_an_endpoint_that_demands_what_may_not_go_is_told_the_exchange() -> None:
    """Where the rule says so, one thought that is void turns its response into text; the others stay as they are."""
    talk = Talk(origin(INTERACTIONS)).user("a?").reply(signed(value="SIG1"), Text("A.")).end()
    talk.user("b?").reply(signed(value="SIG2"), Text("B.")).end()
    void = next(commit.hash for commit in talk.commits if commit.kind == "reasoning")
    built = build(talk.repair("block", void).user("c?"), target(ASKED, INTERACTIONS))
    assert ["user_input", "user_input", "user_input", "thought", "model_output", "user_input"] == [
        step["type"] for step in built.messages
    ]
    assert "(What the assistant said and did here, as text.)\n\nA." == built.messages[1]["content"][0]["text"]


def test_an_exchange_of_others_or_of_other_words_is_not_told_so() -> None:
    """The endpoint cannot miss reasoning of an answer that it never gave."""
    elsewhere = origin(INTERACTIONS, endpoint="https://other.example/v1")
    strange = Talk(elsewhere).user("a?").reply(signed(), Text("A.")).end().user("b?")
    assert ["user_input", "model_output", "user_input"] == [
        step["type"] for step in build(strange, target(ASKED, INTERACTIONS)).messages
    ]
    edited = Talk(origin(INTERACTIONS)).user("a?").reply(signed(), Text("A.")).end()
    said = next(commit.hash for commit in edited.commits if commit.kind == "assistant")
    edited.edit(said, Text("Z.")).user("b?")
    assert "model_output" == build(edited, target(ASKED, INTERACTIONS)).messages[1]["type"]


def test_strict_endpoints_are_told_too() -> None:
    """Text has no reasoning that anybody could demand."""
    demanding = rule(open_turn="must", later="must", missing=())
    talk = refused(Talk().user("a?").reply(ThinkingBlock("Hm.", source_field="reasoning_content"), Text("A.")).end())
    assert ["user", "user", "user"] == roles(build(talk.user("b?"), demanding, Settings(strict=True)))
