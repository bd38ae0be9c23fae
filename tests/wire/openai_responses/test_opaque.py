"""Opaque values changed in responses and their events, and where a stream of those ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire import opaque, recorded
from tests.wire.openai_responses.feeding import completed, delta, feed, reasoning, response, sse
from thinkback.wire.openai_responses.front import ends, rewrite

DIALECT = "openai-responses"
OUTPUT: list[dict[str, Any]] = [
    reasoning("a", encrypted_content="s0", signature="s1"),
    {"type": "compaction", "id": "signature", "encrypted_content": "s2"},
    {"type": "function_call", "arguments": '{"signature":"x"}', "action": {"encrypted_content": "y"}},
]
WHOLE = ["s0", "s1", "s2"]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (response(*OUTPUT, signature="x"), WHOLE),
        (completed(*OUTPUT), WHOLE),
        ({"type": "response.output_item.added", "output_index": 0, "item": OUTPUT[0]}, ["s0", "s1"]),
        ({"type": "response.output_item.done", "output_index": 0, "item": OUTPUT[1]}, ["s2"]),
        ({"type": "response.output_item.done", "output_index": 0, "item": OUTPUT[2]}, []),
    ],
)
def test_each_opaque_value_is_changed_and_no_other_byte(
    payload: dict[str, Any], found: list[str], indent: int | None
) -> None:
    """What is no value of the provider's reasoning stays, whatever its key, and so does the form of the document."""
    opaque.check(rewrite, json.dumps(payload, indent=indent).encode(), found)


@pytest.mark.parametrize(
    "event",
    [delta("output_text", 'about "signature": "x"'), {"item": {"encrypted_content": None, "signature": ""}}],
)
def test_a_payload_without_opaque_values_is_the_same_object(event: dict[str, Any]) -> None:
    """Nothing is copied where there is nothing to change."""
    payload = json.dumps(event).encode()

    assert payload is rewrite(payload, str.upper)


@pytest.mark.parametrize("payload", [b'"signature":"x"', b'[{"signature":"x"', b"[" * 9 + b'"signature":"x"'])
def test_what_is_no_event_stays_as_it_is(payload: bytes) -> None:
    """Bytes that are no JSON, and values that are deep, do not raise."""
    assert payload == rewrite(payload, str.upper)


@pytest.mark.corpus
def test_a_recorded_response_has_its_values_changed(
    recorded_exchange: Exchange, ran: Callable[[Exchange], None]
) -> None:
    """Every carrier that is read afterwards is the changed one, and values that stay change nothing."""
    ran(recorded_exchange)
    framing = recorded.framing_of(recorded_exchange)
    if not recorded.is_refused(recorded_exchange):
        opaque.check_body(rewrite, recorded_exchange.body, lambda raw: feed([raw], framing)[1], framing)


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed"])
def test_the_end_of_a_stream_is_its_last_event(status: str) -> None:
    """The event is found with its name or without it, and nowhere else."""
    last = b'data: {"sequence_number": 1, "type": "response.%b"}\n\n' % status.encode()
    before = sse(delta("output_text", f"event: response.{status}"))

    assert len(before) == ends(before + last)
    assert len(before) == ends(before + b"event: response.%b\n" % status.encode() + last + b"data: [DONE]\n\n")
    assert 0 == ends(last)
    assert -1 == ends(before) == ends(b"") == ends(b'data: {"type":"response.created"}\n\n')
