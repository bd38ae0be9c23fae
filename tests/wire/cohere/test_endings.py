"""How responses of Cohere end: reasons, errors, streams that break off, bodies that are none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.cohere.feeding import BEGIN, ORIGIN, body, end, event, feed, read, stream
from thinkback.model.blocks import Text
from thinkback.model.commits import Failure
from thinkback.wire.cohere.events import read_failure
from thinkback.wire.cohere.read import Reader

TEXT = {"content": [{"type": "text", "text": "a"}]}
THOUGHT = {"content": [{"type": "thinking", "thinking": "a"}]}
CALL = {"tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
SAID = event("content-delta", 0, content={"text": "a"})


@pytest.mark.parametrize(
    ("finish", "message", "outcome", "complete"),
    [
        ("COMPLETE", TEXT, "answered", True),
        ("STOP_SEQUENCE", TEXT, "answered", True),
        ("TOOL_CALL", CALL, "tool_calls", True),
        ("COMPLETE", THOUGHT, "reasoning_only", True),
        ("COMPLETE", {}, "empty", True),
        ("MAX_TOKENS", TEXT, "max_tokens", True),
        ("MAX_TOKENS", THOUGHT, "max_tokens_in_reasoning", True),
        ("ERROR_LIMIT", TEXT, "max_tokens", True),
        ("ERROR_TOXIC", TEXT, "safety", False),
        ("ERROR", TEXT, "failed", False),
        ("TIMEOUT", TEXT, "failed", False),
        ("SOMETHING_NEW", TEXT, "answered", True),
        (None, TEXT, "answered", True),
    ],
)
def test_a_finish_reason_says_how_it_came_out(finish: str | None, message: Any, outcome: str, complete: bool) -> None:
    """Each reason has its outcome; what a filter stopped is not complete."""
    response = read(body(message, finish)).response

    assert (finish, outcome, complete) == (response.finish, response.outcome, response.complete)
    assert (outcome == "failed") == (response.error is not None)


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (end("ERROR", error="It broke"), Failure("It broke", 200)),
        ({"id": "x", "message": "No more credits"}, Failure("No more credits", 200)),
        ({"type": "error", "message": "No"}, Failure("No", 200)),
        ({"type": "error", "error": {"type": "overloaded", "message": "No"}}, Failure("No", 200, "overloaded")),
        ({"a": 1}, Failure("the response body has no message", type="malformed")),
        (b"data: [1]\n\n", Failure("a part of the response is not a JSON object of usual depth", type="malformed")),
    ],
)
def test_an_error_inside_a_stream_ends_it(broken: Any, expected: Failure) -> None:
    """What came before stays, what comes after is not read."""
    result = read(stream(BEGIN, SAID, broken, SAID, end()))

    assert (Text("a"),) == result.blocks
    assert (expected, False) == (result.response.error, result.response.complete)


@pytest.mark.parametrize(
    "raw", [b"data: [DONE]\n\n", stream(BEGIN, SAID), stream(BEGIN, SAID, {"type": "message-end"})]
)
def test_a_stream_without_its_end_is_truncated(raw: bytes) -> None:
    """Only a finish reason says that a response is whole."""
    response = read(raw).response

    assert Failure("the stream ended before the response was finished", type="truncated") == response.error
    assert ("cut", None) == (response.outcome, response.finish)


def test_an_event_without_its_end_is_cut_off() -> None:
    """Half an event at the end is no malformed one; a whole one without its blank line counts."""
    cut = read(stream(BEGIN, SAID) + b'data: {"type":"cont').response
    whole = read(stream(BEGIN, SAID, end()).rstrip(b"\n")).response

    assert Failure("the stream ended in the middle of an event", type="truncated") == cut.error
    assert whole.complete


@pytest.mark.parametrize(
    ("raw", "type", "message"),
    [
        (b'{"message":"invalid api token"}', "", "invalid api token"),
        (b'{"error":"down"}', "", "down"),
        (b'{"detail":"Not Found"}', "", "Not Found"),
        (b'{"a":1}', "malformed", "the response body has no message"),
    ],
)
def test_a_body_that_is_no_response_is_an_error(raw: bytes, type: str, message: str) -> None:
    """The provider's words if there are any."""
    error = read(raw).response.error

    assert error is not None
    assert (type, message) == (error.type, error.message)


def test_a_body_that_is_no_json_is_malformed() -> None:
    """Whatever a proxy sends instead."""
    error = feed([b"<html>"], "json")[1].response.error

    assert error is not None
    assert "malformed" == error.type


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"id": "x", "message": "No"}, Failure("No", 400)),
        ({"error": {"message": "No", "type": "t", "code": 5}}, Failure("No", 400, "t", "5")),
        ({"data": "x"}, Failure('{"data":"x"}', 400)),
        ("No", Failure("No", 400)),
        ([1], Failure("[1]", 400)),
    ],
)
def test_an_error_body_is_read_in_any_shape(body: Any, expected: Failure) -> None:
    """Message and type where they are found, else the body itself."""
    assert expected == read_failure(400, body)


def test_the_first_failure_stays() -> None:
    """A connection that breaks is the error; what comes after it is not read."""
    reader = Reader(ORIGIN)
    reader.feed(stream(BEGIN, SAID))
    assert reader.finish is None
    reader.fail(Failure("gone", type="network"))
    reader.fail(Failure("again", type="network"))

    assert [] == reader.feed(stream(end()))
    assert [] == reader.close()
    assert Failure("gone", type="network") == reader.result().response.error


def test_the_finish_is_known_when_it_came() -> None:
    """Before the stream is closed."""
    reader = Reader(ORIGIN)
    reader.feed(stream(end()))

    assert "COMPLETE" == reader.finish
