"""Chat completions as JSON lines, with reasoning in every spelling."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.samples import CHAT, drafts, jsonl, kinds, only, read
from thinkback.formats.history import Left
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult, carriers_of

HI = {"role": "user", "content": "Hi"}


def test_a_line_is_a_conversation() -> None:
    """With calls, results, and thoughts in a field or between tags."""
    history = only("chat-jsonl", jsonl(*CHAT))
    expected = ["content", "user", "response", "reasoning", "tool_call", "tool_result", "response", "reasoning"]
    assert [*expected, "assistant", "turn_ended"] == kinds(history)
    thoughts = [draft.value.thought for draft in drafts(history, "reasoning") if isinstance(draft.value, ThinkingBlock)]
    assert ["I list them.", "It is there."] == thoughts
    assert Text("notes.txt") == drafts(history, "assistant")[0].value


@pytest.mark.parametrize(
    "said",
    [
        *({name: "Why."} for name in ("reasoning_content", "reasoning", "thinking", "thoughts", "thought")),
        {"reasoning_details": [{"type": "reasoning.text", "text": "Why."}]},
        {"reasoning": ["Why."]},
        {"content": "<thinking>Why.</thinking>"},
        {"content": [{"type": "thinking", "thinking": "Why.", "signature": "s"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Why."}]}]},
        {"content": [{"type": "reasoning", "summary": [{"text": "Why."}]}]},
        {"content": [{"reasoningContent": {"reasoningText": {"text": "Why.", "signature": "s"}}}]},
        {"content": [{"text": "Why.", "thought": True}, {"text": "So."}]},
        {"reasoning": {"content": "Why."}},
        {"thinking_blocks": [{"type": "thinking", "thinking": "Why.", "signature": "s"}]},
        {"additional_kwargs": {"reasoning_content": "Why."}},
        {"content": "Why.</think>So."},
        {"content": "[THINK]Why.[/THINK]So."},
        {"content": "<think> </think>\n<think>Why.</think>"},
        {"content": "<|channel|>analysis<|message|>Why.<|end|>So."},
    ],
)
def test_every_spelling_of_reasoning(said: dict[str, Any]) -> None:
    """A field, a list, a part, tags."""
    history = only("chat-jsonl", jsonl({"messages": [HI, {"role": "assistant", "content": "", **said}]}))
    (thought,) = drafts(history, "reasoning")
    assert isinstance(thought.value, ThinkingBlock)
    assert "Why." == thought.value.thought


def test_opaque_values_of_reasoning_are_kept() -> None:
    """Beside its text, or where they are all that there is."""
    details = [{"type": "reasoning.encrypted", "data": "gAAA"}, {"type": "reasoning.text", "signature": "s"}]
    parts = [{"type": "redacted_thinking", "data": "gAAB"}]
    said = ({"reasoning_details": details, "reasoning": "Why.", "content": "a"}, {"content": parts})
    history = only("chat-jsonl", jsonl({"messages": [HI, *({"role": "assistant", **each} for each in said)]}))
    values = [
        carriers_of(draft.value) for draft in drafts(history, "reasoning") if isinstance(draft.value, ThinkingBlock)
    ]
    assert [["gAAA", "s"], ["gAAB"]] == [[carrier.value for carrier in each] for each in values]


@pytest.mark.parametrize(
    "record",
    [
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "So."}]}]},
        {"prompt": "Hi", "completion": "So.", "reasoning": "Why."},
        {"prompt": [HI], "completion": [{"role": "assistant", "content": "So."}]},
        {
            "body": {"messages": [HI]},
            "response": {"body": {"choices": [{"message": {"role": "assistant", "content": "So."}}]}},
        },
    ],
)
def test_further_shapes_of_a_conversation(record: dict[str, Any]) -> None:
    """Another dialect's messages, a question with its answer, a request with what came of it; also in a list."""
    history = only("chat-jsonl", jsonl(record))
    assert ["user", "response", "assistant"] == [
        kind for kind in kinds(history) if kind in ("user", "response", "assistant")
    ]
    assert only("chat-jsonl", json.dumps([record, {"odd": 1}], indent=1).encode()).id == history.id


def test_other_shapes() -> None:
    """A message a line, other names of roles, older calls, parts of other dialects; what is none is counted."""
    calls = {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}}
    lines = (
        {"from": "human", "value": "Hi"},
        {"from": "gpt", **calls},
        {"role": "function", "name": "ls", "content": "a"},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "ls", "input": {}}, {"type": "audio"}, "b"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "c"}]},
        {"role": "tool", "content": "d"},
        {"role": "narrator", "content": "e"},
    )
    found = read("chat-jsonl", jsonl(*lines, {"odd": 1}))
    (history,) = found.sessions
    expected = ["user", "response", "tool_call", "tool_result", "response", "tool_call", "other", "assistant"]
    assert [*expected, "tool_result", "tool_result", "content"] == kinds(history)
    (first, second), given = (drafts(history, kind) for kind in ("tool_call", "tool_result"))
    assert isinstance(first.value, ToolCall)
    assert isinstance(second.value, ToolCall)
    ids = [draft.value.id for draft in given if isinstance(draft.value, ToolResult)]
    assert [first.value.id, "x", second.value.id] == ids
    assert (Left("a line that is no conversation", 1, 8), Left("message of narrator", 1)) == found.left


def test_conversations_are_told_apart() -> None:
    """By their own id, or by what they say; the same one twice is one."""
    named = {"conversation_id": "n", "title": "Named", "created": 1795313517, "conversations": [HI]}
    found = read(
        "chat-jsonl", jsonl(named, {"messages": [HI]}, {"messages": [HI]}, {"messages": [HI, HI]}, {"messages": []})
    )
    assert ("Named", 3) == (found.sessions[0].title, len(found.sessions))
    assert (Left("a conversation that is there twice", 1, 3),) == found.left
    same = only("chat-jsonl", jsonl({**named, "conversations": [HI, {"role": "assistant", "content": "a"}]}))
    other = only("chat-jsonl", jsonl({**named, "conversations": [{**HI, "content": "Ho"}]}))
    assert [True, False] == [each.id == found.sessions[0].id for each in (same, other)]
    long = {**named, "conversation_id": "0123456789abcdef"}
    assert "0123456789abcdef" == only("chat-jsonl", jsonl(long)).id
