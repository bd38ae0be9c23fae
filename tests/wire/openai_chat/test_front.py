"""Chunks that only count tokens are taken out of a stream, and nothing else."""

from __future__ import annotations

import pytest

from thinkback.wire.openai_chat.front import without_counts
from thinkback.wire.registry import front

TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}'
BOTH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"total_tokens":3}}'
COUNTS = b'data: {"choices": [ ],"usage":{"total_tokens":3}}'
FIRST = b'data: {"choices":[],"prompt_filter_results":[]}'
DONE = b"data: [DONE]"


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
def test_only_the_chunk_that_is_there_for_counts_goes(end: bytes) -> None:
    """What else a chunk without choices says stays, and so do counts beside a choice."""
    events = end.join((FIRST, TEXT, BOTH, COUNTS, DONE, b""))

    assert end.join((FIRST, TEXT, BOTH, DONE, b"")) == without_counts(events)


def test_events_without_counts_are_as_they_were() -> None:
    """Nothing is looked at where there is nothing to take out."""
    events = b"\n\n".join((TEXT, DONE, b""))

    assert events is without_counts(events)
    assert (without_counts, None) == (front("openai-chat").without_counts, front("gemini").without_counts)
