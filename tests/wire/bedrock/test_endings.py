"""How Converse responses end: stop reasons, errors inside a stream, streams that break off, bodies that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire import event_stream
from tests.wire.bedrock.feeding import ORIGIN, STOP, body, delta, feed, read, start, stop, stream
from thinkback.model.blocks import Text
from thinkback.model.commits import Failure
from thinkback.wire.bedrock.events import read_failure
from thinkback.wire.bedrock.read import Reader

TEXT = {"text": "a"}
REASONING = {"reasoningContent": {"reasoningText": {"text": "a"}}}
CALL = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}


@pytest.mark.parametrize(
    ("finish", "content", "outcome", "complete"),
    [
        ("end_turn", [TEXT], "answered", True),
        ("stop_sequence", [TEXT], "answered", True),
        ("tool_use", [CALL], "tool_calls", True),
        ("end_turn", [REASONING], "reasoning_only", True),
        ("end_turn", [], "empty", True),
        ("max_tokens", [TEXT], "max_tokens", True),
        ("max_tokens", [REASONING], "max_tokens_in_reasoning", True),
        ("model_context_window_exceeded", [TEXT], "max_tokens", True),
        ("guardrail_intervened", [TEXT], "safety", False),
        ("content_filtered", [], "safety", False),
        ("refusal", [], "refused", False),
        ("pause_turn", [TEXT], "paused", True),
        ("malformed_tool_use", [TEXT], "failed", False),
        ("malformed_model_output", [], "failed", False),
        ("something_new", [TEXT], "answered", True),
        (None, [TEXT], "answered", True),
    ],
)
def test_a_stop_reason_says_how_it_came_out(
    finish: str | None, content: list[Any], outcome: str, complete: bool
) -> None:
    """Each reason has its outcome; what a filter stopped is not complete."""
    response = read(body(*content, finish=finish)).response

    assert (finish, outcome, complete) == (response.finish, response.outcome, response.complete)
    assert (outcome == "failed") == (response.error is not None)


@pytest.mark.parametrize(
    ("broken", "type", "message"),
    [
        (event_stream.exception("throttlingException", {"message": "Too many"}), "throttlingException", "Too many"),
        (event_stream.error("InternalError", "It broke"), "InternalError", "It broke"),
        (stream({"validationException": {"message": "No"}}), "validationException", "No"),
        (stream({"message": {}}), "", '{"message":{}}'),
        (stream(delta(0, text="b"))[:-3] + b"xyz", "malformed", "an event does not fit its checksum"),
        (event_stream.message({":event-type": "x", ":message-type": "event"}, b"{"), "malformed", "JSON"),
        (
            event_stream.message({":event-type": "x", ":message-type": "event"}, b"[" * 200 + b"]" * 200),
            "malformed",
            "depth",
        ),
    ],
)
def test_an_error_inside_a_stream_ends_it(broken: bytes, type: str, message: str) -> None:
    """What came before stays, what comes after is not read, and the provider's own words are the error."""
    response = read(stream(delta(0, text="a"), broken, delta(0, text="c"), STOP))
    error = response.response.error

    assert [Text("a", source_field="text")] == list(response.blocks)
    assert not response.response.complete
    assert error is not None
    assert type == error.type
    assert message in error.message


def test_an_exception_of_the_model_keeps_its_status_and_words() -> None:
    """Bedrock passes on what the model behind it said."""
    said = {"message": "The model failed", "originalStatusCode": 424, "originalMessage": "out of memory"}
    error = read(event_stream.exception("modelStreamErrorException", said)).response.error

    assert Failure("The model failed", 200, "modelStreamErrorException", "424", "out of memory") == error


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        stream(start(0, toolUse={"toolUseId": "a", "name": "f"})),
        stream(delta(0, text="a"), stop(0)),
        stream(delta(0, text="a"), STOP)[:-1],
    ],
)
def test_a_stream_without_its_end_is_truncated(raw: bytes) -> None:
    """Only ``messageStop`` says that a response is whole."""
    response = read(raw).response

    assert Failure("the stream ended before the response was finished", type="truncated") == response.error
    assert ("cut", False, None) == (response.outcome, response.complete, response.finish)


def test_an_event_without_its_end_is_cut_off() -> None:
    """Where text frames the events, half an event at the end is no malformed one."""
    reader = Reader(ORIGIN, "ndjson")
    reader.feed(json.dumps(delta(0, text="a")).encode() + b'\n{"contentBlock')
    reader.close()
    error = reader.result().response.error

    assert Failure("the stream ended in the middle of an event", type="truncated") == error


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"message":"Too long"}', Failure("Too long", 200)),
        (b'{"Message":"Too long"}', Failure("Too long", 200)),
        (
            b'{"__type":"com.amazon.coral#ValidationException","message":"No"}',
            Failure("No", 200, "ValidationException"),
        ),
        (
            b'{"output":{"__type":"a#UnknownOperationException"}}',
            Failure('{"__type":"a#UnknownOperationException"}', 200, "UnknownOperationException"),
        ),
        (b'{"output":{}}', Failure("the response body has no message", type="malformed")),
        (b'{"output":5}', Failure("the response body has no message", type="malformed")),
        (b'{"a":1}', Failure("the response body has no output", type="malformed")),
    ],
)
def test_a_body_that_is_no_response_is_an_error(raw: bytes, expected: Failure) -> None:
    """The provider's words if there are any."""
    assert expected == read(raw).response.error


def test_a_body_that_is_no_json_is_malformed() -> None:
    """Whatever a proxy sends instead."""
    error = feed([b"<html>"], "json")[1].response.error

    assert error is not None
    assert "malformed" == error.type


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"message": "No"}, Failure("No", 400)),
        ({"code": "ThrottlingException", "message": "No"}, Failure("No", 400, "ThrottlingException")),
        ({"errorMessage": "No"}, Failure("No", 400)),
        ({"a": 1}, Failure('{"a":1}', 400)),
        ({"__exception__": "x", "body": "No"}, Failure("No", 400, "x")),
        ("No", Failure("No", 400)),
        ([1], Failure("[1]", 400)),
    ],
)
def test_an_error_body_is_read_in_any_shape(body: Any, expected: Failure) -> None:
    """Message and type where they are found, else the body itself."""
    assert expected == read_failure(400, body)


def test_the_first_failure_stays() -> None:
    """A connection that breaks after the response failed changes nothing; one that breaks before is the error."""
    reader = Reader(ORIGIN)
    reader.feed(stream(delta(0, text="a")))
    assert reader.finish is None
    reader.fail(Failure("gone", type="network"))
    reader.fail(Failure("again", type="network"))

    assert [] == reader.feed(stream(STOP))
    assert [] == reader.close()
    assert Failure("gone", type="network") == reader.result().response.error


def test_the_finish_is_known_when_it_came() -> None:
    """Before the usage."""
    reader = Reader(ORIGIN)
    reader.feed(stream(STOP))

    assert "end_turn" == reader.finish
