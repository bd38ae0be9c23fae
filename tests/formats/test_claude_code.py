"""Claude Code's histories: lines to responses, a tree to branches, sub-agents to sessions."""

from __future__ import annotations

from typing import Any

from tests.formats.samples import CLAUDE, claude, drafts, gave, jsonl, kinds, minted, only, paths, read, used
from thinkback.formats.history import Left
from thinkback.formats.registry import program
from thinkback.model.blocks import ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Compaction, Response, Usage


def test_lines_of_one_message_are_one_response() -> None:
    """Its blocks stand together, its usage counts once, and a thought without text keeps its signature."""
    history = only("claude-code", jsonl(*CLAUDE))
    expected = ["user", "response", "reasoning", "tool_call", "tool_call", "provider_usage", "tool_result"]
    assert [*expected, "tool_result", "response", "assistant", "provider_usage", "turn_ended"] == kinds(history)
    (header, _), ((thought,), calls) = drafts(history, "response"), (drafts(history, "reasoning"), drafts(history))
    assert isinstance(header.value, Response)
    assert isinstance(thought.value, ThinkingBlock)
    assert ("m1", "tool_use", 3, "") == (
        header.value.id,
        header.value.finish,
        header.value.blocks,
        header.value.origin.endpoint,
    )
    assert ("", "none", "c2lnbmF0dXJl") == (thought.value.thought, thought.value.kind, thought.value.signature)
    assert ["t1", "t2"] == [draft.value.id for draft in calls if isinstance(draft.value, ToolCall)]
    assert ["of t1", "of t2"] == [draft.value.content for draft in calls if isinstance(draft.value, ToolResult)]
    assert [9, 9] == [d.value.input for d in drafts(history, "provider_usage") if isinstance(d.value, Usage)]
    assert ("Find the file", "/home/person/dev/proj") == (history.title, history.directory)
    assert 1795315205000000 == history.created


def test_results_side_by_side_are_one_line_and_a_rewind_is_another() -> None:
    """What was asked again from an earlier place begins a branch there; the last line is where the session stands."""
    again = claude("u2", "u1", "user", [{"type": "text", "text": "Or which folder?"}])
    history = only("claude-code", jsonl(*CLAUDE, again))
    assert [["u1", "a1", "r1", "r2", "a4"], ["u1", "u2"]] == paths(history)
    assert "u2" == history.tip


def test_a_compaction_goes_on_with_what_it_stands_for() -> None:
    """The summary follows the line that it is of, though the tree of the source begins anew there."""
    boundary = claude("b1", None, "system", "", subtype="compact_boundary", logicalParentUuid="a4")
    summary = claude("s1", "b1", "user", "So far: notes.txt", isCompactSummary=True)
    history = only("claude-code", jsonl(*CLAUDE, boundary, summary))
    assert ["u1", "a1", "r1", "r2", "a4", "s1"] == paths(history)[0]
    (made,) = drafts(history, "compaction")
    assert Compaction("model", "So far: notes.txt", reason="claude-code") == made.value


def test_sub_agents_are_sessions_of_their_own() -> None:
    """By their name, or where they have none by the line that they began with."""
    own = {"isSidechain": True}
    named = claude("k1", None, "user", "Look it up", **own, agentId="k")
    older = (claude("o1", None, "user", "Count them", **own), claude("o2", "o1", "assistant", "Two.", **own))
    _, first, second = read("claude-code", jsonl(*CLAUDE, named, *older)).sessions
    assert [("s1/k", "s1", "Look it up"), ("s1/o1", "s1", "Count them")] == [
        (each.id, each.parent, each.purpose) for each in (first, second)
    ]
    assert ["user", "response", "assistant", "turn_ended"] == kinds(second)


def test_what_a_program_says_is_no_answer_and_no_question() -> None:
    """Errors that it wrote do not go back; notes and parts of unknown kinds stand beside the conversation."""
    failed = claude("e1", "u1", "assistant", "API Error", message={"model": "<synthetic>"}, isApiErrorMessage=True)
    note = claude("n1", "e1", "user", "<local-command-caveat>", isMeta=True)
    odd = claude("p1", "n1", "user", ["a word", {"type": "search_result", "of": 1}], type="user")
    history = only("claude-code", jsonl(CLAUDE[1], failed, note, odd))
    header = drafts(history, "response")[0].value
    assert isinstance(header, Response)
    assert header.error is not None
    assert (False, "API Error", "") == (header.complete, header.error.message, header.origin.served_model)
    assert ["claude-code context", "claude-code part"] == [
        getattr(draft.value, "content_type", "") for draft in drafts(history, "content")
    ]
    assert 2 == kinds(history).count("user")


def test_what_is_left_out_is_named_and_counted() -> None:
    """Damaged and repeated lines, kinds that are not known; a missing parent is the line before."""
    data = jsonl(CLAUDE[1], CLAUDE[1], {"type": "brand-new"}, {"odd": 1}, claude("z", "lost", "user", "More", cwd=1))
    found = read("claude-code", data + b'{"type": "us\n\n[1]\n')
    assert (
        Left("a line that is there twice", 1, 2),
        Left("brand-new", 1, 3),
        Left("a line without a type", 1, 4),
        Left("a damaged line", 2, 6),
    ) == found.left
    assert [["u1", "z"]] == paths(found.sessions[0])


def test_a_result_that_is_also_a_message_is_both() -> None:
    """The result answers its call, the words are the user's."""
    both = claude("r9", "a1", "user", [gave("t1"), {"type": "text", "text": "Stop."}])
    history = only("claude-code", jsonl(CLAUDE[1], claude("a1", "u1", "assistant", [used("t1")], **minted("m")), both))
    assert ["tool_result", "user"] == kinds(history)[-2:]


def test_what_it_writes_to_its_standard_output_is_a_history_too() -> None:
    """Other names of sessions and sub-agents; lines that do not say what they follow, follow one another."""
    lines: list[dict[str, Any]] = [{"type": "system", "subtype": "init", "uuid": "i", "session_id": "s1", "cwd": "/x"}]
    for each in CLAUDE:
        if "uuid" in each:
            names = {"parent_tool_use_id": None, "session_id": "s1", "uuid": each["uuid"]}
            lines.append({**names, **{name: each[name] for name in ("type", "message")}})
    lines.append({**lines[1], "uuid": "k", "parent_tool_use_id": "t1"})
    history, child = read("claude-code", jsonl(*lines)).sessions
    assert kinds(only("claude-code", jsonl(*CLAUDE))) == kinds(history)
    assert (1, "s1", "s1/t1") == (len(paths(history)), history.id, child.id)
    assert program("claude-code").is_own(jsonl(*lines))


def test_a_line_may_follow_one_of_any_kind() -> None:
    """What a program notes in between has a place in the tree."""
    noted = {**CLAUDE[1], "type": "progress", "uuid": "p", "parentUuid": "u1"}
    lines = (*CLAUDE[:2], noted, {**CLAUDE[8], "uuid": "b", "parentUuid": "p"})
    again = claude("u2", "p", "user", "Or which?")
    assert [["u1", "b"], ["u1", "u2"]] == paths(only("claude-code", jsonl(*lines, again)))
