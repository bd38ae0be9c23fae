"""Recorded responses of every dialect, written in each front dialect and read back."""

from __future__ import annotations

import random

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.feeding import cuts
from tests.wire.fronts import expected, is_kept, read_back, reader_of, told, written
from thinkback.wire.registry import FRONTS

# Texts with tags of reasoning in them, which mean something in chat completions.
TAGGED = ("openai--vllm-responses-api-accepts-null-metadata--e570cc-0",)


@pytest.mark.corpus
@pytest.mark.parametrize("name", FRONTS)
def test_a_recorded_response_reads_the_same_in_another_dialect(name: str, recorded_exchange: Exchange) -> None:
    """Texts, reasoning, calls, end and counts are those of the original, streamed at any cut and whole."""
    if recorded.is_refused(recorded_exchange) or recorded_exchange.id in TAGGED:
        return
    framing, seed = recorded.framing_of(recorded_exchange), random.randrange(2**32)
    print(f"cuts of seed {seed}")
    made = written(name, reader_of(recorded_exchange.data["dialect"], framing), cuts(recorded_exchange.body, seed))

    if made.result.response.error is None:
        assert expected(name, made.result, streamed=False) == told(read_back(name, made.document, "json"))
    if is_kept(made.deltas, made.result.blocks):
        assert expected(name, made.result, streamed=True) == told(read_back(name, made.stream, "sse"))
