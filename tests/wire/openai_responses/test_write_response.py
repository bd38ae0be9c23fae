"""Responses as they are written for clients: events, states, the whole object, errors, and the vendor's reading."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx2
import openai
import pytest
from openai.types.responses import Response as Parsed

from bench.dialects import DIALECTS, FRAMINGS, stream_of
from tests.wire.feeding import calls, reasoning, visible
from tests.wire.fronts import reader_of, state, written
from tests.wire.openai_responses.feeding import ORIGIN
from thinkback.model.blocks import Block, Carrier, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.commits import Failure, Outcome, Response, Usage
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.openai_responses.write_response import Writer, write_error, write_response
from thinkback.wire.result import ReadResult
from thinkback.wire.writing import Problem, Shown

SIGNED = (Carrier("thought_signature", "theirs"),)
USAGE = Usage(10, 5, 3, 4, 1, ("cache_beside_input", "reasoning_beside_output"))
COUNTS = {
    "input_tokens": 15,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "output_tokens": 8,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 23,
}
BLOCKS: list[Block] = [
    ThinkingBlock("a plan", signature="theirs"),
    Text("an answer", carriers=SIGNED),
    ToolCall("c1", "f", '{"a": 1}'),
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


def shown(blocks: Sequence[Block] = (), **fields: Any) -> Shown:
    """How it is shown while these blocks come."""
    known = dict(enumerate(blocks))
    return Shown("resp-1", "asked-for", 7, state=state, block=known.get, **fields)


def result(*blocks: Block, outcome: Outcome = "answered", usage: Usage | None = None) -> ReadResult:
    """A response."""
    return ReadResult(Response(ORIGIN, outcome=outcome), blocks, usage)


def events(stream: bytes) -> list[dict[str, Any]]:
    """What the events of a stream say; each has its type as its name, and they are numbered."""
    found: list[dict[str, Any]] = []
    for event in stream.decode().split("\n\n")[:-1]:
        name, data = event.split("\n")
        said = json.loads(data.removeprefix("data: "))
        assert (f"event: {said['type']}", len(found)) == (name, said.pop("sequence_number"))
        found.append(said)
    return found


def message(number: int, *content: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    """A message item."""
    head = {"id": f"msg_resp-1_{number}", "type": "message", "status": status, "role": "assistant"}
    return {**head, "content": list(content)}


def thought(number: int, text: str = "", **fields: Any) -> dict[str, Any]:
    """A reasoning item."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"id": f"rs_resp-1_{number}", "type": "reasoning", "summary": summary, **fields}


def call(number: int, id: str, name: str, arguments: str, status: str = "completed") -> dict[str, Any]:
    """A function call item."""
    head = {"id": f"fc_resp-1_{number}", "type": "function_call", "status": status}
    return {**head, "call_id": id, "name": name, "arguments": arguments}


def said(text: str) -> dict[str, Any]:
    """The part of a message."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


OUTPUT = [
    thought(0, "a plan", encrypted_content="tb1.thinking"),
    message(1, said("an answer")),
    thought(2, encrypted_content="tb1.text"),
    call(3, "c1", "f", '{"a": 1}'),
    call(4, "call_resp-1_3", "g", "{}"),
]


def test_a_stream_has_one_item_after_another() -> None:
    """Each item begins, has the events of its text, and is told whole; the last event has them all."""
    writer = Writer(shown(BLOCKS))
    stream = events(
        writer.begin() + writer.show(DELTAS) + writer.end(result(*BLOCKS, outcome="tool_calls", usage=USAGE))
    )

    opened, closed = stream[0]["response"], stream[-1]["response"]
    assert ["response.created", "response.in_progress"] == [event["type"] for event in stream[:2]]
    assert ("in_progress", [], None) == (opened["status"], opened["output"], opened["usage"])
    ends = {"status": "completed", "completed_at": 7, "output": OUTPUT, "usage": COUNTS}
    assert (None, {**opened, **ends}) == (opened["completed_at"], closed)
    summary = {"item_id": "rs_resp-1_0", "output_index": 0, "summary_index": 0}
    content = {"item_id": "msg_resp-1_1", "output_index": 1, "content_index": 0}
    arguments = {"item_id": "fc_resp-1_3", "output_index": 3}
    others = {"item_id": "fc_resp-1_4", "output_index": 4}
    parts: list[Any] = [
        *wrapped(
            thought(0),
            OUTPUT[0],
            {"type": "reasoning_summary_part.added", **summary, "part": {"type": "summary_text", "text": ""}},
            {"type": "reasoning_summary_text.delta", **summary, "delta": "a "},
            {"type": "reasoning_summary_text.delta", **summary, "delta": "plan"},
            {"type": "reasoning_summary_text.done", **summary, "text": "a plan"},
            {"type": "reasoning_summary_part.done", **summary, "part": {"type": "summary_text", "text": "a plan"}},
        ),
        *wrapped(
            message(1, status="in_progress"),
            OUTPUT[1],
            {"type": "content_part.added", **content, "part": said("")},
            {"type": "output_text.delta", **content, "logprobs": [], "delta": "an answer"},
            {"type": "output_text.done", **content, "logprobs": [], "text": "an answer"},
            {"type": "content_part.done", **content, "part": said("an answer")},
        ),
        *wrapped(thought(2), OUTPUT[2]),
        *wrapped(
            call(3, "c1", "f", "", "in_progress"),
            OUTPUT[3],
            {"type": "function_call_arguments.delta", **arguments, "delta": '{"a"'},
            {"type": "function_call_arguments.delta", **arguments, "delta": ": 1}"},
            {"type": "function_call_arguments.done", **arguments, "arguments": '{"a": 1}'},
        ),
        *wrapped(
            call(4, "call_resp-1_3", "g", "", "in_progress"),
            OUTPUT[4],
            {"type": "function_call_arguments.delta", **others, "delta": "{}"},
            {"type": "function_call_arguments.done", **others, "arguments": "{}"},
        ),
    ]
    assert [{**part, "type": f"response.{part['type']}"} for part in parts] == stream[2:-1]


def wrapped(begun: dict[str, Any], done: dict[str, Any], *parts: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of an item."""
    number = int(done["id"].rpartition("_")[2])
    return [
        {"type": "output_item.added", "output_index": number, "item": begun},
        *parts,
        {"type": "output_item.done", "output_index": number, "item": done},
    ]


def test_a_whole_response_never_ends_in_reasoning() -> None:
    """The state that is left stands in front of the last item; one that is all there is stands alone."""
    response = json.loads(write_response(result(*BLOCKS[:2], usage=USAGE), shown()))

    kept = thought(2, encrypted_content="tb1.text")
    assert [OUTPUT[0], kept, OUTPUT[1]] == response["output"]
    assert ("response", 7, "asked-for", COUNTS) == tuple(
        response[name] for name in ("object", "created_at", "model", "usage")
    )
    lonely = json.loads(write_response(result(Unknown("{}", SIGNED)), shown()))
    assert [thought(0, encrypted_content="tb1.unknown")] == lonely["output"]
    between = json.loads(write_response(result(*BLOCKS[1:3]), shown()))
    assert ["message", "reasoning", "function_call"] == [item["type"] for item in between["output"]]


def test_reasoning_that_is_not_shown_leaves_its_state() -> None:
    """The item begins when the reasoning does, and has no summary."""
    blocks = [BLOCKS[0], Text("an answer")]
    writer = Writer(shown(blocks, reasoning=False))
    stream = events(writer.begin() + writer.show(DELTAS[:2]) + writer.show(DELTAS[2:3]) + writer.end(result(*blocks)))

    kept = thought(0, encrypted_content="tb1.thinking")
    assert [
        {"type": "response.output_item.added", "output_index": 0, "item": thought(0)},
        {"type": "response.output_item.done", "output_index": 0, "item": kept},
    ] == stream[2:4]
    assert [kept, message(1, said("an answer"))] == stream[-1]["response"]["output"]


def test_a_refusal_and_a_custom_call_have_events_of_their_own() -> None:
    """What kind of item it is, its block says."""
    blocks: list[Block] = [Text("no", "refusal"), ToolCall("c1", "shell", "ls", source_field="custom_tool_call")]
    writer = Writer(shown(blocks))
    deltas: list[Delta] = [
        TextDelta("n", 0),
        TextDelta("o", 0),
        ToolCallDelta(1, "c1", "shell", "l"),
        ToolCallDelta(1, arguments="s"),
    ]
    stream = events(writer.begin() + writer.show(deltas) + writer.end(result(*blocks, outcome="refused")))

    head = {"id": "ctc_resp-1_1", "type": "custom_tool_call", "status": "completed"}
    output = [
        message(0, {"type": "refusal", "refusal": "no"}),
        {**head, "call_id": "c1", "name": "shell", "input": "ls"},
    ]
    assert output == stream[-1]["response"]["output"]
    assert "completed" == stream[-1]["response"]["status"]
    names = ["refusal.delta", "refusal.done", "custom_tool_call_input.delta", "custom_tool_call_input.done"]
    assert [{f"response.{name}"} & {event["type"] for event in stream} for name in names] == [
        {f"response.{name}"} for name in names
    ]
    assert output == json.loads(write_response(result(*blocks), shown()))["output"]


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        ("answered", "completed", None),
        ("tool_calls", "completed", None),
        ("empty", "completed", None),
        ("max_tokens", "incomplete", "max_output_tokens"),
        ("max_tokens_in_reasoning", "incomplete", "max_output_tokens"),
        ("paused", "incomplete", "max_output_tokens"),
        ("safety", "incomplete", "content_filter"),
        ("refused", "incomplete", "content_filter"),
    ],
)
def test_how_a_response_ended_is_said_in_words_of_this_dialect(
    outcome: Outcome, status: str, reason: str | None
) -> None:
    """In a stream, whose last event has that name, and in a whole response; what was cut is no whole item."""
    ended = result(Text("a"), Text("b"), outcome=outcome)
    writer = Writer(shown())
    writer.begin()
    last = json.loads(writer.end(ended).split(b"data: ")[-1])

    assert f"response.{status}" == last["type"]
    for response in (last["response"], json.loads(write_response(ended, shown()))):
        assert (status, reason) == (response["status"], (response["incomplete_details"] or {}).get("reason"))
        states = ["completed", "incomplete" if outcome.startswith("max_tokens") else "completed"]
        assert states == [item["status"] for item in response["output"]]


def test_a_response_repeats_what_its_request_said() -> None:
    """Members of the request that a response has, in full, and what is usual where it said nothing."""
    schema = {"type": "json_schema", "name": "n", "schema": {}}
    function, search = {"type": "function", "name": "f"}, {"type": "web_search"}
    request: dict[str, Any] = {"model": "m", "input": "?", "tools": [function, search, 1], "store": False, "user": None}
    request |= {"text": {"format": schema}, "reasoning": {"effort": "low"}}
    response = json.loads(write_response(result(), shown(request=request, now=lambda: 9)))

    in_full = {**function, "description": None, "parameters": None, "strict": None}
    assert ([in_full, search, 1], False, None) == (response["tools"], response["store"], response["user"])
    assert {"format": {**schema, "description": None, "strict": False}} == response["text"]
    assert ({"effort": "low", "summary": None}, 9) == (response["reasoning"], response["completed_at"])
    assert ("auto", True, "asked-for") == (response["tool_choice"], response["parallel_tool_calls"], response["model"])
    assert {"input"} == request.keys() - response.keys()
    odd = {"text": "odd", "tools": "odd", "reasoning": "odd"}
    assert odd.items() <= json.loads(write_response(result(), shown(request=odd))).items()


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (Problem(400, "m"), "invalid_prompt"),
        (Problem(429, "m"), "rate_limit_exceeded"),
        (Problem(502, "\ud83d", code="rate_limit_exceeded"), "rate_limit_exceeded"),
        (Problem(529, "m", code="overloaded"), "server_error"),
    ],
)
def test_a_stream_that_fails_leaves_its_item_open(problem: Problem, code: str) -> None:
    """Half a call is not told as a whole one, and the error is that of the response."""
    writer = Writer(shown(BLOCKS))
    stream = events(writer.begin() + writer.show(DELTAS[:4]) + writer.fail(problem))

    assert "response.failed" == stream[-1]["type"]
    failed = stream[-1]["response"]
    assert ("failed", {"code": code, "message": problem.message}) == (failed["status"], failed["error"])
    assert OUTPUT[:3] == failed["output"]


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (Problem(400, "m", param="model"), ("invalid_request_error", "model", None)),
        (Problem(404, "m", code="model_not_found"), ("not_found_error", None, "model_not_found")),
        (Problem(529, "m", "overloaded_error"), ("server_error", None, "overloaded_error")),
    ],
)
def test_an_error_has_the_words_of_the_dialect(problem: Problem, expected: tuple[str, str | None, str | None]) -> None:
    """What is no type of this dialect stands as the code; a response that is not whole is its error."""
    kind, param, code = expected
    body = {"error": {"message": "m", "type": kind, "param": param, "code": code}}
    assert body == json.loads(write_error(problem))
    error = Failure("m", problem.status, problem.type, problem.code)
    failed = ReadResult(Response(ORIGIN, error=error, outcome="failed"), (), None)
    body["error"]["param"] = None
    assert body == json.loads(write_response(failed, shown()))


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
    """A stream and a whole response give it the same: texts, reasoning, calls, states and counts."""
    made = written(
        "openai-responses", reader_of(dialect, FRAMINGS[dialect]), stream_of(dialect, 60).pieces, state=state
    )
    asked: dict[str, Any] = {"model": "m", "input": "?"}
    with client(made.stream, "text/event-stream") as streams, streams.responses.stream(**asked) as stream:
        streamed: Parsed = stream.get_final_response()
    with client(made.document, "application/json") as documents:
        whole: Parsed = documents.responses.create(**asked)

    blocks = made.result.blocks
    for response in (streamed, whole):
        thoughts = [item for item in response.output if item.type == "reasoning"]
        found = [(item.name, item.arguments) for item in response.output if item.type == "function_call"]
        summaries = "".join(part.text for item in thoughts for part in item.summary)
        assert (visible(blocks), reasoning(blocks)) == (response.output_text, summaries)
        assert [call[1:] for call in calls(made.result)] == found
        opaque = any(isinstance(block, ThinkingBlock) and state([block]) for block in blocks)
        assert opaque == any(item.encrypted_content == "tb1.thinking" for item in thoughts)
        assert "completed" == response.status
    assert streamed.usage == whole.usage


def test_the_vendors_client_is_told_that_a_response_failed() -> None:
    """Behind the beginning of a stream, and in place of a response."""
    writer = Writer(shown(BLOCKS))
    stream = writer.begin() + writer.show(DELTAS[:4]) + writer.fail(Problem(529, "too busy"))
    with client(stream, "text/event-stream") as streams:
        last = list(streams.responses.create(model="m", input="?", stream=True))[-1]
    assert "response.failed" == last.type
    assert last.response.error is not None
    assert "too busy" == last.response.error.message
    body = write_error(Problem(429, "slow down"))
    with (
        client(body, "application/json", 429) as refused,
        pytest.raises(openai.RateLimitError, match="slow down"),
    ):
        refused.responses.create(model="m", input="?")
