"""How responses end: well, short, refused, with an error, or not at all; and what else they say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.openai_responses.feeding import (
    ORIGIN,
    USAGE,
    added,
    call,
    completed,
    delta,
    done,
    event,
    feed,
    message,
    read,
    read_body,
    read_deltas,
    reasoning,
    response,
    sse,
)
from thinkback.model.commits import Failure, Usage
from thinkback.wire.openai_responses.events import read_failure
from thinkback.wire.openai_responses.read import Reader, raw_response, report, transformations
from thinkback.wire.result import Report

LONG: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
FILTERED: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
REFUSAL = message(content=[{"type": "refusal", "refusal": "no"}])

# output, fields of the response, outcome, complete
ENDINGS: list[tuple[list[Any], dict[str, Any], str, bool]] = [
    ([message("a")], {}, "answered", True),
    ([reasoning("s"), call()], {}, "tool_calls", True),
    ([REFUSAL], {}, "refused", True),
    ([reasoning("s")], {}, "reasoning_only", True),
    ([], {}, "empty", True),
    ([reasoning("s")], LONG, "max_tokens_in_reasoning", True),
    ([reasoning("s"), message("a")], LONG, "max_tokens", True),
    ([message("a")], FILTERED, "safety", False),
    ([message("a")], {"status": "incomplete", "incomplete_details": None}, "answered", True),
    ([message("a")], {"status": "incomplete", "incomplete_details": {"reason": [1]}}, "answered", True),
    ([message("a")], {"status": "failed", "error": {"code": "server_error", "message": "m"}}, "failed", False),
    ([message("a")], {"status": "failed"}, "failed", False),
    ([message("a")], {"status": "cancelled"}, "failed", False),
    ([], {"status": "in_progress"}, "cut", False),
    ([message("a")], {"status": None}, "answered", True),
]


@pytest.mark.parametrize(("output", "fields", "outcome", "complete"), ENDINGS)
def test_a_response_says_how_it_came_out(
    output: list[Any], fields: dict[str, Any], outcome: str, complete: bool
) -> None:
    """Status and reason become an outcome; what failed or was filtered may not be replayed."""
    found = read_body(response(*output, **fields)).response

    assert (outcome, complete) == (found.outcome, found.complete)
    assert response(**fields)["status"] == found.finish


@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_the_closing_event_gives_the_status_that_its_response_leaves_out(status: str) -> None:
    """Servers that close with a bare event are understood."""
    reader_says = read(done(message("a")), event(status), b"[DONE]").response

    assert (status, True, "") == (reader_says.finish, reader_says.complete, reader_says.envelope)


ERRORS: list[tuple[Any, Failure]] = [
    (
        {"type": "error", "code": "rate_limit_exceeded", "message": "m", "param": None, "sequence_number": 3},
        Failure("m", 200, code="rate_limit_exceeded"),
    ),
    (
        {"type": "error", "error": {"type": "server_error", "code": None, "message": "m"}},
        Failure("m", 200, type="server_error"),
    ),
    ({"error": {"message": "m", "code": 502, "metadata": {"raw": "u"}}}, Failure("m", 200, code="502", upstream="u")),
    (
        event("failed", response=response(status="failed", error={"code": "server_error", "message": "m"})),
        Failure("m", 200, code="server_error"),
    ),
    ({"code": "invalid-argument", "error": "m"}, Failure("m", 200, code="invalid-argument")),
    ({"detail": "m"}, Failure("m", 200)),
]


@pytest.mark.parametrize(("body", "failure"), ERRORS)
def test_an_error_in_a_stream_is_the_providers_own_words(body: Any, failure: Failure) -> None:
    """Whatever its shape: what arrived stays, nothing that follows is read, and the response failed."""
    result = read(done(message("a")), body, done(message("b"), 1))

    assert failure == result.response.error
    assert (1, False, "failed") == (result.response.blocks, result.response.complete, result.response.outcome)


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ("no", Failure("no", 500)),
        (None, Failure("null", 500)),
        ({"response": {"error": {"message": "m"}}}, Failure("m", 500)),
        ([{"a": 1}], Failure('[{"a":1}]', 500)),
        ({"a": 1}, Failure('{"a":1}', 500)),
        ({"error": {"message": "m", "type": "t", "code": "c"}}, Failure("m", 500, "t", "c")),
        ({"object": "error", "message": "m", "type": "BadRequestError"}, Failure("m", 500, "BadRequestError")),
        ({"error": {"metadata": {}}}, Failure('{"metadata":{}}', 500)),
    ],
)
def test_any_error_body_gives_a_sensible_text(body: Any, failure: Failure) -> None:
    """Bodies of an HTTP error, in the shapes that hosts have, and in none."""
    assert failure == read_failure(500, body)


@pytest.mark.parametrize(
    ("raw", "type", "says"),
    [
        (b"{", "malformed", "not JSON"),
        (b'{"id":"x"}', "malformed", "no output"),
        (b'{"object":"error","type":"t","message":"m"}', "t", "m"),
        (b'{"output":' + b"[" * 200 + b"]" * 200 + b"}", "malformed", "depth"),
        (sse(b"{]", completed()), "malformed", "not JSON"),
        (sse(b"[]"), "malformed", "JSON object"),
        (sse(b" "), "truncated", "before the response was finished"),
        (sse(completed())[:-20], "truncated", "in the middle of an event"),
        (b"", "truncated", "before the response was finished"),
    ],
)
def test_a_body_that_cannot_be_read_gives_an_error_and_no_exception(raw: bytes, type: str, says: str) -> None:
    """Malformed, too deep, or cut off."""
    error = read_deltas(raw)[1].response.error

    assert error is not None
    assert type == error.type
    assert says in error.message


def test_a_sentinel_alone_ends_a_stream() -> None:
    """``[DONE]`` without a closing event is an end too, but says nothing."""
    found = read(done(message("a")), b"[DONE]").response

    assert (None, True, "answered") == (found.finish, found.complete, found.outcome)


def test_the_first_failure_stays() -> None:
    """What broke the connection is told, later ones are not."""
    reader = Reader(ORIGIN)
    reader.feed(sse(done(message("a"))))
    reader.fail(Failure("gone", type="network"))
    reader.fail(Failure("late", type="timeout"))

    assert [] == reader.feed(sse(completed())) == reader.close()
    assert reader.result().response.error == Failure("gone", type="network")
    assert (None, "cut") == (reader.finish, reader.result().response.outcome)


def test_the_envelope_keeps_what_nothing_else_has() -> None:
    """Fields of the response and beside it, the later of the same name; not output, usage or an error."""
    moved = [{"id": "rs_1", "type": "reasoning", "action": "removed", "reason": "model_mismatch"}]
    begun = {"id": "resp_1", "status": "in_progress", "model": "asked", "reasoning": {"effort": "low"}, "output": []}
    closing = {**completed(input_transformations=moved, service_tier="default"), "copilot_usage": {"n": 1.50}}
    result = read(
        event("created", response=begun), event("in_progress", response=1), added(call()), done(call()), closing
    )

    envelope = json.loads(result.response.envelope)
    assert {"effort": "low"} == envelope["reasoning"]
    assert ({"n": 1.5}, None, "default") == (envelope["copilot_usage"], envelope["error"], envelope["service_tier"])
    assert not {"output", "usage", "type", "sequence_number"} & set(envelope)
    assert ("resp_1", "served", "completed") == (
        result.response.id,
        result.response.origin.served_model,
        result.response.finish,
    )
    assert [("rs_1", "removed: model_mismatch")] == transformations(result.response.envelope)
    assert raw_response(result)["output"] == [call()]


def test_an_error_leaves_the_envelope() -> None:
    """It is told in its own place."""
    assert "error" not in json.loads(read_body(response(status="failed", error={"message": "m"})).response.envelope)


@pytest.mark.parametrize(
    ("envelope", "told"),
    [
        ("", []),
        ("{}", []),
        ('{"input_transformations":"x"}', []),
        ('{"input_transformations":[1,{"id":"a"},{"action":"kept"}]}', [("a", "changed"), ("", "kept")]),
    ],
)
def test_what_the_server_withheld_is_read_from_whatever_it_says(envelope: str, told: list[tuple[str, str]]) -> None:
    """Missing, odd and bare entries do not raise."""
    assert told == transformations(envelope)
    assert Report(tuple(told)) == report(envelope)


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        (USAGE, Usage(75, 120, 96, 5, 6, wire=json.dumps(USAGE, separators=(",", ":")))),
        (
            {"input_tokens": True, "input_tokens_details": 1},
            Usage(wire='{"input_tokens":true,"input_tokens_details":1}', invalid=("input",)),
        ),
        ({}, None),
        (None, None),
    ],
)
def test_usage_is_what_was_reported(usage: Any, found: Usage | None) -> None:
    """Reasoning is part of output, cached tokens part of input; what is no number is not reported."""
    assert found == read_body(response(usage=usage)).usage
    assert usage == raw_response(read_body(response(usage=usage)))["usage"]


def test_events_nobody_knows_change_nothing() -> None:
    """Progress of server tools, and deltas that are no text."""
    plain = [added(message()), delta("output_text", "a"), done(message("a")), completed()]
    odd = [event("web_search_call.searching", output_index=0), event("output_text.delta", delta={"x": 1}), {"a": 1}]

    assert feed([sse(*plain)]) == feed([sse(*odd, *plain)])
