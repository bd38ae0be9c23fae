"""Histories that are documents: trajectories and data exports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.samples import ATIF, CHATGPT, CLAUDE_AI, NODES, drafts, jsonl, kinds, node, only, paths, read, told
from thinkback.formats.history import Left
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Message, Response, Usage


def test_a_trajectory_is_a_session_and_so_is_each_sub_agents() -> None:
    """A step of the agent is a response; what it saw without calling stands beside it."""
    history, child = read("atif", json.dumps(ATIF, indent=1).encode()).sessions
    expected = ["user", "response", "reasoning", "assistant", "tool_call", "provider_usage", "tool_result", "content"]
    assert [*expected, "response", "assistant", "turn_ended", "content"] == kinds(history)
    assert ("as/at", 250_000, 1795313517000000) == (history.id, history.cost, history.created)
    assert ("sub", "as/at", ["user"]) == (child.id, child.parent, kinds(child))
    models = [
        draft.value.origin.served_model for draft in drafts(history, "response") if isinstance(draft.value, Response)
    ]
    assert ["gpt-5.6", "other"] == models
    (used,) = drafts(history, "provider_usage")
    assert isinstance(used.value, Usage)
    assert (9, 7, 4) == (used.value.input, used.value.output, used.value.cached)


def test_odd_trajectories() -> None:
    """Steps of nobody are counted, a trajectory without a name gets one, and one inside itself ends."""
    deep: dict[str, Any] = {"steps": [{"source": "user", "message": "Hi"}]}
    for _ in range(30):
        deep = {"steps": [{"source": "user", "message": "Hi"}], "subagent_trajectories": [deep]}
    found = read("atif", jsonl({**deep, "steps": [*deep["steps"], {"source": ""}, {"source": "robot"}]}))
    assert (21, (Left("step of nobody", 1), Left("step of robot", 1))) == (len(found.sessions), found.left)


def test_a_sub_agent_of_its_parents_name_is_another_session() -> None:
    """Else the one would be read in the place of the other."""
    inner = {"session_id": "as", "steps": [{"source": "user", "message": "Ho"}]}
    outer = {"session_id": "as", "steps": [{"source": "user", "message": "Hi"}], "subagent_trajectories": [inner]}
    first, second = read("atif", jsonl(outer)).sessions
    assert ("as", "as", True) == (first.id, second.parent, second.id != "as")


def test_messages_of_the_assistant_in_a_row_are_one_response() -> None:
    """Thoughts, a call with its result, the answer; what a person cannot see stands beside the conversation."""
    history = only("chatgpt", jsonl([CHATGPT]))
    expected = ["content", "user", "content", "response", "reasoning", "reasoning", "tool_call", "tool_result"]
    assert [*expected, "response", "assistant", "turn_ended"] == kinds(history)
    assert ("cg1", "Find it", "a") == (history.id, history.title, history.tip)
    thought, call, result = (drafts(history, kind)[0].value for kind in ("reasoning", "tool_call", "tool_result"))
    assert isinstance(thought, ThinkingBlock)
    assert "**Files**\nI list them." == thought.thought
    assert (ToolCall("k", "python", "ls()"), ToolResult("k", "notes.txt")) == (call, result)


def export(*nodes: dict[str, Any], **more: Any) -> bytes:
    """The sample with more nodes."""
    return jsonl([{**CHATGPT, "mapping": {each["id"]: each for each in (*NODES, *nodes)}, **more}])


def test_a_tree_and_its_oddities() -> None:
    """An answer made again is a branch; notes, unknown contents and circles are counted, and the rest is read."""
    again = export(node("b", "o", "assistant", parts=["readme"]), current_node="b")
    assert [["s", "q", "t", "o", "a"], ["s", "q", "t", "o", "b"]] == paths(only("chatgpt", again))
    odd = (
        node("r", "a", "assistant", "reasoning_recap", content="Thought for 5 s"),
        node("n", "r", "assistant", "novel", parts=["New"]),
        node("w", "n", "assistant", ""),
        node("h", "w", "user", parts=["Hidden"], metadata={"is_visually_hidden_from_conversation": True}),
        node("e", "h", "user", parts=[]),
        node("z", "e", "tool", result="alone"),
        node("y", "z", "critic", text="Hm"),
        node("x", "y", "assistant", "reasoning_recap"),
        node("c1", "c2", "user", parts=["a"]),
        node("c2", "c1", "user", parts=["b"]),
        node("", "q", "user", parts=["c"]),
    )
    found = read("chatgpt", export(*odd))
    assert ["content", "content", "content"] == kinds(found.sessions[0])[-3:]
    assert [
        *(("a message without an id", 1), ("part image_asset_pointer", 1)),
        *(("content reasoning_recap", 2), ("content novel", 1), ("content without a type", 1)),
        *(("message of critic", 1), ("a message in a circle", 2)),
    ] == [(left.what, left.count) for left in found.left]


def test_what_stands_beside_an_export_is_said() -> None:
    """Pictures, sounds, attachments; a message that is code is read."""
    picture, sound = ({"content_type": f"{kind}_asset_pointer"} for kind in ("image", "audio"))
    more = (
        node("u", "a", "user", "code", text="ls()", metadata={"attachments": [{"name": "a.pdf"}, {}]}),
        node("b", "u", "assistant", "multimodal_text", parts=[sound, {"text": "Said."}, picture]),
    )
    found = read("chatgpt", export(*more))
    assert [("part image_asset_pointer", 2), ("an attachment", 2), ("part audio_asset_pointer", 1)] == [
        (left.what, left.count) for left in found.left
    ]
    (history,) = found.sessions
    assert ["user", "response", "assistant", "turn_ended"] == kinds(history)[-4:]
    assert (Message("ls()"), Text("Said.")) == (
        drafts(history, "user")[-1].value,
        drafts(history, "assistant")[-1].value,
    )


@pytest.mark.parametrize(
    ("name", "id", "sample"), [("chatgpt", "conversation_id", CHATGPT), ("claude-ai", "uuid", CLAUDE_AI)]
)
def test_a_conversation_without_an_id_is_said(name: str, id: str, sample: dict[str, Any]) -> None:
    """It could not be found again; an empty one says nothing."""
    odd = {**sample, id: ""}
    found = read(name, jsonl([odd, {**odd, "mapping": {}, "chat_messages": []}, sample]))
    assert (1, Left("a conversation without an id", 1)) == (len(found.sessions), found.left[-1])


def test_results_between_the_blocks_end_a_response() -> None:
    """A call without an id gets one, and its result the same; files stand beside the message that they came with."""
    history = only("claude-ai", jsonl([CLAUDE_AI]))
    expected = ["user", "content", "response", "reasoning", "tool_call", "tool_result", "response", "assistant"]
    assert [*expected, "turn_ended"] == kinds(history)
    (call,), (result,) = drafts(history, "tool_call"), drafts(history, "tool_result")
    assert isinstance(call.value, ToolCall)
    assert ToolResult(call.value.id, "notes.txt", "ls") == result.value
    assert ("ca1", "Find it", "a.1") == (history.id, history.title, history.tip)


def test_odd_conversations() -> None:
    """Parents make a tree; older messages have a text alone; what is not known is kept or counted."""
    messages = [
        *CLAUDE_AI["chat_messages"],
        {"uuid": "q2", "sender": "human", "text": "Or which?", "parent_message_uuid": "q"},
        told("a2", "assistant", {"type": "tool_result", "content": "late"}, {"type": "odd"}, parent_message_uuid="q2"),
        told("q3", "robot", files=[{"file_name": "b"}]),
        {"uuid": "q3"},
    ]
    found = read("claude-ai", jsonl([{**CLAUDE_AI, "chat_messages": messages}]))
    (history,) = found.sessions
    assert [["q", "a.0", "a.0 results", "a.1"], ["q", "q2", "a2.0 results", "a2.1", "q3"]] == paths(history)
    assert (Left("message of robot", 1), Left("a message without an id of its own", 1)) == found.left


def test_an_export_that_breaks_off_is_read_as_far_as_it_is_whole() -> None:
    """The last conversation is lost, and that is told; what is no object is counted."""
    data = json.dumps([CLAUDE_AI, 7, {**CLAUDE_AI, "uuid": "ca2"}, {**CLAUDE_AI, "uuid": "ca3"}]).encode()
    found = read("claude-ai", data[:-20])
    assert ["ca1", "ca2"] == [each.id for each in found.sessions]
    assert (Left("an item that is no object", 1), Left("a damaged document", 1)) == found.left
    assert ((), (Left("a damaged document", 1),)) == (read("atif", b"{").sessions, read("atif", b"{").left)
