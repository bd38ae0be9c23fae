"""Events of this dialect inside the binary event stream of AWS."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.wire.anthropic.feeding import ORIGIN
from tests.wire.event_stream import event, exception
from tests.wire.feeding import each_byte
from thinkback.model.blocks import Text
from thinkback.wire.anthropic.read import Reader
from thinkback.wire.result import ReadResult

EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "four"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]


def chunk(inner: dict[str, Any]) -> bytes:
    """One message of InvokeModel's stream."""
    encoded = base64.b64encode(json.dumps(inner).encode()).decode()
    return event("chunk", {"bytes": encoded, "p": "ab"})


def read(pieces: list[bytes]) -> ReadResult:
    """What comes of a stream."""
    reader = Reader(ORIGIN, "event-stream", None, "r1")
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    return reader.result()


def test_events_in_chunks_are_read_like_any_other() -> None:
    """Whole and byte by byte."""
    raw = b"".join(map(chunk, EVENTS))
    result = read([raw])
    assert ((Text("four"),), "answered") == (result.blocks, result.response.outcome)
    assert result == read(each_byte(raw))


def test_an_exception_ends_the_response_in_the_services_words() -> None:
    """What arrived stays."""
    raw = b"".join(map(chunk, EVENTS[:3])) + exception("throttlingException", {"message": "slow down"})
    result = read([raw])
    assert result.response.error is not None
    assert ("slow down", "throttlingException") == (result.response.error.message, result.response.error.type)
    assert (Text("four"),) == result.blocks


@pytest.mark.parametrize(
    "message",
    [
        event("chunk", {"bytes": "!!"}),
        event("chunk", ["no", "object"]),
        b"\0" * 16,
    ],
    ids=["no base64", "no object", "no message"],
)
def test_what_holds_no_event_is_malformed(message: bytes) -> None:
    """The response says so."""
    error = read([chunk(EVENTS[0]), message]).response.error
    assert error is not None
    assert "malformed" == error.type


def test_other_events_and_exceptions_without_words() -> None:
    """An event that is no chunk is passed over; an exception without a text is told by its name."""
    other = event("initial-response", {})
    assert (Text("four"),) == read([other + b"".join(map(chunk, EVENTS))]).blocks
    error = read([exception("internalServerException", {})]).response.error
    assert error is not None
    assert "internalServerException" == error.message
