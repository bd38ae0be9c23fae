"""Chat completions as JSON lines, with reasoning in every spelling."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.samples import CHAT, drafts, jsonl, kinds, only, read
from thinkback.formats.history import Left
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, ToolResult, carriers_of
from thinkback.model.commits import Message

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
        *({name: "Why."} for name in ("reasoning_content", "reasoning", "thinking", "thoughts", "thought", "cot")),
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
        {"content": "<think>Wh</think><think>y.</think>So."},
        {"content": "<think>Why.</think>\n"},
        {"content": "[THINK]Why.[/THINK]So."},
        {"content": "<think> </think>\n<think>Why.</think>"},
        {"content": "<|channel|>analysis<|message|>Why.<|end|>So."},
        {"content": [{"type": "think", "think": "Why."}]},
        {"content": "Why.", "channel": "analysis"},
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
        {"history": [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "So."}]}]},
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


WHY = {"type": "thinking", "thinking": "Why.", "signature": "s"}
MADE = {"role": "assistant", "content": [WHY, {"type": "text", "text": "So."}]}
CALL = {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"}
RESPONSE = {
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Why."}], "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]},
    ],
    "usage": {"input_tokens": 9, "output_tokens": 7},
}
THOUGHT = {"role": "model", "parts": [{"text": "Why.", "thought": True}, {"text": "So."}]}


@pytest.mark.parametrize(
    "record",
    [
        {"choices": [{"message": {"role": "assistant", "reasoning": "Why.", "content": "So."}}, {"message": MADE}]},
        {"choices": [{"text": "<think>Why.</think>So."}]},
        RESPONSE,
        {"custom_id": "1", "response": {"status_code": 200, "body": RESPONSE}},
        {"custom_id": "1", "result": {"type": "succeeded", "message": MADE}},
        {"candidates": [{"content": THOUGHT}]},
        {"message": {"role": "assistant", "thinking": "Why.", "content": "So."}, "done": True},
        {"request": {"system": "Be brief.", "messages": [HI]}, "response": MADE},
        {"request": {"input": "Hi", "instructions": "Be brief."}, "response": RESPONSE},
        {"key": "1", "request": {"contents": [HI]}, "response": {"candidates": [{"content": THOUGHT}, {}]}},
        {"messages": [HI], "response": "<think>Why.</think>So."},
        {"messages": [HI], "message": MADE},
        {"prompt": [HI], "chosen": [MADE], "rejected": [MADE]},
        {"input": [HI, *RESPONSE["output"]]},
        {"inputs": {"messages": [HI]}, "outputs": {"choices": [{"message": MADE}]}},
        {"messages": [{"type": "human", "content": "Hi"}, {"type": "ai", **MADE}]},
        {"messages": [{"type": "human", "data": {"content": "Hi"}}, {"type": "ai", "data": {"content": [WHY, "So."]}}]},
        {"messages": [{"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": [WHY, "So."]}}]},
        {"messages": [{"sender": "Assistant", "content": [{"type": "think", "think": "Why."}, "So."]}]},
    ],
)
def test_answers_of_every_api(record: dict[str, Any]) -> None:
    """A response a line, batches and their results, messages as libraries write them down."""
    history = only("chat-jsonl", jsonl(record))
    (thought,), (text,) = drafts(history, "reasoning"), drafts(history, "assistant")
    assert isinstance(thought.value, ThinkingBlock)
    assert ("Why.", Text("So.")) == (thought.value.thought, text.value)
    asked = [draft.value.text for draft in drafts(history, "user") if isinstance(draft.value, Message)]
    assert asked == (["Hi"] if "Hi" in json.dumps(record) else [])


@pytest.mark.parametrize(
    ("called", "gave"),
    [
        ({"type": "tool_use", "id": "c", "name": "ls", "input": {}}, {"type": "tool_result", "tool_use_id": "c"}),
        ({"functionCall": {"name": "ls", "args": {}}}, {"functionResponse": {"name": "ls", "response": "a"}}),
        ({"toolUse": {"toolUseId": "c", "name": "ls", "input": {}}}, {"toolResult": {"toolUseId": "c"}}),
        (
            {"type": "tool-call", "toolCallId": "c", "toolName": "ls", "input": {}},
            {"type": "tool-result", "toolCallId": "c", "output": "a"},
        ),
    ],
)
@pytest.mark.parametrize("role", ["user", "tool"])
def test_calls_and_results_that_are_parts(called: dict[str, Any], gave: dict[str, Any], role: str) -> None:
    """Of every API; a result without an id is that of the call that waits."""
    said = {"role": role, "content": [gave, {"text": "b"}]}
    history = only("chat-jsonl", jsonl({"messages": [HI, {"role": "assistant", "content": [called]}, said]}))
    (call,), (result, *rest) = drafts(history, "tool_call"), drafts(history, "tool_result")
    assert isinstance(call.value, ToolCall)
    assert isinstance(result.value, ToolResult)
    assert ("ls", "{}", call.value.id) == (call.value.name, call.value.arguments, result.value.id)
    assert (role == "tool") == (len(rest) == 1)
    assert (2 if role == "user" else 1) == len(drafts(history, "user"))


@pytest.mark.parametrize(
    ("called", "gave"),
    [
        ({"from": "function_call", "value": '{"name": "ls", "arguments": {}}'}, {"from": "observation", "value": "a"}),
        ({"role": "assistant", "recipient": "functions.ls", "content": "{}"}, {"role": "tool", "content": "a"}),
        (CALL, {"type": "function_call_output", "call_id": "c", "output": "a"}),
    ],
)
def test_calls_that_are_messages(called: dict[str, Any], gave: dict[str, Any]) -> None:
    """Of ShareGPT, of OpenAI's open models, items of the Responses API."""
    history = only("chat-jsonl", jsonl({"messages": [HI, called, gave]}))
    (call,), (result,) = drafts(history, "tool_call"), drafts(history, "tool_result")
    assert isinstance(call.value, ToolCall)
    assert ToolResult(call.value.id, "a") == result.value
    assert ("ls", "{}") == (call.value.name, call.value.arguments)


def test_what_is_left_of_a_line_is_said() -> None:
    """Further choices; a call that cannot be read is its text; a refusal is an answer."""
    refused = {"role": "assistant", "content": None, "refusal": "No."}
    odd = {"from": "function_call", "value": "ls"}
    found = read("chat-jsonl", jsonl({"conversations": [HI, refused, odd]}, {"choices": [{"message": MADE}, {}, {}]}))
    assert (Left("a further choice", 2),) == found.left
    texts = [draft.value.text for draft in drafts(found.sessions[0], "assistant") if isinstance(draft.value, Text)]
    assert ["No.", "ls"] == texts
    nothing = read("chat-jsonl", jsonl({"choices": [{}]}, {"message": {}}))
    assert ((), (Left("a line that is no conversation", 2, 1),)) == (nothing.sessions, nothing.left)


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
