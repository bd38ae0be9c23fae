"""Ingest by dialect: bytes to deltas and blocks, against a bare typed decode of the same bytes; and what it holds."""

from __future__ import annotations

import gc
import os
import tracemalloc
from functools import cache, partial
from pathlib import Path

import msgspec

from bench.bare import checked, decoder
from bench.dialects import DIALECTS, FRAMINGS, stream_of
from bench.measure import Figure, Group, interleaved, timed
from bench.streams import PIECE, Stream
from thinkback.model.blocks import Origin, Text, ThinkingBlock, ToolCall
from thinkback.wire.registry import dialect as dialect_of
from thinkback.wire.result import ReadResult

# With a quarter as many of text and the call these are 20,000 deltas.
DELTAS = 15_983
_MOST = 3.0


def read(dialect: str, pieces: list[bytes]) -> ReadResult:
    """The subject: the pieces of a body through the dialect's reader."""
    origin = Origin(dialect, "https://api.example.org", "model")
    reader = dialect_of(dialect).reader(origin, FRAMINGS[dialect], None, "response")
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    return reader.result()


def check(dialect: str, given: Stream) -> None:
    """The reader gives back what the model said; a fast wrong answer is no figure."""
    result = read(dialect, given.pieces)
    thoughts = [block.thought for block in result.blocks if isinstance(block, ThinkingBlock)]
    texts = [block.text for block in result.blocks if isinstance(block, Text)]
    calls = [block.arguments for block in result.blocks if isinstance(block, ToolCall)]
    assert result.response.complete
    assert (given.reasoning, given.text) == ("".join(thoughts), "".join(texts))
    assert msgspec.json.decode(given.arguments) == msgspec.json.decode("".join(calls))


def _reader(dialect: str, quick: bool) -> Figure:
    given = stream_of(dialect, DELTAS // 8 if quick else DELTAS)
    check(dialect, given)
    return _compared(f"readers.{dialect}", dialect, given.body, given.chunks, 7 if quick else 15)


def _compared(name: str, dialect: str, body: bytes, chunks: int, rounds: int) -> Figure:
    pieces = [body[at : at + PIECE] for at in range(0, len(body), PIECE)]
    bare = decoder(dialect)
    sums = (lambda: checked(body)) if FRAMINGS[dialect] == "event-stream" else (lambda: None)
    samples = interleaved(
        {
            "sums": timed(sums),
            "pieces": timed(lambda: read(dialect, pieces)),
            "whole": timed(lambda: read(dialect, [body])),
            "bare": timed(lambda: bare(body)),
        },
        rounds,
    )
    ratio, whole = samples.ratio("pieces", "bare"), samples.ratio("whole", "bare")
    with_sums = samples.median("pieces") / (samples.median("bare") + samples.median("sums"))
    note = f"; {with_sums:.2f}x with checksums on both sides" if FRAMINGS[dialect] == "event-stream" else ""
    return Figure(
        name,
        samples.median("pieces") / chunks * 1e6,
        "us/chunk",
        ratio.value,
        {},
        f"<= {_MOST:.0f}x split + typed decode",
        ratio.value <= _MOST,
        ratio.noise,
        f"{chunks} chunks of {len(body) // chunks} B in pieces of 16 KiB; in one piece {whole.value:.2f}x; "
        f"framing on both sides; split + decode alone {samples.median('bare') / chunks * 1e6:.2f} us/chunk{note}",
    )


@cache
def _largest() -> dict[str, bytes]:
    """The largest recorded stream of each dialect, if THINKBACK_CORPUS names the recordings."""
    from tests.exchanges import exchanges

    found: dict[str, bytes] = {}
    for exchange in exchanges():
        response, dialect = exchange.data["response"], exchange.data["dialect"]
        if ("raw" in response or "frames" in response) and len(exchange.body) > len(found.get(dialect, b"")):
            found[dialect] = exchange.body
    return found


def _recorded(dialect: str, quick: bool) -> Figure:
    name = f"recorded.{dialect}"
    if not Path(os.environ.get("THINKBACK_CORPUS") or "/nonexistent").is_dir():
        return Figure(name, None, "us/chunk", note="no recordings: THINKBACK_CORPUS is not set")
    body = _largest()[dialect]
    return _compared(name, dialect, body, decoder(dialect)(body), 7 if quick else 25)


def peak(dialect: str, given: Stream) -> int:
    """The traced peak of reading a stream, in bytes over what was there before it."""
    pieces = given.pieces
    gc.collect()
    tracemalloc.start()
    try:
        read(dialect, pieces)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _memory(dialect: str, quick: bool) -> Figure:
    small, large = (stream_of(dialect, deltas) for deltas in (DELTAS // 10, DELTAS // 2 if quick else DELTAS))
    peak(dialect, small)  # imports and caches are not the stream's
    first, second = (peak(dialect, given) / given.text_bytes for given in (small, large))
    return Figure(
        f"readers.memory.{dialect}",
        second,
        "x text",
        None,
        {},
        "O(text): peak / text grows by <= 1.25x",
        second <= 1.25 * first,
        None,
        f"traced peak / UTF-8 bytes of the text: {first:.1f} at {small.text_bytes / 1e3:.0f} kB, "
        f"{second:.1f} at {large.text_bytes / 1e3:.0f} kB of text in {large.chunks} chunks "
        f"({len(large.body) / 1e6:.1f} MB of stream)",
    )


GROUP = Group(
    "readers",
    (
        *(partial(_reader, dialect) for dialect in DIALECTS),
        *(partial(_recorded, dialect) for dialect in DIALECTS),
        *(partial(_memory, dialect) for dialect in DIALECTS),
    ),
)
