"""Claude Code's histories: lines to responses, a tree to branches, sub-agents to sessions."""

from __future__ import annotations

from typing import Any

from tests.formats.samples import CLAUDE, claude, drafts, gave, jsonl, kinds, minted, only, paths, read, used
from thinkback.formats.history import Left, aside
from thinkback.formats.registry import program
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Compaction, Content, Message, Response, Usage


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


def attached(id: str, parent: str, **attachment: Any) -> dict[str, Any]:
    """A line with what the program put beside the messages."""
    line = claude(id, parent, "attachment", "", attachment=attachment)
    return {name: value for name, value in line.items() if name != "message"}


def test_words_typed_while_a_tool_ran_are_the_persons() -> None:
    """The model read them behind the results; messages that the program queued stand beside the conversation."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    lines = (
        attached("q1", "r2", type="queued_command", prompt="Only the newest.", commandMode="prompt"),
        attached("q2", "q1", type="queued_command", prompt=[{"type": "text", "text": "Like this"}, picture]),
        attached("q3", "q2", type="queued_command", prompt="Task done", commandMode="task-notification"),
        attached("q4", "q3", type="queued_command", prompt="", commandMode="prompt"),
        attached("q5", "q4", type="queued_command", prompt=[], isMeta=True),
    )
    history = only("claude-code", jsonl(*CLAUDE[:8], *lines, {**CLAUDE[8], "parentUuid": "q5"}))
    assert ["u1", "a1", "r1", "r2", "q1", "q2", "q3", "a4"] == paths(history)[0]
    said = [draft.value for draft in drafts(history, "user")]
    picture_there = (Text("Like this"), Media("image/png", "aGk="))
    assert [Message("Which file?"), Message("Only the newest."), Message("Like this", picture_there)] == said
    (note,) = drafts(history, "content")
    assert aside("claude-code context", "Task done") == note


def test_what_a_person_named_is_what_the_model_read_of_it() -> None:
    """Files, selections, folders and resources with their words; a picture is one, and no request leaves them out."""
    text = {"type": "text", "file": {"filePath": "/x/a.txt", "content": "alpha", "numLines": 1}}
    picture = {"type": "image", "file": {"base64": "aGk=", "type": "image/png"}}
    lines = (
        attached("f1", "u1", type="file", filename="/x/a.txt", content=text),
        attached("f2", "f1", type="file", filename="/x/b.png", content=picture),
        attached("f3", "f2", type="directory", path="/x", content="a.txt\nb.png"),
        attached(
            *("f4", "f3"), type="selected_lines_in_ide", filename="/x/a.txt", lineStart=2, lineEnd=3, content="beta"
        ),
        attached("f5", "f4", type="mcp_resource", uri="r://1", content={"contents": [{"text": "gamma"}]}),
        attached("f6", "f5", type="file"),
    )
    history = only("claude-code", jsonl(CLAUDE[1], *lines))
    assert [
        Content("claude-code file", "/x/a.txt\nalpha"),
        Content("claude-code directory", "/x\na.txt\nb.png"),
        Content("claude-code selection", "/x/a.txt, lines 2 to 3\nbeta"),
        Content("claude-code resource", "r://1\ngamma"),
    ] == [draft.value for draft in drafts(history, "content")]
    assert Message("", (Media("image/png", "aGk=", name="/x/b.png"),)) == drafts(history, "user")[1].value


def test_what_the_program_told_the_model_stands_beside_the_conversation() -> None:
    """Found by search and in no request; what the model never read is counted among what is left out."""
    hook = {"blockingError": {"blockingError": "not now"}}
    lines = (
        attached("n1", "u1", type="nested_memory", path="/x/C.md", content={"path": "/x/C.md", "content": "Be brief."}),
        attached("n2", "n1", type="edited_text_file", filename="/x/a.txt", snippet="1 alpha"),
        attached("n3", "n2", type="opened_file_in_ide", filename="/x/a.txt"),
        attached("n4", "n3", type="hook_blocking_error", hookName="Stop", blockingError=hook["blockingError"]),
        attached("n5", "n4", type="hook_success", content="fine"),
        attached("n6", "n5", type="skill_listing", content="- one"),
    )
    (history,), left = (found := read("claude-code", jsonl(CLAUDE[1], *lines))).sessions, found.left
    words = ["Be brief.", "/x/a.txt\n1 alpha", "/x/a.txt", "not now", "- one"]
    assert [aside("claude-code context", each) for each in words] == drafts(history, "content")
    assert (Left("attachment", 1, 6),) == left


def test_histories_of_programs_that_name_their_sessions_alike_are_not_its_own() -> None:
    """Qwen Code has messages as Gemini does."""
    line = {"uuid": "1", "sessionId": "s", "type": "user", "message": {"role": "user", "parts": [{"text": "Hi"}]}}
    assert not program("claude-code").is_own(jsonl(line))
    assert not program("claude-code").is_own(jsonl({"sessionId": "s", "type": "system", "systemPayload": {}}))
