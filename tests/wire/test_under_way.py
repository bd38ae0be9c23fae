"""An answer that the provider has not begun is told apart from a stream that broke, in the dialects that have such."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thinkback.model.blocks import Origin
from thinkback.wire.gemini_interactions.read import Reader as InteractionsReader
from thinkback.wire.openai_responses.read import Reader as ResponsesReader
from thinkback.wire.result import UNDER_WAY

ORIGIN = Origin("d", "https://api.example.com/v1", "m")
RESPONSE: dict[str, Any] = {"id": "resp_1", "object": "response", "output": [], "status": "queued"}
INTERACTION: dict[str, Any] = {"id": "int_1", "object": "interaction", "steps": [], "status": "queued"}
STREAMS = [
    (ResponsesReader, {"type": "response.queued", "response": RESPONSE}),
    (InteractionsReader, {"event_type": "interaction.created", "interaction": INTERACTION}),
]


def failure_of(make: Any, framing: str, *pieces: bytes) -> tuple[str, str]:
    """How a response ended: the type and the code of its failure."""
    reader = make(ORIGIN, framing)
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    error = reader.result().response.error
    return (error.type, error.code)


@pytest.mark.parametrize(("make", "event"), STREAMS)
def test_a_stream_that_ends_queued_is_no_broken_one(make: Any, event: dict[str, Any]) -> None:
    """Nothing of the answer came: it waits at the provider. In the middle of an event the stream broke."""
    data = b"data: %b\n\n" % json.dumps(event).encode()
    assert (UNDER_WAY, "queued") == failure_of(make, "sse", data)
    assert "truncated" == failure_of(make, "sse", data, b'data: {"type"')[0]


@pytest.mark.parametrize(("make", "body"), [(ResponsesReader, RESPONSE), (InteractionsReader, INTERACTION)])
@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_document_says_so_too(make: Any, body: dict[str, Any], status: str) -> None:
    """Its status is the code."""
    assert (UNDER_WAY, status) == failure_of(make, "json", json.dumps({**body, "status": status}).encode())


@pytest.mark.parametrize(("make", "event"), STREAMS)
def test_a_stream_that_ends_in_progress_broke(make: Any, event: dict[str, Any]) -> None:
    """The provider was at work."""
    text = json.dumps(event).replace("queued", "in_progress")
    assert "truncated" == failure_of(make, "sse", b"data: %b\n\n" % text.encode())[0]
