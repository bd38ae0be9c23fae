"""Messages as they are written for clients: events, states, inputs, errors, and the vendor's reading of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anthropic
import httpx2
import pytest

from bench.dialects import DIALECTS, FRAMINGS, stream_of
from tests.wire.anthropic.feeding import ORIGIN
from tests.wire.feeding import calls, reasoning, visible
from tests.wire.fronts import reader_of, state, written
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.commits import Outcome, Response, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.anthropic.write_response import Writer, write_error, write_response
from thinkback.wire.arguments import as_object
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, Shown

SIGNED = (Carrier("thought_signature", "theirs"),)
USAGE = Usage(10, 5, 3, 4, 1, ("reasoning_beside_output",))
COUNTS = {
    "input_tokens": 5,
    "cache_creation_input_tokens": 1,
    "cache_read_input_tokens": 4,
    "output_tokens": 8,
    "output_tokens_details": {"thinking_tokens": 3},
}
BLOCKS: list[Block] = [
    ThinkingBlock("a plan", signature="theirs"),
    Text("an answer", carriers=SIGNED),
    ToolCall("c1", "f", '{"a": 1}', carriers=SIGNED),
    ToolCall("", "g", ""),
]
DELTAS: list[Delta] = [
    ReasoningDelta("a ", 0),
    ReasoningDelta("plan", 0),
    TextDelta("an answer", 1),
    ToolCallDelta(2, "c1", "f", '{"a"'),
    ToolCallDelta(2, arguments=": 1}"),
    ToolCallDelta(3, name="g"),
]
HEAD = {"id": "resp-1", "type": "message", "role": "assistant", "model": "asked-for"}


def shown(blocks: Sequence[Block] = (), **fields: Any) -> Shown:
    """How it is shown while these blocks come."""
    known = dict(enumerate(blocks))
    return Shown("resp-1", "asked-for", 7, state=state, block=known.get, **fields)


def result(*blocks: Block, outcome: Outcome = "answered", usage: Usage | None = None, **fields: Any) -> ReadResult:
    """A response."""
    return ReadResult(Response(ORIGIN, outcome=outcome, **fields), blocks, usage)


def events(stream: bytes) -> list[dict[str, Any]]:
    """What the events of a stream say; each has its type as its name."""
    found = []
    for event in stream.decode().split("\n\n")[:-1]:
        name, data = event.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert f"event: {found[-1]['type']}" == name
    return found


def told(deltas: Sequence[Delta], ended: ReadResult, how: Shown) -> list[Any]:
    """The stream of a response without its beginning: a block that begins, a delta, the index of one that ends."""
    writer = Writer(how)
    assert "message_start" == events(writer.begin())[0]["type"]
    parts: list[Any] = []
    for event in events(writer.show(deltas) + writer.end(ended)):
        part = event.get("content_block") or event.get("delta") or event.get("index", event["type"])
        parts.append(part)
    return parts


def test_a_stream_has_one_block_after_another() -> None:
    """A state stands in front of the block that follows, and that of a call that came whole in front of the call."""
    writer = Writer(shown(BLOCKS))
    stream = events(
        writer.begin() + writer.show(DELTAS) + writer.end(result(*BLOCKS, outcome="tool_calls", usage=USAGE))
    )

    usage = {"input_tokens": 0, "output_tokens": 0}
    started: dict[str, Any] = {**HEAD, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    ended = {"stop_reason": "tool_use", "stop_sequence": None}
    assert [
        {"type": "message_start", "message": started},
        begins(0, {"type": "thinking", "thinking": "", "signature": ""}),
        adds(0, {"type": "thinking_delta", "thinking": "a "}),
        adds(0, {"type": "thinking_delta", "thinking": "plan"}),
        adds(0, {"type": "signature_delta", "signature": "tb1.thinking"}),
        {"type": "content_block_stop", "index": 0},
        begins(1, {"type": "text", "text": ""}),
        adds(1, {"type": "text_delta", "text": "an answer"}),
        {"type": "content_block_stop", "index": 1},
        begins(2, {"type": "redacted_thinking", "data": "tb1.text+tool_call"}),
        {"type": "content_block_stop", "index": 2},
        begins(3, {"type": "tool_use", "id": "c1", "name": "f", "input": {}}),
        adds(3, {"type": "input_json_delta", "partial_json": '{"a"'}),
        adds(3, {"type": "input_json_delta", "partial_json": ": 1}"}),
        {"type": "content_block_stop", "index": 3},
        begins(4, {"type": "tool_use", "id": "call_resp-1_3", "name": "g", "input": {}}),
        {"type": "content_block_stop", "index": 4},
        {"type": "message_delta", "delta": ended, "usage": COUNTS},
        {"type": "message_stop"},
    ] == stream


def begins(index: int, block: dict[str, Any]) -> dict[str, Any]:
    """A block begins."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def adds(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    """A piece of a block."""
    return {"type": "content_block_delta", "index": index, "delta": delta}


def test_a_whole_message_never_ends_in_reasoning() -> None:
    """The state that is left stands in front of the last block; one that is all there is stands alone."""
    late: list[Block] = [*BLOCKS[:2], Unknown("{}", carriers=SIGNED)]
    redacted = {"type": "redacted_thinking", "data": "tb1.text+unknown"}
    assert {
        **HEAD,
        "content": [
            {"type": "thinking", "thinking": "a plan", "signature": "tb1.thinking"},
            redacted,
            {"type": "text", "text": "an answer"},
        ],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    } == json.loads(write_response(result(*late), shown()))
    assert [{"type": "redacted_thinking", "data": "tb1.unknown"}] == json.loads(
        write_response(result(late[2]), shown())
    )["content"]
    assert [
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "call_resp-1_1", "name": "g", "input": {}},
    ] == [block for block in json.loads(write_response(result(*BLOCKS[2:]), shown()))["content"] if "id" in block]


def test_reasoning_that_is_not_shown_leaves_its_state() -> None:
    """A thinking block without text has the signature; without a state there is no block."""
    expected = [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "signature_delta", "signature": "tb1.thinking"},
        0,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "an answer"},
        1,
    ]
    blocks = [BLOCKS[0], Text("an answer")]
    assert expected == told(DELTAS[:3], result(*blocks), shown(blocks, reasoning=False))[:-2]
    plain: list[Block] = [ThinkingBlock("a plan"), Text("an answer")]
    assert expected[3:5] == told(DELTAS[:3], result(*plain), shown(plain, reasoning=False))[:-3]
    content = json.loads(write_response(result(*blocks), shown(reasoning=False)))["content"]
    assert {"type": "thinking", "thinking": "", "signature": "tb1.thinking"} == content[0]


@pytest.mark.parametrize(
    ("pieces", "written"),
    [
        (["", ' {"a"', ":1}"], [' {"a"', ":1}"]),
        ([" ", '{"a":1}'], [' {"a":1}']),
        (["[1", "]"], ['{"arguments":"[1]"}']),
        (['{"a', "broken"], ['{"a', "broken"]),
        ([" "], ["{}"]),
        ([], []),
    ],
)
def test_an_input_is_an_object(pieces: list[str], written: list[str]) -> None:
    """Arguments that begin like one are shown as they come, others when they are whole, inside one."""
    block = ToolCall("c1", "f", "".join(pieces))
    deltas = [ToolCallDelta(0, "c1", "f"), *(ToolCallDelta(0, arguments=piece) for piece in pieces)]
    parts = [part for part in told(deltas, result(block), shown([block])) if isinstance(part, dict)]

    assert written == [part["partial_json"] for part in parts if "partial_json" in part]
    if "broken" not in block.arguments:
        (whole,) = json.loads(write_response(result(block), shown()))["content"]
        assert canonical.decode(as_object(block.arguments)) == whole["input"]


def test_a_call_that_broke_off_does_not_run() -> None:
    """The answer says that it is cut; the whole message has the calls that are complete, a stream what it showed."""
    whole, half = ToolCall("c1", "f", '{"a":1}'), ToolCall("c2", "f", '{"a":')
    ended = result(whole, half, outcome="tool_calls")
    message = json.loads(write_response(ended, shown()))
    assert [("c1", {"a": 1})] == [(block["id"], block["input"]) for block in message["content"]]
    assert "max_tokens" == message["stop_reason"]
    parts = told([ToolCallDelta(0, "c1", "f", '{"a":1}'), ToolCallDelta(1, "c2", "f", '{"a":')], ended, shown())
    assert ["max_tokens"] == [part["stop_reason"] for part in parts if isinstance(part, dict) and "stop_reason" in part]
    fine = result(whole, outcome="tool_calls")
    assert "tool_use" == json.loads(write_response(fine, shown()))["stop_reason"]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("answered", "end_turn"),
        ("reasoning_only", "end_turn"),
        ("empty", "end_turn"),
        ("tool_calls", "tool_use"),
        ("max_tokens", "max_tokens"),
        ("max_tokens_in_reasoning", "max_tokens"),
        ("refused", "refusal"),
        ("safety", "refusal"),
        ("paused", "pause_turn"),
    ],
)
def test_why_a_model_stopped_is_said_in_words_of_this_dialect(outcome: Outcome, reason: str) -> None:
    """In a stream and in a message."""
    ended = result(Text("a"), outcome=outcome)

    assert reason == json.loads(write_response(ended, shown()))["stop_reason"]
    assert {"stop_reason": reason, "stop_sequence": None} == told([], ended, shown())[-2]


@pytest.mark.parametrize("envelope", ['{"stop_sequence":"END"}', "{}", ""])
def test_a_text_that_stopped_the_model_is_told_where_its_provider_did(envelope: str) -> None:
    """An upstream of this dialect has a word for it."""
    message = json.loads(write_response(result(finish="stop_sequence", envelope=envelope), shown()))

    assert ("stop_sequence", "END" if "END" in envelope else None) == (message["stop_reason"], message["stop_sequence"])


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (Problem(400, "m"), "invalid_request_error"),
        (Problem(401, "m"), "authentication_error"),
        (Problem(402, "m"), "billing_error"),
        (Problem(403, "m"), "permission_error"),
        (Problem(404, "m"), "not_found_error"),
        (Problem(409, "m"), "invalid_request_error"),
        (Problem(413, "m"), "request_too_large"),
        (Problem(429, "m"), "rate_limit_error"),
        (Problem(500, "m"), "api_error"),
        (Problem(502, "\ud83d", "truncated"), "api_error"),
        (Problem(504, "m"), "timeout_error"),
        (Problem(529, "m", "server_error"), "overloaded_error"),
        (Problem(500, "m", "overloaded_error"), "overloaded_error"),
    ],
)
def test_an_error_has_the_words_of_the_dialect(problem: Problem, kind: str) -> None:
    """By its status, unless the provider gave a word of this dialect."""
    assert {"type": "error", "error": {"type": kind, "message": problem.message}} == json.loads(write_error(problem))


def client(body: bytes, content_type: str, status: int = 200) -> anthropic.Anthropic:
    """The vendor's client, which gets this response."""

    def respond(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers={"content-type": content_type}, content=body)

    return anthropic.Anthropic(
        base_url="https://api.example.org",
        api_key="k",
        max_retries=0,
        http_client=httpx2.Client(transport=httpx2.MockTransport(respond)),
    )


ASKED: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_vendors_client_reads_what_every_dialect_said(dialect: str) -> None:
    """A stream and a whole message give it the same: texts, reasoning, calls, states and counts."""
    made = written("anthropic", reader_of(dialect, FRAMINGS[dialect]), stream_of(dialect, 60).pieces, state=state)
    with client(made.stream, "text/event-stream") as streams, streams.messages.stream(**ASKED) as stream:
        streamed = stream.get_final_message()
    with client(made.document, "application/json") as documents:
        whole = documents.messages.create(**ASKED)

    blocks = made.result.blocks
    for message in (streamed, whole):
        content: list[Any] = message.to_dict()["content"]  # type: ignore[assignment]
        thoughts = [block for block in content if block["type"] == "thinking"]
        found = [(block["name"], block["input"]) for block in content if block["type"] == "tool_use"]
        assert visible(blocks) == "".join(block["text"] for block in content if block["type"] == "text")
        assert reasoning(blocks) == "".join(block["thinking"] for block in thoughts)
        assert [(name, json.loads(arguments)) for _, name, arguments in calls(made.result)] == found
        opaque = any(isinstance(block, ThinkingBlock) and state([block]) for block in blocks)
        assert opaque == any(block["signature"] == "tb1.thinking" for block in thoughts)
        assert "tool_use" == message.stop_reason
    assert streamed.usage.to_dict() == whole.usage.to_dict()


def test_the_vendors_client_raises_what_is_written_as_an_error() -> None:
    """An error behind the beginning of a stream, and one in place of a message."""
    writer = Writer(shown(BLOCKS))
    stream = writer.begin() + writer.show(DELTAS[:4]) + writer.fail(Problem(529, "too busy"))
    with (
        client(stream, "text/event-stream") as streams,
        pytest.raises(anthropic.APIError, match="too busy"),
        streams.messages.stream(**ASKED) as broken,
    ):
        broken.get_final_message()
    body = write_error(Problem(429, "slow down"))
    with (
        client(body, "application/json", 429) as refused,
        pytest.raises(anthropic.RateLimitError, match="slow down"),
    ):
        refused.messages.create(**ASKED)


def test_a_thread_that_is_not_known_is_named_where_the_vendors_package_looks_for_it() -> None:
    """In the details of the error, beside its type and message."""
    body = json.loads(write_error(Problem(400, "no such thread", code="thread_not_found")))
    assert {"error_code": "thread_not_found"} == body["error"]["details"]
