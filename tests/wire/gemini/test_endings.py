"""How responses end: finish reasons, blocks, errors, usage, and bodies that break off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.feeding import each_byte
from tests.wire.gemini.feeding import ORIGIN, body, chunk, feed, read, sse, stream
from thinkback.model import canonical
from thinkback.model.blocks import Text
from thinkback.model.commits import Failure, Outcome, Usage
from thinkback.wire.gemini.chunks import read_usage
from thinkback.wire.gemini.parameters import options
from thinkback.wire.gemini.read import Reader, raw_response
from thinkback.wire.google import read_failure
from thinkback.wire.result import WantedOptions

CALL = {"functionCall": {"name": "f", "args": {}}}
THOUGHT = {"text": "why", "thought": True}
COUNTS = {
    "promptTokenCount": 3,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 7,
    "cachedContentTokenCount": 2,
    "totalTokenCount": 15,
}


@pytest.mark.parametrize(
    ("part", "finish", "outcome", "complete"),
    [
        ({"text": "a"}, "STOP", "answered", True),
        (CALL, "STOP", "tool_calls", True),
        ({"text": "a"}, "MAX_TOKENS", "max_tokens", True),
        (THOUGHT, "MAX_TOKENS", "max_tokens_in_reasoning", True),
        (THOUGHT, "STOP", "reasoning_only", True),
        ({"text": ""}, "STOP", "empty", True),
        ({"text": "a"}, "CONTINUATION", "paused", True),
        ({"text": "a"}, "SAFETY", "safety", False),
        ({"text": "a"}, "IMAGE_SAFETY", "safety", False),
        (CALL, "PROHIBITED_CONTENT", "safety", False),
        (CALL, "MALFORMED_FUNCTION_CALL", "failed", False),
        ({"text": "a"}, "OTHER", "failed", False),
        ({"text": "a"}, "SOMETHING_NEW", "answered", True),
    ],
)
def test_a_finish_reason_is_an_outcome(part: dict[str, Any], finish: str, outcome: Outcome, complete: bool) -> None:
    """Streamed and whole alike; the provider's word stays beside ours."""
    for result in (read(stream(part, finish=finish)), read(body(part, finish=finish))):
        response = result.response
        assert (finish, outcome, complete) == (response.finish, response.outcome, response.complete)
        assert complete or finish in ("SAFETY", "IMAGE_SAFETY", "PROHIBITED_CONTENT") or response.error is not None


def test_a_fault_says_what_the_provider_said() -> None:
    """The message of a finish reason that is a fault goes into the error."""
    ended = chunk(finish="UNEXPECTED_TOOL_CALL")
    ended["candidates"][0]["finishMessage"] = "no tool was enabled"
    error = read(sse(ended)).response.error

    said = "the response ended with UNEXPECTED_TOOL_CALL: no tool was enabled"
    assert Failure(said, type="error", code="UNEXPECTED_TOOL_CALL") == error


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        ({"blockReason": "SAFETY"}, "the prompt was blocked: SAFETY"),
        ({"blockReason": "OTHER", "blockReasonMessage": "no"}, "the prompt was blocked: OTHER (no)"),
    ],
)
def test_a_blocked_prompt_is_named(feedback: dict[str, Any], message: str) -> None:
    """There is no candidate: the outcome is safety, and the error says why."""
    blocked = {"promptFeedback": feedback, "usageMetadata": COUNTS, "modelVersion": "served"}
    for raw in (sse(blocked), json.dumps(blocked).encode()):
        response = read(raw).response
        assert ("safety", False, None) == (response.outcome, response.complete, response.finish)
        assert Failure(message, type="blocked", code=feedback["blockReason"]) == response.error
        assert blocked == raw_response(read(raw))


def test_feedback_without_a_reason_blocks_nothing() -> None:
    """Ratings of the prompt are only kept."""
    assert read(sse(chunk({"text": "a"}, finish="STOP", promptFeedback={"safetyRatings": []}))).response.complete


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (sse(chunk({"text": "a"})), "the stream ended before the response was finished"),
        (sse(chunk({"text": "a"})) + b'data: {"cand', "the stream ended in the middle of an event"),
        (b"", "the stream ended before the response was finished"),
        (json.dumps([chunk({"text": "a"})]).encode(), "the stream ended before the response was finished"),
    ],
)
def test_a_stream_without_a_finish_reason_is_cut(raw: bytes, message: str) -> None:
    """There is no closing event: only a finish reason completes a stream, also one that is an array."""
    result = feed([raw], "json" if raw.startswith(b"[") else "sse")[1]

    assert Failure(message, type="truncated") == result.response.error
    assert ("cut", False) == (result.response.outcome, result.response.complete)


def test_an_array_of_chunks_is_read_like_the_stream() -> None:
    """Without ``alt=sse`` the chunks come as one JSON array; so may those in an event."""
    chunks = [chunk({"text": "a"}), chunk({"text": "b"}, usageMetadata=COUNTS), chunk(finish="STOP")]
    streamed = read(sse(*chunks))

    assert streamed == read(json.dumps(chunks).encode()) == read(sse(chunks))
    assert (Text("ab"),) == streamed.blocks


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (sse(b"{}"), "truncated"),
        (sse(b"nonsense", chunk(finish="STOP")), "malformed"),
        (sse(b"[1", chunk(finish="STOP")), "malformed"),
        (sse(b"[1]", chunk(finish="STOP")), "malformed"),
        (sse(b'["a', b" ", b"[DONE]"), "malformed"),
        (b"{}", "malformed"),
        (b"[{}, 1, {}]", "malformed"),
        (b'{"candidates":' + b"[" * 200 + b"]" * 200 + b"}", "malformed"),
    ],
)
def test_a_body_that_cannot_be_read_is_a_failure(raw: bytes, kind: str) -> None:
    """Nothing raises; the error says what was wrong."""
    response = read(raw).response

    assert response.error is not None
    assert (kind, False) == (response.error.type, response.complete)


@pytest.mark.parametrize(
    "odd",
    [
        {"candidates": [1, {"content": 1}]},
        {"candidates": 1},
        {"candidates": [{"content": {"parts": [1, {"text": 2}]}}]},
        {"candidates": [{"content": {"parts": {}}}], "usageMetadata": 1, "promptFeedback": 1},
        {"candidates": [{"finishReason": 1, "finishMessage": 1}], "modelVersion": 1},
        b" ",
        b"[DONE]",
    ],
)
def test_odd_chunks_do_no_harm(odd: Any) -> None:
    """What has an unexpected shape is passed over."""
    result = read(sse(odd, chunk({"text": "a"}, finish="STOP")))

    assert result.response.complete
    assert Text("a") == result.blocks[-1]


@pytest.mark.parametrize(
    ("status", "given", "failure"),
    [
        (
            400,
            {"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}},
            Failure("bad", 400, "INVALID_ARGUMENT", "400"),
        ),
        (
            200,
            [{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}],
            Failure("busy", 503, "UNAVAILABLE", "503"),
        ),
        (500, {"error": {"type": "t", "code": "c"}}, Failure('{"type":"t","code":"c"}', 500, "t", "c")),
        (502, "gateway", Failure("gateway", 502)),
        (502, [], Failure("[]", 502)),
        (404, {"error": "none"}, Failure("none", 404)),
        (404, {"message": "none"}, Failure("none", 404)),
    ],
)
def test_errors_are_the_providers_words(status: int, given: Any, failure: Failure) -> None:
    """Whatever shape the error body has."""
    assert failure == read_failure(status, given)


@pytest.mark.parametrize("wrap", [sse, lambda error: json.dumps([error]).encode(), lambda e: json.dumps(e).encode()])
def test_an_error_inside_a_response_ends_it(wrap: Any) -> None:
    """In a stream, in an array, as a body with status 200; what comes after it is not read."""
    error = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    response = read(wrap(error)).response

    assert Failure("overloaded", 503, "UNAVAILABLE", "503") == response.error
    assert ("failed", False) == (response.outcome, response.complete)
    reader = Reader(ORIGIN)
    reader.feed(sse(error))
    assert [] == reader.feed(sse(chunk({"text": "late"}))) == reader.close()


def test_the_first_failure_stays() -> None:
    """A connection that broke is what ended the response."""
    reader = Reader(ORIGIN)
    reader.feed(sse(chunk({"text": "a"})))
    reader.fail(Failure("reset", type="network"))
    reader.fail(Failure("later", type="network"))
    reader.close()

    assert ("reset", "cut") == (reader.result().response.error.message, reader.result().response.outcome)  # type: ignore[union-attr]


def test_the_last_usage_counts() -> None:
    """Counts are cumulative; thoughts are beside the output."""
    early, late = {"promptTokenCount": 3, "trafficType": True}, COUNTS
    counts = Usage(3, 5, 7, 2, counted=("reasoning_beside_output",), wire=canonical.source(late))
    fast = read(
        sse(chunk({"text": "a"}, usageMetadata=early), chunk({"text": "b"}, usageMetadata=late), chunk(finish="STOP"))
    )
    slow = read(sse(chunk(CALL, usageMetadata=early), chunk(CALL, finish="STOP", usageMetadata=late)))

    assert counts == fast.usage
    assert COUNTS == json.loads(slow.usage.wire if slow.usage else "")
    assert read(sse(chunk({"text": "a"}, finish="STOP"))).usage is None
    odd = read(sse(chunk({"text": "a"}), chunk({"text": "b"}, finish="STOP", usageMetadata=[])))
    assert odd.usage is None


def test_the_head_is_read() -> None:
    """Id and served model, also where only a later chunk says them."""
    late = {**chunk({"text": "b"}, finish="STOP"), "modelVersion": "other"}
    response = read(sse({"candidates": []}, chunk({"text": "a"}), late)).response

    assert ("r-1", "other") == (response.id, response.origin.served_model)


def test_options_ask_for_a_schema() -> None:
    """Streaming is said in the URL; a schema is a generation parameter."""
    schema = {"type": "object"}
    config = {"responseMimeType": "application/json", "responseJsonSchema": schema}

    assert {} == options(WantedOptions(stream=True))
    assert {"generationConfig": config} == options(WantedOptions(schema=schema))


def test_nothing_is_read_after_an_event_that_cannot_be_read() -> None:
    """Bytes that are no text end the response, also where the typed reading passes over them."""
    broken = b'data: {"candidates": [], "usageMetadata": {"\x80": 1}}\r\n\r\n'
    raw = broken + sse(chunk({"text": "a"}))
    deltas, result = feed([raw])

    assert (deltas, result) == feed(each_byte(raw))
    assert [] == deltas
    assert result.response.error is not None
    assert "malformed" == result.response.error.type


def test_counts_that_cannot_be_read_are_none() -> None:
    """A number that JSON does not have in the last counts that came: the text before the stream broke off is kept."""
    broken = b'data: {"candidates": [{"content": {"parts": [{"text": "b"}]}}], "usageMetadata": {"x": 1e999}}\n\n'
    result = read(sse(chunk({"text": "a"}, usageMetadata=COUNTS)) + broken)

    assert (Text("ab"),) == result.blocks
    assert Usage(counted=("reasoning_beside_output",), wire='{"x":null}') == result.usage


@pytest.mark.parametrize("source", [b"", b"{", b"[]", b"{}"])
def test_counts_that_are_no_object_are_none(source: bytes) -> None:
    """Nobody reported them."""
    assert read_usage(source) is None
