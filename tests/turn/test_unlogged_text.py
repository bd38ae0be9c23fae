"""Reasoning that is not to be kept: whole in memory while its turn lasts, only its place in the log."""

from __future__ import annotations

from tests.turn.playbook import (
    ANSWER,
    CALLS,
    Playbook,
    answers,
    begins,
    chunk,
    ends,
    gives,
    keeps,
    runs,
    said,
    sends,
    stored_after,
    stores,
    word,
)
from thinkback.model.blocks import Origin, Text, ThinkingBlock, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Tool
from thinkback.turn import unlogged_text

LOOK = frozenset({"look"})
SECRET = "nobody may read this"


def stored_bytes(play: Playbook) -> bytes:
    """What a store would write."""
    return b"".join(commit.payload for commit in play.history.commits)


def test_open_turn_sends_what_the_log_does_not_have() -> None:
    """The tool loop gets its reasoning; the log never does; the next turn gets the placeholder."""
    play = Playbook(runnable=LOOK, keep_text=False) >> begins << keeps("user") << sends
    play >> answers(said("", SECRET, "look-1")) << keeps(CALLS) << runs("look") >> gives("look-1") << keeps("result")
    play << sends
    assert [SECRET] == play.reasoning()
    play >> answers(said("42", SECRET)) << keeps(ANSWER) << ends("completed")
    assert SECRET.encode() not in stored_bytes(play)
    following = Playbook("And?", history=play.history, keep_text=False) >> begins << keeps("user") << sends
    assert [" ", " "] == following.reasoning()


def test_reply_still_has_it() -> None:
    """The caller sees what the model thought; it is only not kept."""
    play = Playbook(keep_text=False) >> begins << keeps("user") << sends >> answers(said("42", SECRET))
    play << keeps(ANSWER) << ends("completed")
    assert play.outcome is not None
    assert SECRET == play.outcome.responses[0][0].blocks[0].thought  # type: ignore[union-attr]


def test_calls_that_wait_do_not_end_the_turn() -> None:
    """While the caller works out results the reasoning stays in memory, for the same turn goes on."""
    play = Playbook(tools=(Tool("look"),), keep_text=False) >> begins << keeps("tools user") << sends
    play >> answers(said("", SECRET, "look-1")) << keeps(CALLS) << ends(None)
    history = play.history
    response = history.commits[-1].response
    result = Draft("tool_result", ToolResult("look-1", "rain", "look"), response)
    again = Playbook(None, history=history, keep_text=False) >> begins << sends
    assert [SECRET] == again.reasoning()
    again >> answers(said("42", SECRET)) << stores(ANSWER) >> stored_after(result) << ends("completed")
    assert [" ", " "] == (Playbook("And?", history=history) >> begins << keeps("user") << sends).reasoning()


def test_new_question_ends_what_was_held() -> None:
    """A turn that is left behind takes its reasoning along."""
    play = Playbook(tools=(Tool("look"),), keep_text=False) >> begins << keeps("tools user") << sends
    play >> answers(said("", SECRET, "look-1")) << keeps(CALLS) << ends(None)
    other = Playbook("Else?", history=play.history) >> begins << keeps("result:interrupted interrupted user") << sends
    assert [" "] == other.reasoning()


def test_history_before_is_folded_only_once() -> None:
    """Earlier turns are as they were when the held ones are gone."""
    play = Playbook() >> begins << keeps("user") << sends >> answers(said("42", "Kept.")) << keeps(ANSWER)
    play << ends("completed")
    again = Playbook("And?", history=play.history, keep_text=False) >> begins << keeps("user") << sends
    again >> answers(said("43", SECRET)) << keeps(ANSWER) << ends("completed")
    last = Playbook("And?", history=play.history) >> begins << keeps("user") << sends
    assert ["Kept.", " "] == last.reasoning()


def test_plan_says_that_it_cannot_be_built_again() -> None:
    """The record of a request that carried held reasoning is marked."""
    play = Playbook(runnable=LOOK, keep_text=False) >> begins << keeps("user") << sends
    assert "held" not in play.plans[-1].record().target
    play >> answers(said("", SECRET, "look-1")) << keeps(CALLS) << runs("look") >> gives("look-1") << keeps("result")
    play << sends
    assert "true" == play.plans[-1].record().target["held"]


def test_other_fields_that_may_repeat_it_are_left_out() -> None:
    """Reasoning also comes as items and fields that nobody knows, and as details with their verbatim entry."""
    details = [{"type": "reasoning.text", "text": SECRET, "signature": "opaque", "index": 0}]
    unknown = [{"type": "thinking", "thoughts": SECRET}]
    for delta in (
        {"reasoning_details": details},
        {"content": [{"type": "thinking", "thinking": SECRET}]},
        {"content": unknown},
        {"provider_specific_fields": {"thoughts": SECRET}, "content": "."},
        {"content": f"<think>{SECRET}</think>"},
    ):
        play = Playbook(keep_text=False) >> begins << keeps("user") << sends
        play >> answers(chunk(**delta), word("42"), chunk("stop"))
        kinds = "request response reasoning assistant completed"
        if "provider_specific_fields" in delta:
            kinds = "request response assistant completed"
        elif delta.get("content") == unknown:
            kinds = "request response other assistant completed"
        play << keeps(kinds) << ends("completed")
        assert SECRET.encode() not in stored_bytes(play)
        assert b"opaque" not in stored_bytes(play)
        following = Playbook("And?", history=play.history) >> begins << keeps("user") << sends
        assert SECRET.encode() not in bytes(following.plans[-1])
        assert "42" in str(following.texts[1])


def test_places_are_empty() -> None:
    """A place keeps the field it came in, save where the field alone would be no block."""
    assert ThinkingBlock("", source_field="reasoning", kind="none") == unlogged_text.bare(
        ThinkingBlock(SECRET, source_field="reasoning", signature="s")
    )
    assert ThinkingBlock("", kind="none") == unlogged_text.bare(
        ThinkingBlock(SECRET, source_field="reasoning_details", wire="{}")
    )
    assert Unknown('{"type":"text","text":""}') == unlogged_text.bare(Unknown('{"type":"thinking"}'))
    assert not unlogged_text.is_held(Text("42"))


def test_empty_list_of_details_is_kept() -> None:
    """It says nothing and must go back where a rule wants it."""
    origin = Origin("openai-chat", "", "")
    empty = Response(origin, message='{"reasoning_details":[]}')
    assert empty == unlogged_text.bare_header(empty)
    assert "" == unlogged_text.bare_header(Response(origin, message='{"thoughts":"x"}')).message


def test_release_without_anything_held_changes_nothing() -> None:
    """Also in the middle of a turn."""
    play = Playbook(log=[Draft("user", Message("Before?"))])
    before = list(play.history.commits)
    play.history.release()
    assert before == play.history.commits
