"""Chat completions as they are written for clients: shape, state, errors, and the vendor's reading of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx2
import openai
import pytest

from bench.dialects import DIALECTS, FRAMINGS, stream_of
from tests.wire.feeding import ORIGIN, calls, reasoning, visible
from tests.wire.fronts import reader_of, written
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Response, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.openai_chat.write_response import Writer, write_error, write_response
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, Shown

USAGE = Usage(10, 5, 3, 4, 1, ("cache_beside_input", "reasoning_beside_output"))
BLOCKS: list[Block] = [
    ThinkingBlock("a plan", signature="theirs"),
    Text("an answer"),
    ToolCall("c1", "f", '{"a": 1}'),
    ToolCall("", "g", ""),
    Media("image/png", data="AAAA"),
    Media("image/png"),
]
DELTAS: list[Delta] = [
    ReasoningDelta("a plan", 0),
    TextDelta("an answer", 1),
    ToolCallDelta(2, "c1", "f", '{"a"'),
    ToolCallDelta(2, arguments=": 1}"),
    ToolCallDelta(3, name="g"),
]
IMAGES = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
DETAILS = [{"type": "reasoning.encrypted", "data": "tb1.AA", "format": "thinkback-v1", "id": "resp-1", "index": 0}]
COUNTS = {
    "prompt_tokens": 15,
    "completion_tokens": 8,
    "total_tokens": 23,
    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


def state(blocks: Sequence[Block]) -> str:
    """A state for responses that have reasoning."""
    return "tb1.AA" if any(isinstance(block, ThinkingBlock) for block in blocks) else ""


SHOWN = Shown("resp-1", "asked-for", 7, state=state, block=BLOCKS.__getitem__)
RESULT = ReadResult(Response(ORIGIN, finish="end_turn", outcome="tool_calls"), tuple(BLOCKS), USAGE)


def test_a_stream_has_the_role_first_and_the_usage_last() -> None:
    """Calls begin with id and name, go on with arguments, and have all of them; the state comes before the finish."""
    writer = Writer(SHOWN)
    stream = writer.begin() + writer.show(DELTAS) + writer.end(RESULT)

    lines = stream.decode().split("\n\n")
    assert ["data: [DONE]", ""] == lines[-2:]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    head = {"id": "resp-1", "object": "chat.completion.chunk", "created": 7, "model": "asked-for"}
    assert all(head.items() <= chunk.items() for chunk in chunks)
    begun = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
    second = {"id": "call_resp-1_3", "type": "function", "function": {"name": "g", "arguments": ""}}
    assert [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "a plan"},
        {"content": "an answer"},
        {"tool_calls": [{"index": 0, **begun}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
        {"tool_calls": [{"index": 1, **second}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {"images": IMAGES, "reasoning_details": DETAILS},
        {},
    ] == [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert [None] * 9 + ["tool_calls"] == [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]]
    assert {**head, "choices": [], "usage": COUNTS} == chunks[-1]


def test_a_stream_that_says_nothing_has_its_state_alone() -> None:
    """There is nothing that it could stand beside."""
    hidden = ReadResult(Response(ORIGIN, outcome="empty"), (ThinkingBlock("", is_hidden=True),), None)
    events = Writer(Shown("resp-1", "asked-for", 7, state=state)).end(hidden).split(b"\n\n")

    assert {"reasoning_details": DETAILS} == json.loads(events[0].removeprefix(b"data: "))["choices"][0]["delta"]


def test_a_whole_response_is_one_completion() -> None:
    """Everything stands in the message of the one choice."""
    message = {
        "role": "assistant",
        "content": "an answer",
        "reasoning_content": "a plan",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
            {"id": "call_resp-1_3", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
        "images": IMAGES,
        "reasoning_details": DETAILS,
    }
    assert {
        "id": "resp-1",
        "object": "chat.completion",
        "created": 7,
        "model": "asked-for",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}],
        "usage": COUNTS,
    } == json.loads(write_response(RESULT, SHOWN))


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (Problem(400, "m", param="model"), ("invalid_request_error", "model", None)),
        (Problem(401, "m", "authentication_error"), ("authentication_error", None, None)),
        (Problem(403, "m"), ("permission_error", None, None)),
        (Problem(404, "m", code="model_not_found"), ("not_found_error", None, "model_not_found")),
        (Problem(413, "m"), ("invalid_request_error", None, None)),
        (Problem(429, "m", "tokens", "rate_limit_exceeded"), ("tokens", None, "rate_limit_exceeded")),
        (Problem(429, "m", code="insufficient_quota"), ("insufficient_quota", None, "insufficient_quota")),
        (Problem(529, "m", "overloaded_error"), ("server_error", None, "overloaded_error")),
        (Problem(502, "\ud83d"), ("server_error", None, None)),
    ],
)
def test_an_error_has_the_words_of_the_dialect(problem: Problem, expected: tuple[str, str | None, str | None]) -> None:
    """What is no type of this dialect stands as the code."""
    kind, param, code = expected
    assert {"error": {"message": problem.message, "type": kind, "param": param, "code": code}} == json.loads(
        write_error(problem)
    )


def client(body: bytes, content_type: str, status: int = 200) -> openai.OpenAI:
    """The vendor's client, which gets this response."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers={"content-type": content_type}, content=body)

    transport = httpx2.MockTransport(respond)
    return openai.OpenAI(
        base_url="https://api.example.org/v1",
        api_key="k",
        max_retries=0,
        http_client=httpx2.Client(transport=transport),
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_vendors_client_reads_what_every_dialect_said(dialect: str) -> None:
    """A stream and a whole response give it the same message: texts, reasoning, calls and counts."""
    made = written("openai-chat", reader_of(dialect, FRAMINGS[dialect]), stream_of(dialect, 60).pieces, state=state)
    asked: dict[str, Any] = {"model": "asked-for", "messages": [{"role": "user", "content": "?"}]}
    with client(made.stream, "text/event-stream") as streams, streams.chat.completions.stream(**asked) as events:
        streamed = events.get_final_completion()
    with client(made.document, "application/json") as documents:
        whole = documents.chat.completions.create(**asked)

    blocks = made.result.blocks
    for completion in (streamed, whole):
        (choice,) = completion.choices
        message = choice.message
        assert (visible(blocks), reasoning(blocks)) == (message.content or "", message.to_dict()["reasoning_content"])
        found = [
            (call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
            if call.type == "function"
        ]
        assert [call[1:] for call in calls(made.result)] == [call[1:] for call in found]
        assert all(call[0] for call in found)
        assert "tool_calls" == choice.finish_reason
        assert "tb1.AA" == message.to_dict()["reasoning_details"][0]["data"]  # type: ignore[index]
    assert streamed.usage == whole.usage


def test_the_vendors_client_raises_what_is_written_as_an_error() -> None:
    """An error behind the beginning of a stream, and one in place of a response."""
    writer = Writer(SHOWN)
    stream = writer.begin() + writer.show(DELTAS[:2]) + writer.fail(Problem(529, "too busy", "overloaded_error"))
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    with client(stream, "text/event-stream") as streams, pytest.raises(openai.APIError, match="too busy"):
        list(streams.chat.completions.create(**asked, stream=True))
    problem = Problem(429, "slow down")
    with (
        client(write_error(problem), "application/json", 429) as refused,
        pytest.raises(openai.RateLimitError, match="slow down"),
    ):
        refused.chat.completions.create(**asked)
