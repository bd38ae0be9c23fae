"""Gemini CLI's chats: messages that grow, results that stand there twice."""

from __future__ import annotations

import json

from tests.formats.samples import GEMINI, GEMINI_CALL, GEMINI_GAVE, GEMINI_MADE, drafts, jsonl, kinds, only, paths, read
from thinkback.formats.history import Left, Source
from thinkback.formats.registry import program
from thinkback.model.blocks import ThinkingBlock, ToolResult
from thinkback.model.commits import Usage


def test_messages_grow_and_results_count_once() -> None:
    """The last state of a message is the message, the pieces of a thought are one; a result is the call's alone."""
    history = only("gemini-cli", jsonl(*GEMINI))
    expected = ["content", "user", "response", "reasoning", "tool_call", "provider_usage", "tool_result"]
    assert [*expected, "response", "assistant", "turn_ended"] == kinds(history)
    assert [["c1", "u1", "m1", "m1 results", "m2"]] == paths(history)
    (thought,) = (draft.value for draft in drafts(history, "reasoning"))
    assert isinstance(thought, ThinkingBlock)
    assert ("**Files**\nI list them.", "summary") == (thought.thought, thought.kind)
    (result,) = drafts(history, "tool_result")
    assert ToolResult("g1", "notes.txt", "ls") == result.value
    (used,) = drafts(history, "provider_usage")
    assert isinstance(used.value, Usage)
    assert (9, 3, ("reasoning_beside_output",)) == (used.value.input, used.value.reasoning, used.value.counted)


def test_older_files_are_one_object() -> None:
    """With the project's folder as its name, unless that is a hash; a result of its own is the user's."""
    whole = {**GEMINI[0], "summary": "Find it", "messages": [GEMINI[2], GEMINI_MADE, {**GEMINI[6], "id": "r"}]}
    data = json.dumps(whole, indent=1).encode()
    source = Source("tmp/proj/chats/session-1.json", data.splitlines(keepends=True))
    (history,) = program("gemini-cli").read(source).sessions
    assert ("proj", "Find it") == (history.directory, history.title)
    assert "tool_result" == kinds(history)[-1]
    hashed = Source(f"tmp/{'d' * 64}/chats/session-1.json", [data])
    assert "" == program("gemini-cli").read(hashed).sessions[0].directory
    assert program("gemini-cli").is_own(data)


def test_rewinding_begins_a_branch() -> None:
    """Before the message that is named."""
    again = ({"$rewindTo": "m1"}, {"id": "u9", "type": "user", "content": "Which folder?"})
    assert [["c1", "u1", "m1", "m1 results", "m2"], ["c1", "u1", "u9"]] == paths(
        only("gemini-cli", jsonl(*GEMINI, *again))
    )


def test_results_in_every_shape() -> None:
    """Failed ones without a result, ones of several parts, texts; what else the program says stands beside."""
    calls = [
        {"id": "1", "status": "error", "resultDisplay": "no such file"},
        {"id": "2", "result": [GEMINI_GAVE, GEMINI_GAVE]},
        {"id": "g1", "result": [{"functionResponse": {"id": "g2", "response": {"output": "b"}}}, GEMINI_GAVE]},
        {"id": "3", "result": "plain"},
        {"id": "4", "result": [{"functionResponse": {"response": {"error": "no"}}}]},
    ]
    odd = ({"id": "i", "type": "info", "content": "Updated"}, {"id": "n", "content": 1}, {"content": 1}, {"type": 1})
    found = read("gemini-cli", jsonl(GEMINI[0], {**GEMINI_MADE, "toolCalls": calls}, *odd))
    (history,) = found.sessions
    results = [draft.value for draft in drafts(history, "tool_result")]
    assert [("no such file", True), ("notes.txt", False), ("plain", False), ('{"error":"no"}', False)] == [
        (each.content, each.is_error) for each in results if isinstance(each, ToolResult) and each.id != "2"
    ]
    assert "content" == kinds(history)[-1]
    assert (
        Left("a line of an unknown kind", 2, 4),
        Left("a message without an id", 1, 6),
        Left("message of type info", 1, 3),
    ) == found.left
    assert () == read("gemini-cli", jsonl(GEMINI[0])).sessions


def test_a_chat_that_is_opened_again_loses_nothing() -> None:
    """What the program then writes of earlier messages is less than they have; where it is all, it is read."""
    told = [{"text": "I list", "thought": True}, {"text": "them.", "thought": True}, {"functionCall": GEMINI_CALL}]
    again = [
        GEMINI[2],
        {"id": "m1", "type": "gemini", "content": told},
        {"id": "m1", "type": "user", "content": [GEMINI_GAVE]},
    ]
    opened = ({"$set": {"messages": again}}, {"id": "u2", "type": "user", "content": [{"text": "And then?"}]})
    once, twice = only("gemini-cli", jsonl(*GEMINI)), only("gemini-cli", jsonl(*GEMINI, *opened))
    assert [*kinds(once), "user"] == kinds(twice)
    assert 1 == len(paths(twice))
    alone = only("gemini-cli", jsonl(GEMINI[0], *opened))
    assert ["user", "response", "reasoning", "tool_call", "tool_result", "user"] == kinds(alone)
    (thought,) = drafts(alone, "reasoning")
    assert isinstance(thought.value, ThinkingBlock)
    assert "I list them." == thought.value.thought
