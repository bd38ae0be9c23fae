"""Opaque values changed in messages and their events, and where a stream of those ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire import opaque, recorded
from tests.wire.anthropic.feeding import START, STOP, body, ending, feed, signature, sse, text
from thinkback.wire.anthropic.front import ends, rewrite

DIALECT = "anthropic"
CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "a", "signature": "s0"},
    {"type": "redacted_thinking", "data": "s1"},
    {"type": "compaction", "content": None, "encrypted_content": "s2", "signature": "s3"},
    {"type": "tool_use", "id": "signature", "name": "data", "input": {"signature": "x", "data": "y"}},
    {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "encrypted_content": "z"}]},
]
WHOLE = ["s0", "s1", "s2", "s3"]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    ("payload", "found"),
    [
        ({"type": "message", "signature": "x", "content": CONTENT}, WHOLE),
        ({"type": "message_start", "message": {"content": CONTENT, "data": "x"}}, WHOLE),
        ({"type": "content_block_start", "index": 0, "content_block": CONTENT[2]}, ["s2", "s3"]),
        ({"type": "content_block_start", "index": 0, "content_block": CONTENT[1]}, ["s1"]),
        (signature("s4"), ["s4"]),
        ({"type": "content_block_delta", "delta": {"type": "compaction_delta", "encrypted_content": "s5"}}, ["s5"]),
        ({"type": "content_block_delta", "delta": {"input": {"signature": "x"}}}, []),
    ],
)
def test_each_opaque_value_is_changed_and_no_other_byte(
    payload: dict[str, Any], found: list[str], indent: int | None
) -> None:
    """What is no value of the provider's reasoning stays, whatever its key, and so does the form of the document."""
    opaque.check(rewrite, json.dumps(payload, indent=indent).encode(), found)


@pytest.mark.parametrize(
    "event", [text('about "signature": "x"'), {"content_block": {"type": "thinking", "signature": "", "data": None}}]
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
    if not recorded.is_refused(recorded_exchange) and framing in ("sse", "json"):
        opaque.check_body(rewrite, recorded_exchange.body, lambda raw: feed([raw], framing)[1], framing)


def test_the_end_of_a_stream_is_its_last_event() -> None:
    """The event is found with its name, without it, and with other line ends, and nowhere else."""
    stop = sse(STOP)
    before = sse(START, text("event: message_stop\n\ndata: {}"), ending()[0])

    assert len(before) == ends(before + stop)
    assert 0 == ends(stop) == ends(b"event: message_stop\n")
    assert 18 == ends(b'data: {"a": "b"}\r\rdata: {"type" : "message_stop"}\r\r')
    assert 5 == ends(b": \n\r\nevent: message_stop\r\ndata: {}\r\n\r\n")
    assert -1 == ends(before) == ends(b"") == ends(body(CONTENT[0]))
