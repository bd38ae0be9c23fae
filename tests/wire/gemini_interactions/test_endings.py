"""How interactions end: status, errors, usage, and bodies that break off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.feeding import each_byte
from tests.wire.gemini_interactions.feeding import (
    CREATED,
    HEAD,
    ORIGIN,
    USAGE,
    body,
    completed,
    delta,
    feed,
    read,
    sse,
    start,
    stream,
)
from thinkback.model import canonical
from thinkback.model.blocks import Text
from thinkback.model.commits import Failure, Outcome, Usage
from thinkback.wire.gemini_interactions.parameters import options
from thinkback.wire.gemini_interactions.read import Reader, raw_response
from thinkback.wire.result import WantedOptions

TEXT = {"type": "model_output", "content": [{"type": "text", "text": "hi"}]}
CALL = {"type": "function_call", "id": "f1", "name": "f", "arguments": {}}
THOUGHT = {"type": "thought", "signature": "c2ln"}


@pytest.mark.parametrize(
    ("step", "status", "outcome", "complete"),
    [
        (TEXT, "completed", "answered", True),
        (CALL, "requires_action", "tool_calls", True),
        (THOUGHT, "completed", "reasoning_only", True),
        (TEXT, "incomplete", "max_tokens", True),
        (THOUGHT, "incomplete", "max_tokens_in_reasoning", True),
        (TEXT, "budget_exceeded", "max_tokens", True),
        (TEXT, "requires_continuation", "paused", True),
        (TEXT, "failed", "failed", False),
        (TEXT, "cancelled", "failed", False),
        (TEXT, "novel", "answered", True),
    ],
)
def test_a_status_is_an_outcome(step: dict[str, Any], status: str, outcome: Outcome, complete: bool) -> None:
    """Streamed and whole alike; the provider's word stays beside ours."""
    for result in (read(stream(start(0, **step), status=status)), read(body(step, status=status))):
        response = result.response
        assert (status, outcome, complete) == (response.finish, response.outcome, response.complete)
        assert complete is (response.error is None)


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_an_interaction_under_way_has_not_ended(status: str) -> None:
    """A body in the background is not complete, and has no finish."""
    response = read(body(TEXT, status=status)).response

    assert (None, "cut", False) == (response.finish, response.outcome, response.complete)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (sse(CREATED, start(0, **TEXT)), "truncated"),
        (sse(CREATED) + b'data: {"eve', "truncated"),
        (b"", "truncated"),
        (sse(CREATED, b"nonsense", completed()), "malformed"),
        (sse(b"[]", completed()), "malformed"),
        (b"{}", "malformed"),
        (b"{", "malformed"),
        (b'{"steps":' + b"[" * 200 + b"]" * 200 + b"}", "malformed"),
    ],
)
def test_a_body_that_breaks_off_or_cannot_be_read_is_a_failure(raw: bytes, kind: str) -> None:
    """Nothing raises; the error says what was wrong."""
    response = feed([raw], "json" if raw.startswith(b"{") else "sse")[1].response

    assert response.error is not None
    assert (kind, False) == (response.error.type, response.complete)


ERROR = {"code": "unavailable", "message": "overloaded"}


@pytest.mark.parametrize(
    "raw",
    [
        sse(CREATED, {"event_type": "error", "error": ERROR}, completed()),
        sse({"error": ERROR}),
        stream(status="failed").replace(
            b'"status": "failed"', b'"status": "failed", "error": ' + json.dumps(ERROR).encode()
        ),
        json.dumps({"error": ERROR}).encode(),
        body(TEXT, status="failed", error=ERROR),
    ],
)
def test_errors_are_the_providers_words(raw: bytes) -> None:
    """As an event, in the interaction, as a body with status 200."""
    response = read(raw).response

    assert Failure("overloaded", 200, code="unavailable") == response.error
    assert ("failed", False) == (response.outcome, response.complete)


def test_nothing_is_read_after_an_error() -> None:
    """The first failure stays."""
    reader = Reader(ORIGIN)
    reader.feed(sse({"event_type": "error", "error": ERROR}))
    reader.fail(Failure("reset", type="network"))

    assert [] == reader.feed(sse(delta(0, "text", text="late"))) == reader.close()
    assert "overloaded" == (reader.result().response.error or Failure("")).message


@pytest.mark.parametrize(
    "odd",
    [
        {"event_type": "novel"},
        {"event_type": "novel", "index": 0},
        {"event_type": "step.delta", "index": 0, "delta": 1},
        {"event_type": "step.stop", "index": 7},
        {"event_type": "interaction.status_update", "status": "in_progress"},
        {"event_type": "interaction.created", "interaction": 1},
        b" ",
    ],
)
def test_odd_events_do_no_harm(odd: Any) -> None:
    """What has an unexpected shape is passed over."""
    result = read(stream(odd, start(0, **TEXT)))

    assert (Text("hi"),) == result.blocks
    assert result.response.complete


def test_a_step_without_an_object_is_kept_as_an_empty_one() -> None:
    """Its deltas still have a place."""
    assert 1 == len(read(stream({"event_type": "step.start", "index": 0, "step": 1})).blocks)


def test_head_and_usage_are_read() -> None:
    """Id, served model, token counts; everything else stands in the envelope."""
    result = read(stream(start(0, **TEXT)))
    raw = raw_response(result)

    assert ("i-1", "served") == (result.response.id, result.response.origin.served_model)
    assert Usage(3, 5, 7, counted=("reasoning_beside_output",), wire=canonical.source(USAGE)) == result.usage
    assert {**HEAD, "status": "completed", "steps": [TEXT], "usage": USAGE} == raw
    bare = read(b'{"steps":[]}')
    assert bare.usage is None
    assert {"steps": []} == raw_response(bare)
    assert read(b'{"status":"completed"}').response.complete


def test_options_ask_for_a_stream_and_a_schema() -> None:
    """Usage needs no asking."""
    schema = {"type": "object"}
    form = {"type": "text", "mime_type": "application/json", "schema": schema}

    assert {} == options(WantedOptions())
    assert {"stream": True, "response_format": form} == options(WantedOptions(stream=True, schema=schema))


def test_nothing_is_read_after_an_error_that_looks_like_text() -> None:
    """An error that looks like a piece of text ends the response, wherever the pieces of the body end."""
    raw = sse({**delta(0, "text", text="a"), "event_type": "error"}, delta(0, "text", text="b"))
    deltas, result = feed([raw])

    assert (deltas, result) == feed(each_byte(raw))
    assert [] == deltas
    assert result.response.error is not None
