"""What a reader holds while it reads a long stream: the text, and nothing that grows with the number of deltas."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import pytest

from bench.dialects import DIALECTS, FRAMINGS, stream_of
from bench.readers import peak
from thinkback.model.blocks import Origin
from thinkback.model.deltas import ReasoningDelta
from thinkback.wire.registry import dialect as dialect_of

# With a quarter as many of text and the call these are 5,000 deltas.
DELTAS = 3_995
# The text in fragments and joined, some of it in wide characters. The last events of a Responses stream say all of it
# again, each item twice, and are held whole while they are read; each text of an interaction's summary is an object.
MOST = dict.fromkeys(DIALECTS, 10) | {"openai-responses": 20, "gemini-interactions": 22}
# A place in a list that grows by an eighth at a time.
SLOT = 9
# What reading costs whatever the length: the piece at hand with its events and deltas, the beginnings of blocks.
AROUND = 200_000


@pytest.mark.covers(False)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_peak_is_a_small_multiple_of_the_text(dialect: str) -> None:
    """5,000 deltas need a few times the bytes of their text, and no more per byte than a tenth of them do."""
    small, large = stream_of(dialect, DELTAS // 10), stream_of(dialect, DELTAS)
    peak(dialect, small)  # imports and caches are not the stream's

    few, many = peak(dialect, small) / small.text_bytes, peak(dialect, large) / large.text_bytes

    assert large.chunks > 4_950
    assert many < MOST[dialect]
    assert many < 1.25 * few


@pytest.mark.covers(False)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_a_delta_nothing_is_kept_but_its_text(dialect: str) -> None:
    """In the middle of a stream there is a string for each delta, and no other object."""
    pieces = stream_of(dialect, DELTAS).pieces
    reader = dialect_of(dialect).reader(Origin(dialect, "https://api.example.org", "m"), FRAMINGS[dialect], None, "r")
    count = strings = 0
    gc.collect()
    tracemalloc.start()
    try:
        for piece in pieces[: len(pieces) // 2]:
            texts = [delta.text for delta in reader.feed(piece) if isinstance(delta, ReasoningDelta)]
            count += len(texts)
            strings += sum(map(sys.getsizeof, texts))
            del texts
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert count > DELTAS // 4
    assert kept < strings + SLOT * count + AROUND
