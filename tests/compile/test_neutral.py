"""Compile without a target: what a conversation says, as of now or then, whole or in part."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.compile.build import ANTHROPIC, BEDROCK, GEMINI, MISTRAL, RESPONSES, Talk, call, entry, say, think
from tests.compile.test_laws import OPAQUE, talks
from thinkback.compile.neutral import Compiled, Options, compile_neutral
from thinkback.errors import NotFoundError
from thinkback.model.blocks import Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Message, Priority, Usage
from thinkback.wire.registry import PACKAGES, dialect


def made(talk: Talk, **options: Any) -> Compiled:
    """What a conversation says."""
    return compile_neutral(talk.commits, Options(**options))


def said(talk: Talk, **options: Any) -> list[tuple[str, str]]:
    """Who says what."""
    return [(message.role, message.text) for message in made(talk, **options).messages]


def test_a_conversation_without_its_reasoning() -> None:
    """Reasoning is left out unless somebody asks for it; every commit that is told of is named."""
    talk = Talk().system().loop("a").reply(think("t"), say("x")).end()
    compiled = made(talk)
    assert [("system", "Be brief."), ("user", "a"), ("assistant", ""), ("tool", "42"), ("assistant", "x")] == [
        (message.role, message.text) for message in compiled.messages
    ]
    assert (ToolCall("c1", "look", "{}"),) == compiled.messages[2].blocks
    assert (ToolResult("c1", "42", "look"),) == compiled.messages[3].blocks
    kinds = {commit.hash: commit.kind for commit in talk.commits}
    expected = ["system", "user", "response", "tool_call", "tool_result", "response", "assistant"]
    assert expected == [kinds[hash] for hash in compiled.commit_hashes]
    assert 7 == compiled.commit_count
    assert () == compiled.warnings


def test_reasoning_is_a_message_of_its_own() -> None:
    """It stands before the answer it led to, and is no part of it; what a person wrote down stands where it came."""
    talk = Talk().turn("a", think("one"), think("two"), say("x")).note("reasoning", think("aside")).user("b")
    compiled = made(talk, include_reasoning=True)
    roles = ["user", "reasoning", "reasoning", "assistant", "reasoning", "user"]
    assert roles == [message.role for message in compiled.messages]
    assert ["one", "two", "aside"] == [each.text for each in compiled.messages if each.role == "reasoning"]
    assert talk.hashes() == [each.hash for each in compiled.messages if each.role == "reasoning"]
    assert not any(isinstance(block, ThinkingBlock) for each in compiled.messages[3:4] for block in each.blocks)


def test_annotations_win_either_way() -> None:
    """Over what is asked for, and over what is not."""
    talk = Talk().turn("a").turn("b").turn("c").user("d")
    talk.annotate(talk.hashes()[0], Priority.PINNED).annotate(talk.hashes()[1])
    assert ["on a"] == [text for role, text in said(talk) if role == "reasoning"]
    assert ["on a", "on c"] == [text for role, text in said(talk, include_reasoning=True) if role == "reasoning"]
    assert [Priority.PINNED, Priority.NORMAL] == [
        each.priority for each in made(talk, include_reasoning=True).messages if each.role == "reasoning"
    ]
    talk.annotate(talk.hashes("response")[2], Priority.IMPORTANT)
    assert ["on a", "on c"] == [text for role, text in said(talk) if role == "reasoning"]


def test_reasoning_that_nobody_can_read_is_not_shown() -> None:
    """Nor are markers, and what repeats another block."""
    blocks = (think("", signature="SIG"), think("...", marker=True), think("t", is_hidden=True), entry(data="DATA"))
    talk = Talk().turn("a", *blocks, say("x"))
    assert ["user", "assistant"] == [role for role, _ in said(talk, include_reasoning=True)]


def test_what_people_said_is_heard() -> None:
    """Edits, priorities, checkpoints, content and summaries, as in requests."""
    talk = Talk().turn("a").turn("b").turn("c").content("note").summary("done").user("d")
    talk.compact(talk.hashes("user")[0], talk.hashes("turn_ended")[0], "s")
    talk.edit(talk.hashes("assistant")[1], say("better")).annotate(talk.hashes("response")[2])
    talk.annotate(talk.hashes("content")[0], Priority.IMPORTANT)
    compiled = made(talk)
    texts = [message.text.rpartition("\n\n")[2] for message in compiled.messages]
    assert ["s", "b", "better", "c", "note", "done", "d"] == texts
    assert Priority.IMPORTANT == compiled.messages[4].priority
    assert Priority.NORMAL == compiled.messages[0].priority


def test_reasoning_outlives_the_answer_that_was_skipped() -> None:
    """Where somebody asked for it: it is told by itself."""
    talk = Talk().turn("a").user("b")
    talk.annotate(talk.hashes("assistant")[0])
    assert [("user", "a"), ("user", "b")] == said(talk)
    talk.annotate(talk.hashes()[0], Priority.PINNED)
    assert [("user", "a"), ("reasoning", "on a"), ("user", "b")] == said(talk)


def test_the_type_of_content_has_a_priority() -> None:
    """Which is told, and decides without an annotation."""
    talk = Talk().content("note", priority=Priority.PINNED).content("gone", priority=Priority.SKIP)
    assert [("user", "note")] == said(talk)
    assert Priority.PINNED == made(talk).messages[0].priority


def test_what_did_not_complete_is_told_of() -> None:
    """In a warning; a call without a result is said to be interrupted."""
    talk = Talk().user("a").reply(say("half"), complete=False).reply(call()).user("b")
    compiled = made(talk)
    header = talk.hashes("response")[0][:12]
    assert (f"response {header} is left out: the response did not complete",) == compiled.warnings
    result = compiled.messages[2]
    assert ("tool", "interrupted", "", ()) == (result.role, result.blocks[0].status, result.hash, result.commits)  # type: ignore[union-attr]


def test_what_only_its_provider_can_read_is_left_out() -> None:
    """Media stay, without what they carry."""
    image = Media("image/png", data="AAAA", name="cat", wire="{}", carriers=(Carrier("thought_signature", "SIG"),))
    talk = Talk().note("user", Message("a", (Text("a"), image, Unknown("{}"))))
    talk.reply(image, Unknown("{}"), say("x"))
    compiled = made(talk)
    assert [("user", "a\n[image/png cat]"), ("assistant", "[image/png cat]x")] == said(talk)
    assert Media("image/png", data="AAAA", name="cat") == compiled.messages[0].blocks[1]
    assert 2 == len(compiled.warnings)
    assert "items that only their provider can read" in compiled.warnings[0]


def test_the_state_as_of_a_commit() -> None:
    """What was said of it later was not known then."""
    talk = Talk().turn("a").user("b")
    at = talk.commits[-1].hash
    talk.edit(talk.hashes("user")[0], Message("edited")).turn("c")
    assert ("user", "edited") == said(talk)[0]
    assert [("user", "a"), ("assistant", "re a"), ("user", "b")] == said(talk, at=at)
    with pytest.raises(NotFoundError):
        made(talk, at="elsewhere")


def test_the_state_as_of_a_time() -> None:
    """The last commit of then or earlier is the last that counts, though a clock was set back in between."""
    talk = Talk().turn("a").user("b")
    time = talk.commits[-1].time
    talk.annotate(talk.hashes("user")[0])
    assert ("assistant", "re a") == said(talk)[0]
    assert [("user", "a"), ("assistant", "re a"), ("user", "b")] == said(talk, at_time=time)
    assert [("user", "a")] == said(talk, at_time=time, at=talk.commits[0].hash)
    assert [] == said(talk, at_time=-1)


def test_the_last_turns() -> None:
    """And the system messages of the others."""
    talk = Talk().system().turn("a").turn("b").turn("c")
    assert ["Be brief.", "b", "re b", "c", "re c"] == [text for _, text in said(talk, strategy="last", turns=2)]


def test_older_turns_shrink_where_they_do_not_fit() -> None:
    """To what the user said, answers without tool traffic, and what must stay; its results go along with a call."""
    talk = Talk().system()
    for text in ("a", "b"):
        talk.user(text).reply(think(f"plan {text}"), call(f"c{text}"), say("look")).result(f"c{text}")
        talk.reply(think(f"on {text}"), say(f"re {text}")).end()
    talk.turn("c" * 400)
    full = said(talk, include_reasoning=True)
    assert full == said(talk, strategy="adaptive", include_reasoning=True)
    small = said(talk, strategy="adaptive", tokens=10, include_reasoning=True)
    last = [("user", "c" * 400), ("reasoning", "on " + "c" * 400), ("assistant", "re " + "c" * 400)]
    older = [("user", "a"), ("assistant", "re a"), ("user", "b"), ("assistant", "re b")]
    assert [("system", "Be brief."), *older, *last] == small
    talk.annotate(talk.hashes("tool_result")[1], Priority.IMPORTANT).annotate(talk.hashes()[1], Priority.PINNED)
    small = said(talk, strategy="adaptive", tokens=10)
    assert [("reasoning", "on a"), ("assistant", "re a"), ("user", "b"), ("assistant", "look"), ("tool", "42")] == [
        each for each in small if each in (("tool", "42"), ("assistant", "look"), *older[1:3], ("reasoning", "on a"))
    ]
    assert [] == said(Talk(), strategy="adaptive")


def test_tokens_are_estimated_or_calibrated() -> None:
    """By what providers reported, whoever they were."""
    talk = Talk().user("a" * 400).reply(call(), say("x" * 396), usage=Usage(1, 200, 0)).end()
    compiled = made(talk)
    assert "calibrated" == compiled.token_source
    assert compiled.token_count == round((400 + 6 + 396 + len(compiled.messages[2].text)) / ((396 + 6) / 200))
    counted = Usage(1, 200, 100, counted=("reasoning_beside_output",))
    talk = Talk().turn("a", think("t" * 200), say("x" * 400), usage=counted).annotate("")
    assert "calibrated" == made(talk).token_source
    talk = Talk().turn("a", think("t" * 200), usage=Usage(1, 200, 200)).annotate("")
    assert "calibrated" == made(talk).token_source
    assert ("estimated", 100) == (made(Talk().user("a" * 400)).token_source, made(Talk().user("a" * 400)).token_count)


def test_messages_stand_as_they_are_told_to() -> None:
    """Those that are not named follow; what then comes before what it follows from is warned of."""
    talk = Talk().loop("a").reply(say("x")).end().user("b")
    asked, result, last = talk.hashes("user")[0], talk.hashes("tool_result")[0], talk.hashes("response")[1]
    compiled = made(talk, order=(talk.hashes("user")[1], asked))
    assert ["b", "a", "", "42", "x"] == [message.text for message in compiled.messages]
    assert () == compiled.warnings
    compiled = made(talk, order=(result, last, "nowhere", result))
    assert ["42", "x", "a", "", "b"] == [message.text for message in compiled.messages]
    first = talk.hashes("response")[0][:12]
    assert {
        "nowhere is not a message of this context",
        f"result {result[:12]} stands before its call in {first}",
        f"answer {last[:12]} stands before its question {asked[:12]}",
    } == set(compiled.warnings)
    talk = Talk().reply(say("x")).end()
    assert () == made(talk, order=talk.hashes("response")).warnings


def test_dicts_as_chat_completions_have_them() -> None:
    """Reasoning stands in a key of its own beside the answer it led to, or alone with an empty one."""
    talk = Talk().system().loop("a").reply(think("t"), say("x")).end().note("reasoning", think("aside"))
    assert [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "a"},
        {
            "role": "assistant",
            "content": "",
            "reasoning": "plan",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
        {"role": "assistant", "content": "x", "reasoning": "t"},
        {"role": "assistant", "content": "", "reasoning": "aside"},
    ] == made(talk, include_reasoning=True).to_dicts()
    assert {"role": "assistant", "content": "x"} == made(talk).to_dicts()[-1]
    assert [] == made(Talk()).to_dicts()


def test_text_for_people() -> None:
    """One message after the other, with its calls."""
    talk = Talk().loop("a").reply(say("x")).end()
    expected = "user: a\n\nreasoning: plan\n\nassistant:\n[look({})]\n\ntool: 42\n\nassistant: x"
    assert expected == made(talk, include_reasoning=True).to_text()


def test_a_request_body_in_any_dialect() -> None:
    """By its own writer, reasoning in a field, as blocks, or not at all."""
    talk = Talk().system().user("a").reply(think("plan"), say("y"), call("c1"), call("c2")).result("c1").result("c2")
    talk.reply(say("x")).end().user("b")
    compiled = made(talk, include_reasoning=True)
    for name in PACKAGES:
        body = str(compiled.to_request(dialect(name).writer, "m"))
        assert all(f"'{text}'" in body for text in ("Be brief.", "a", "y", "x", "b"))
        assert "plan" not in body
    chat = compiled.to_request(dialect("openai-chat").writer, "m", field="reasoning_content")
    assert "plan" == chat["messages"][2]["reasoning_content"]
    claude = compiled.to_request(dialect(ANTHROPIC).writer, "m")
    assert ["user", "assistant", "user", "assistant", "user"] == [each["role"] for each in claude["messages"]]
    assert [{"type": "text", "text": "Be brief."}] == claude["system"]
    assert 2 == len(claude["messages"][2]["content"])
    for name in (GEMINI, BEDROCK, MISTRAL, RESPONSES):
        assert "plan" in str(compiled.to_request(dialect(name).writer, "m", native=True))


def test_a_request_body_has_media_and_no_empty_answers() -> None:
    """Reasoning of a response that says nothing else stays away where it has no place."""
    image = Media("image/png", data="AAAA")
    talk = Talk().note("user", Message("a", (Text("a"), image))).turn("b", think("t"))
    body = made(talk, include_reasoning=True).to_request(dialect("openai-chat").writer)
    assert "data:image/png;base64,AAAA" in str(body["messages"][0])
    assert ["user", "user"] == [each["role"] for each in body["messages"]]


@given(talks(curation=True))
def test_nothing_opaque_leaves(talk: Talk) -> None:
    """Whatever the conversation holds, and whatever people said about it; every message names its commits."""
    compiled = compile_neutral(talk.commits, Options(include_reasoning=True))
    assert [] == OPAQUE.findall(repr(compiled.messages).encode())
    assert [] == OPAQUE.findall(str(compiled.to_dicts()).encode())
    hashes = {commit.hash for commit in talk.commits}
    assert set(compiled.commit_hashes) <= hashes
    assert compiled.token_count >= 0
    assert compiled.to_text() == compile_neutral(talk.commits, Options(include_reasoning=True)).to_text()


@given(talks(curation=True))
def test_calls_and_results_stay_together(talk: Talk) -> None:
    """In every strategy each result follows its call."""
    for strategy in ("full", "last", "adaptive"):
        compiled = compile_neutral(talk.commits, Options(strategy=strategy, turns=2, tokens=0))
        waiting: list[str] = []
        for message in compiled.messages:
            if message.role == "tool":
                assert message.blocks[0].id == waiting.pop(0)  # type: ignore[union-attr]
            else:
                assert [] == waiting
                waiting = [block.id for block in message.blocks if isinstance(block, ToolCall)]
        assert [] == waiting
