"""Every response reader before whatever a network can bring: it gives deltas, a result and a failure, and nothing else.

The laws of each dialect are beside it; these hold of all of them, and none may be left out.
"""

from __future__ import annotations

import gc
import random
import tracemalloc
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.dialects import DIALECTS, FRAMINGS, stream_of
from tests.fuzz.damage import damaged_streams, each_damage, shape_of, streamed, values_of
from tests.wire.feeding import check, cuts, each_byte
from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure
from thinkback.model.deltas import Delta
from thinkback.wire.framing import FRAMERS, Framing
from thinkback.wire.registry import PACKAGES
from thinkback.wire.registry import dialect as dialect_of
from thinkback.wire.result import ReadResult

each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
MUCH = 200_000
PRELUDE = bytes.fromhex("0100000000000010b43fcf93")


def feed(dialect: str, framing: Framing, pieces: list[bytes]) -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body in pieces."""
    reader = dialect_of(dialect).reader(Origin(dialect, "https://api.example.org", "m"), framing, None, "r1")
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.close()
    return deltas, reader.result()


def holds(dialect: str, framing: Framing, raw: bytes, seed: int) -> ReadResult:
    """The result of ``raw`` after what must hold of it, whatever it is."""
    deltas, result = feed(dialect, framing, [raw])

    assert (deltas, result) == feed(dialect, framing, each_byte(raw)) == feed(dialect, framing, cuts(raw, seed, 99))
    assert isinstance(result, ReadResult)
    assert all(isinstance(delta, get_args(Delta)) for delta in deltas)
    assert result.response.error is None or isinstance(result.response.error, Failure)
    # What a Responses item is in the end may differ from what was streamed of it, and then it counts.
    if dialect != "openai-responses":
        check(deltas, result)
    dialect_of(dialect).raw_response(result)
    return result


def test_no_dialect_is_left_out() -> None:
    """These laws are told of every dialect that there is."""
    assert set(PACKAGES) == set(DIALECTS)


@each_dialect
def test_one_value_of_another_type_is_read(dialect: str) -> None:
    """Every value of every sort of event, replaced by one of each type, with the rest of the stream around it."""
    events = values_of(dialect)
    sorts = {shape_of(event): at for at, event in enumerate(events)}
    for at in sorts.values():
        event = events[at]
        head, rest = streamed(dialect, events[:at]), streamed(dialect, events[at + 1 :])
        for damage in each_damage(event):
            broken = streamed(dialect, [damage])
            whole = feed(dialect, FRAMINGS[dialect], [head + broken + rest])

            assert whole == feed(dialect, FRAMINGS[dialect], [head, broken, rest])
            dialect_of(dialect).raw_response(whole[1])


@each_dialect
@pytest.mark.parametrize("key", ["choice", "message", "content", "usage", "error", "candidate", "envelope", "logprobs"])
def test_a_key_that_means_something_here_is_only_a_key_there(dialect: str, key: str) -> None:
    """Beside the events' own keys there is another with a number in it; nothing raises."""
    events = [{**event, key: 7} for event in values_of(dialect)]

    dialect_of(dialect).raw_response(feed(dialect, FRAMINGS[dialect], [streamed(dialect, events)])[1])


@each_dialect
@given(st.data(), st.integers(0, 2**16))
def test_damaged_events_are_read_the_same_at_any_cut(dialect: str, data: st.DataObject, seed: int) -> None:
    """Values of any type in any place of an event, in any order: nothing raises, and deltas and blocks agree."""
    raw = data.draw(damaged_streams(dialect))

    holds(dialect, FRAMINGS[dialect], raw, seed)


@each_dialect
@given(st.integers(0, 10**6), st.integers(0, 40), st.binary(max_size=20), st.integers(0, 2**16))
def test_damaged_bytes_are_read_the_same_at_any_cut(dialect: str, at: int, gone: int, new: bytes, seed: int) -> None:
    """Bytes cut out of a stream and others put in their place."""
    raw = streamed(dialect, values_of(dialect)[:4])
    at %= len(raw)

    holds(dialect, FRAMINGS[dialect], raw[:at] + new + raw[at + gone :], seed)


@each_dialect
@pytest.mark.parametrize("framing", FRAMERS)
@given(st.binary(max_size=80) | st.text('{}[]":,\\n\r\n daté\u2028', max_size=80).map(str.encode), st.integers(0, 99))
@settings(max_examples=30)
def test_any_bytes_in_any_framing_give_a_result(dialect: str, framing: Framing, raw: bytes, seed: int) -> None:
    """Whatever the framing was guessed to be, the body is read, and said to be incomplete if it has no words."""
    holds(dialect, framing, raw, seed)


GARBAGE: dict[str, bytes] = {
    "noise": random.Random(1).randbytes(MUCH),
    "one line": b"data: " + b"x" * MUCH,
    "ends of lines": b"\r\n" * (MUCH // 2),
    "carriage returns": b"\r" * MUCH,
    "comments": b": ping\n\n" * (MUCH // 8),
    "empty objects": b"data: {}\n\n" * (MUCH // 10),
    "unknown events": b'data: {"type":"novel","index":0,"x":[1]}\n\n' * (MUCH // 43),
    "lines": b'{"x":1}\n' * (MUCH // 8),
    "lines of two": b"xx\n" * (MUCH // 3),
    "brackets": b"[" * MUCH,
    "a text without an end": b'{"a":"' + b"\\" * MUCH,
    "a message of 16 MB": PRELUDE + bytes(MUCH),
}


@pytest.fixture(scope="module")
def old_objects_are_settled() -> None:
    """What other tests of this process left is not looked through again for each memory that is measured."""
    gc.collect()
    gc.freeze()


@each_dialect
@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.usefixtures("old_objects_are_settled")
def test_garbage_is_not_hoarded(dialect: str, kind: str) -> None:
    """200 KB of it in pieces of 500 bytes: what is held stays below a small multiple of what came."""
    raw = GARBAGE[kind]
    pieces = [raw[at : at + 500] for at in range(0, len(raw), 500)]
    feed(dialect, FRAMINGS[dialect], pieces[:9])
    gc.collect()
    tracemalloc.start()
    try:
        feed(dialect, FRAMINGS[dialect], pieces)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert held < 5 * MUCH


@each_dialect
def test_a_stream_that_ends_anywhere_is_incomplete_or_whole(dialect: str) -> None:
    """Cut off after each of its bytes: a result each time, complete only once the provider had said why it stops."""
    raw = stream_of(dialect, 1).body
    complete: list[Any] = [
        feed(dialect, FRAMINGS[dialect], [raw[:end]])[1].response.complete for end in range(0, len(raw), 7)
    ]

    assert complete == sorted(complete)
    assert feed(dialect, FRAMINGS[dialect], [raw])[1].response.complete
