"""llm's logs: threads of shared messages, and the older rows of prompt and response."""

from __future__ import annotations

from typing import Any

from tests.formats.samples import LLM, TURN, drafts, jsonl, kinds, message, part, read
from thinkback.formats.history import History, Left
from thinkback.model.blocks import ThinkingBlock, Unknown
from thinkback.model.commits import Message, Response, Usage


def thread(*rows: dict[str, Any]) -> History:
    """The thread of the sample, with more rows."""
    return next(each for each in read("llm", jsonl(*LLM, *rows)).sessions if each.id == "th1")


def test_a_thread_is_the_messages_up_to_its_tip() -> None:
    """Text that borrows from a fragment is whole, and a thought that was redacted is one whose text was withheld."""
    history = thread()
    expected = ["user", "response", "reasoning", "tool_call", "provider_usage", "tool_result", "response", "assistant"]
    assert [*expected, "provider_usage", "turn_ended"] == kinds(history)
    assert ("Find it", "h4", 1795313510000000) == (history.title, history.tip, history.created)
    assert Message("Which file?") == drafts(history, "user")[0].value
    thought, used = drafts(history, "reasoning")[0].value, drafts(history, "provider_usage")[0].value
    assert isinstance(thought, ThinkingBlock)
    assert isinstance(used, Usage)
    assert ("", "none", True) == (thought.thought, thought.kind, "gAAAA" in thought.wire)
    assert (9, 7, 3) == (used.input, used.output, used.reasoning)
    assert {1795313517000000} == {entry.time for entry in history.entries}


def test_older_rows_are_conversations() -> None:
    """Those that stand in the newer tables too are not read twice; a response of its own is one, too."""
    _, older, alone = read("llm", jsonl(*LLM)).sessions
    assert ("cv1", "Older", "rs2") == (older.id, older.title, alone.id)
    expected = ["tool_result", "content", "user", "response", "assistant", "tool_call", "provider_usage"]
    assert expected == kinds(older)
    assert ["user", "response", "assistant", "turn_ended"] == kinds(alone)
    again = read("llm", jsonl(*LLM, LLM[-4])).sessions
    assert older in again


def test_what_else_there_is() -> None:
    """Attachments and notes stand beside the conversation; what is not known is counted, and a circle ends."""
    rows = (
        message("h0", "h9", "system"),
        {**message("h1", "h0", "user")},
        part("h0", 0, "text", "Be kind"),
        message("h9", "h0", "robot"),
        part("h1", 1, "attachment", attachment={"id": "a"}),
        part("h2", 2, "odd"),
        {**TURN, "id": "tn3", "tip_message_hash": "h2", "input_tokens": None},
    )
    history = thread(*rows)
    assert ["content", "user", "content", "response", "reasoning", "tool_call", "other"] == kinds(history)[:7]
    assert isinstance(drafts(history, "other")[0].value, Unknown)
    header = drafts(history, "response")[0].value
    assert isinstance(header, Response)
    assert "gpt-5.6" == header.origin.served_model
    assert (Left("message of robot", 1), Left("an attachment", 1)) == read("llm", jsonl(*LLM, *rows)).left


def test_numbers_that_cannot_be_counts_are_named() -> None:
    """They count as not reported."""
    details = {"output_tokens_details": {"reasoning_tokens": 10**12}}
    claims = {"input_tokens": -1, "token_details": details}
    history = read("llm", jsonl(*({**row, **claims} if "token_details" in row else row for row in LLM))).sessions[0]

    found = drafts(history, "provider_usage")[0].value
    assert isinstance(found, Usage)
    assert (None, None, ("input", "reasoning")) == (found.input, found.reasoning, found.invalid)
