"""What a response of Cohere brings, streamed and whole: every kind of item, call and event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.cohere.feeding import BEGIN, body, end, event, feed, read, stream
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.commits import Usage
from thinkback.model.deltas import ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.cohere.read import raw_response

USAGE = {"billed_units": {"input_tokens": 1}, "tokens": {"input_tokens": 7, "output_tokens": 9.0}, "cached_tokens": 3}
THOUGHT = ThinkingBlock("I should look.", source_field="thinking")
PLAN = ThinkingBlock("I will look it up.", source_field="tool_plan")
CITATION = {"start": 0, "end": 2, "text": "It", "sources": [], "type": "TEXT_CONTENT", "content_index": 1}
CALL = {"id": "f_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.50}'}}
MESSAGE = {
    "role": "assistant",
    "content": [{"type": "thinking", "thinking": "I should look."}, {"type": "text", "text": "It is."}],
    "tool_plan": "I will look it up.",
    "tool_calls": [CALL, {"id": "g_1", "type": "function", "function": {"name": "g", "arguments": "{}"}}],
    "citations": [CITATION],
}
STREAM = stream(
    BEGIN,
    event("content-start", 0, content={"type": "thinking", "thinking": ""}),
    event("content-delta", 0, content={"thinking": "I should "}),
    event("content-delta", 0, content={"thinking": "look."}),
    event("content-end", 0),
    event("content-start", 1, content={"type": "text", "text": ""}),
    event("content-delta", 1, content={"text": "It "}),
    event("citation-start", 0, citations=CITATION),
    event("citation-end", 0),
    event("content-delta", 1, content={"text": "is."}),
    event("content-end", 1),
    event("tool-plan-delta", tool_plan="I will "),
    event("tool-plan-delta", tool_plan="look it up."),
    event(
        "tool-call-start", 0, tool_calls={"id": "f_1", "type": "function", "function": {"name": "f", "arguments": ""}}
    ),
    event("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"a":'}}),
    event("tool-call-delta", 0, tool_calls={"function": {"arguments": " 1.50}"}}),
    event("tool-call-end", 0),
    event(
        "tool-call-start", 1, tool_calls={"id": "g_1", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    ),
    event("tool-call-end", 1),
    end("TOOL_CALL", usage=USAGE),
    b"data: [DONE]\n\n",
)


def test_a_stream_and_a_body_give_the_same_response() -> None:
    """Blocks, arguments as source text, citations and usage are equal, and can be put together again."""
    streamed, whole = read(STREAM), read(body(MESSAGE, "TOOL_CALL", usage=USAGE))
    calls = (ToolCall("f_1", "f", '{"a": 1.50}'), ToolCall("g_1", "g", "{}"))

    assert (THOUGHT, Text("It is."), PLAN, *calls) == streamed.blocks
    assert streamed == whole
    assert Usage(7, 9, cached=3, wire=json.dumps(USAGE, separators=(",", ":"))) == whole.usage
    assert ("m1", "TOOL_CALL", "tool_calls") == (whole.response.id, whole.response.finish, whole.response.outcome)
    assert json.loads(body(MESSAGE, "TOOL_CALL", usage=USAGE)) == raw_response(streamed) == raw_response(whole)


def test_deltas_come_as_the_stream_does() -> None:
    """Each piece is shown when it arrives, under the index that its block has in the end."""
    deltas, _ = feed([STREAM])

    assert [
        ReasoningDelta("I should ", 0, "r1"),
        ReasoningDelta("look.", 0, "r1"),
        TextDelta("It ", 1, "r1"),
        TextDelta("is.", 1, "r1"),
        ReasoningDelta("I will ", 2, "r1"),
        ReasoningDelta("look it up.", 2, "r1"),
        ToolCallDelta(3, "f_1", "f", response="r1"),
        ToolCallDelta(3, arguments='{"a":', response="r1"),
        ToolCallDelta(3, arguments=" 1.50}", response="r1"),
        ToolCallDelta(4, "g_1", "g", response="r1"),
        ToolCallDelta(4, arguments="{}", response="r1"),
    ] == deltas


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([event("content-delta", 0, content={"text": "a"})], [Text("a")]),
        ([event("content-start", 0, content={"type": "text", "text": ""})], [Text("")]),
        (
            [event("content-delta", 0, content={"text": "a"}), event("content-delta", 0, content={"thinking": "b"})],
            [Text("a"), ThinkingBlock("b", source_field="thinking")],
        ),
        (
            [
                event("content-delta", 0, content={"text": "a"}),
                event("content-start", 0, content={"type": "text", "text": "b"}),
            ],
            [Text("a"), Text("b")],
        ),
        ([event("content-delta", content={"text": "a"})], [Text("a")]),
        ([{**event("content-delta", 0, content={"text": "a"}), "index": "x"}], [Text("a")]),
        ([{**event("content-delta", 0, content={"text": "\ud83d"}), "new": 1}], [Text("\ud83d")]),
        (
            [
                event("content-delta", 0, content={"text": "\ud83d"}),
                event("content-delta", 0, content={"text": "\ude00"}),
            ],
            [Text("😀")],
        ),
        ([event("tool-call-delta", 0, tool_calls={"function": {"arguments": "{}"}})], [ToolCall("", "", "{}")]),
        (
            [
                event("tool-call-start", 0, tool_calls={"id": "a", "function": {"name": "f"}}),
                event("tool-call-delta", 0, tool_calls={"id": "a", "function": {"arguments": "{}"}}),
                event("tool-call-delta", 0, tool_calls={"id": "a"}),
            ],
            [ToolCall("a", "f", "{}")],
        ),
        (
            [event("tool-call-delta", 3, tool_calls={"id": "a", "function": {"name": "f", "arguments": {"a": 1}}})],
            [ToolCall("a", "f", '{"a":1}')],
        ),
        (
            [
                event("content-start", 0, content={"type": "new", "a": "x"}),
                event("content-delta", 0, content={"a": "y"}),
            ],
            [Unknown('{"type":"new","a":"xy"}')],
        ),
        ([event("content-delta", 0, content={})], []),
        ([{**event("content-delta", 0, content={"text": None}), "new": 1}], []),
        (
            [event("content-start", 0, content={"type": "new"}), event("content-delta", 0, content={"text": "a"})],
            [Unknown('{"type":"new","text":"a"}')],
        ),
        (
            [event("content-start", 0, content={"type": "text"}), event("content-delta", 0, content={"text": "a"})],
            [Text("a")],
        ),
        ([event("content-delta", 0, content={"text": None})], []),
        (
            [
                {"type": "debug", "prompt": "x"},
                {"type": "content-delta", "delta": 5},
                {"type": "new", "delta": {"message": {}}},
            ],
            [],
        ),
    ],
)
def test_a_stream_that_is_not_quite_right_is_read_as_far_as_it_goes(events: list[Any], expected: list[Any]) -> None:
    """What is missing is empty, another kind under a used index is another block, what is unknown stays."""
    result = read(stream(*events, end()))

    assert expected == list(result.blocks)
    assert result.response.complete


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "text", "text": "a", "more": 1}, Text),
        ({"type": "thinking", "thinking": "a", "signature": "x"}, ThinkingBlock),
        ({"type": "thinking", "thinking": ""}, ThinkingBlock),
        ({"type": "text", "text": 5}, Unknown),
        ({"type": "document", "document": {"id": "d"}}, Unknown),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}, Media),
        ({"type": ["text"]}, Unknown),
        ("text", Unknown),
    ],
)
def test_a_content_item_of_any_kind_is_kept(item: Any, expected: type) -> None:
    """What is known is read, what is not stays as it came."""
    result = read(body({"role": "assistant", "content": [item]}))

    assert [expected] == [type(block) for block in result.blocks]
    assert [item] == raw_response(result)["message"]["content"]


@pytest.mark.parametrize(
    "call",
    [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}", "more": 1}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "more": 1},
        {"id": "a", "type": "other", "function": {"name": "f", "arguments": "{}"}},
    ],
)
def test_a_call_with_more_to_it_is_kept_as_it_came(call: Any) -> None:
    """It is a call all the same."""
    result = read(body({"role": "assistant", "tool_calls": [call, "surprise"]}))
    (found,) = result.blocks

    assert isinstance(found, ToolCall)
    assert ("a", "f", "{}") == (found.id, found.name, found.arguments)
    assert [call] == raw_response(result)["message"]["tool_calls"]


def test_a_call_without_a_function_is_kept() -> None:
    """Id and name are what they are."""
    (found,) = read(body({"role": "assistant", "tool_calls": [{"id": "a", "other": 1}]})).blocks

    assert isinstance(found, ToolCall)
    assert {"id": "a", "other": 1, "function": None} == json.loads(found.wire)


def test_plain_content_is_text() -> None:
    """Content may be a string."""
    result = read(body({"role": "assistant", "content": "a"}))

    assert (Text("a"),) == result.blocks
    assert "text" == result.response.content
    assert "a" == raw_response(result)["message"]["content"]


def test_what_no_block_owns_is_kept() -> None:
    """Fields of the message and of the response, log probabilities of a stream."""
    raw = body({"role": "assistant", "content": [], "new": 1}, response_type="x")
    streamed = read(
        stream(
            {**event("content-delta", 0, content={"text": "a"}), "logprobs": {"text": "a"}},
            {**event("content-delta", 0, content={"text": "b"}), "logprobs": {"text": "b"}},
            end(),
        )
    )

    assert {"new": 1} == json.loads(read(raw).response.message)
    assert {"response_type": "x"} == json.loads(read(raw).response.envelope)
    assert {"logprobs": [{"text": "a"}, {"text": "b"}]} == json.loads(streamed.response.envelope)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"tokens": {"input_tokens": 1, "output_tokens": 2, "reasoning_tokens": 3}}, (1, 2, 3, None)),
        ({"tokens": {"input_tokens": True, "output_tokens": "2"}, "cached_tokens": 4}, (None, None, None, 4)),
        ({"tokens": 5, "billed_units": {"input_tokens": 1}}, (None, None, None, None)),
    ],
)
def test_usage_is_read_as_reported(usage: Any, expected: tuple[int | None, ...]) -> None:
    """Tokens as the model counted them, not as they are billed; what was not said is unknown."""
    found = read(body({"content": "a"}, usage=usage)).usage

    assert found is not None
    assert expected == (found.input, found.output, found.reasoning, found.cached)


@pytest.mark.parametrize("usage", [{}, [], 5])
def test_usage_that_is_none_is_none(usage: Any) -> None:
    """An empty object says nothing."""
    assert read(body({"content": "a"}, usage=usage)).usage is None
