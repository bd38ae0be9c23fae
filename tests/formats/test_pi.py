"""pi's sessions: a tree, and blocks put back into those of their dialect."""

from __future__ import annotations

from typing import Any

import pytest

from tests.formats.samples import ITEM, PI, drafts, jsonl, kinds, only, paths, pi, read
from thinkback.formats.history import Left, Source
from thinkback.formats.registry import program
from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import BranchSummary, Compaction, Response, Usage


def test_a_session_with_its_tree() -> None:
    """Settings between the messages are no entries; a second answer to a question is a branch."""
    history = only("pi", jsonl(*PI, pi("a3", "t1", "assistant", [], api="odd")))
    assert [["u1", "a1", "t1", "a2"], ["u1", "a1", "t1", "a3"]] == paths(history)
    assert ("p1", "Find the file", "/home/person/dev/proj", "a3", 500_000) == (
        history.id,
        history.title,
        history.directory,
        history.tip,
        history.cost,
    )
    (used, _) = (draft.value for draft in drafts(history, "provider_usage"))
    assert isinstance(used, Usage)
    assert (9, 7, 4, ("cache_beside_input",)) == (used.input, used.output, used.cached, used.counted)
    assert (Left("model_change", 1, 2),) == read("pi", jsonl(*PI)).left
    (found,) = drafts(history, "tool_result")
    assert ToolResult("call_1", "notes.txt", "bash") == found.value


@pytest.mark.parametrize(
    ("api", "part", "expected"),
    [
        (
            "openai-responses",
            {"type": "text", "text": "a", "textSignature": '{"id":"m","phase":"final"}'},
            ("m", "final"),
        ),
        ("openai-responses", {"type": "text", "text": "a"}, ()),
        ("openai-responses", {"type": "thinking", "thinking": "a", "thinkingSignature": "odd"}, ("odd",)),
        ("anthropic-messages", {"type": "thinking", "thinking": "a", "thinkingSignature": "s"}, ("s",)),
        ("anthropic-messages", {"type": "thinking", "redacted": True, "thinkingSignature": "d"}, ("d",)),
        ("openai-completions", {"type": "thinking", "thinking": "a", "thinkingSignature": "reasoning_content"}, ()),
        ("google-generative-ai", {"type": "toolCall", "id": "1", "name": "ls", "thoughtSignature": "t"}, ("t",)),
        ("", {"type": "image", "data": "x"}, ()),
    ],
)
def test_blocks_of_each_api(api: str, part: dict[str, Any], expected: tuple[str, ...]) -> None:
    """What is opaque is kept, and what names a field is none of it."""
    (found,) = (
        draft.value
        for draft in drafts(only("pi", jsonl(PI[0], pi("a", None, "assistant", [part], api=api))))
        if draft.index == 0
    )
    assert isinstance(found, Text | ThinkingBlock | ToolCall | Unknown)
    assert expected == opaque(found)


def opaque(block: Block) -> tuple[str, ...]:
    """The opaque values of a block."""
    signature = (block.signature,) if isinstance(block, ThinkingBlock) and block.signature else ()
    return (*signature, *(carrier.value for carrier in block.carriers))


def test_items_come_back_whole() -> None:
    """A sealed thought is the item it was; a call has the id that its result names."""
    history = only("pi", jsonl(*PI))
    thought, call = drafts(history, "reasoning")[0].value, drafts(history, "tool_call")[0].value
    assert isinstance(thought, ThinkingBlock)
    assert isinstance(call, ToolCall)
    assert (Carrier("item_id", "rs_1"), Carrier("encrypted", "gAAAA")) == thought.carriers
    assert ("call_1", '{"command":"ls"}', "openai-responses", ITEM["id"]) == (
        call.id,
        call.arguments,
        _header(history).origin.dialect,
        "rs_1",
    )


def _header(history: Any) -> Response:
    value = drafts(history, "response")[0].value
    assert isinstance(value, Response)
    return value


def test_what_else_there_is() -> None:
    """Checkpoints, summaries of branches, a person's commands, messages of extensions, failures; lines without ids."""
    rest = (
        {"type": "compaction", "id": "c", "parentId": "a2", "summary": "So far."},
        {"type": "branch_summary", "id": "b", "parentId": "c", "summary": "The other way."},
        {"type": "custom_message", "id": "m", "parentId": "b", "content": "Note"},
        pi("s", "m", "bashExecution", None, command="ls", output="notes.txt"),
        pi("x", "s", "hook", "Hooked"),
        pi("x", "s", "hook", "Again"),
        pi("e", "x", "assistant", [], stopReason="error", errorMessage="429"),
        {"type": "message", "message": {"role": "user", "content": "Older"}},
        {"type": ""},
    )
    found = read("pi", jsonl(*PI, *rest))
    (history,) = found.sessions
    assert ["compaction", "branch_summary", "content", "content", "content", "response"] == kinds(history)[-8:-2]
    assert Compaction("model", "So far.", reason="pi") == drafts(history, "compaction")[0].value
    assert BranchSummary("The other way.") == drafts(history, "branch_summary")[0].value
    assert ["a line that is there twice", "a line without a type"] == [left.what for left in found.left[2:]]
    failed = drafts(history, "response")[-1].value
    assert isinstance(failed, Response)
    assert failed.error is not None
    assert "429" == failed.error.message
    assert "15" == history.tip or "user" == kinds(history)[-1]
    assert () == read("pi", jsonl(*PI[1:])).sessions


def test_a_checkpoint_ends_before_what_the_program_kept() -> None:
    """The first entry that goes on to be sent is named."""
    checkpoint = {"type": "compaction", "id": "k", "parentId": "a2", "summary": "So far.", "firstKeptEntryId": "a1"}
    history = only("pi", jsonl(*PI, checkpoint))
    (made,) = drafts(history, "compaction")
    assert isinstance(made.value, Compaction)
    assert "u1" == made.value.last


def test_a_session_without_its_header_goes_by_the_name_of_its_file() -> None:
    """It ends with the id."""
    id = "01a2010f-914c-75c2-9d89-a59262ea3861"
    lines = jsonl(*PI[1:]).splitlines(keepends=True)
    (history,) = program("pi").read(Source(f"sessions/--p--/2026-11-22T02-22-07-181Z_{id}.jsonl", lines)).sessions
    assert (id, len(only("pi", jsonl(*PI)).entries)) == (history.id, len(history.entries))
