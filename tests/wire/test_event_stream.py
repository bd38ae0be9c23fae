"""The binary event stream: messages in, JSON out, and what becomes of bytes that are no such messages."""

from __future__ import annotations

import itertools
import json
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import event_stream as written
from tests.wire.feeding import each_byte
from thinkback.wire.event_stream import EventStreamFramer
from thinkback.wire.framing import guess_framing

EVENT = written.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "é"}})
OTHERS = b"".join(
    [
        written.header("yes", 0, b""),
        written.header("no", 1, b""),
        written.header("byte", 2, b"\x01"),
        written.header("short", 3, b"\x01\x02"),
        written.header("int", 4, b"\x01\x02\x03\x04"),
        written.header("long", 5, b"\x01\x02\x03\x04\x05\x06\x07\x08"),
        written.header("bytes", 6, struct.pack(">H", 3) + b"\xff\x00\xff"),
        written.header("timestamp", 8, b"\x01\x02\x03\x04\x05\x06\x07\x08"),
        written.header("uuid", 9, bytes(16)),
        written.header(":message-type", 7, written.text("event")),
        written.header(":event-type", 7, written.text('a"b')),
    ]
)


def frame(pieces: list[bytes]) -> tuple[list[bytes], str]:
    """All payloads of a stream in pieces, and its fault."""
    framer = EventStreamFramer()
    found = [payload for piece in pieces for payload in framer.feed(piece)]
    return found + framer.close(), framer.fault


def lengths(total: int, headers: int) -> bytes:
    """The beginning of a message that says how long it is, with the right checksum."""
    prelude = struct.pack(">II", total, headers)
    return prelude + struct.pack(">I", zlib.crc32(prelude)) + bytes(100)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (EVENT, [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "é"}}}]),
        (EVENT + EVENT[:-1], [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "é"}}}]),
        (
            written.exception("throttlingException", {"message": "Too many requests"}),
            [{"__exception__": "throttlingException", "body": {"message": "Too many requests"}}],
        ),
        (
            written.error("InternalError", 'It "broke"'),
            [{"__exception__": "InternalError", "body": {"message": 'It "broke"'}}],
        ),
        (written.packed(OTHERS, b"[1]"), [{'a"b': [1]}]),
        (written.message({":message-type": "event", ":event-type": "ping"}), [{"ping": {}}]),
        (b"", []),
    ],
    ids=["event", "cut", "exception", "error", "headers of every type", "no payload", "nothing"],
)
def test_each_message_is_one_json_object(raw: bytes, expected: list[object]) -> None:
    """The type leads to the payload; what went wrong is marked; a message without its end is not given out."""
    whole, fault = frame([raw])

    assert expected == [json.loads(payload) for payload in whole]
    assert "" == fault
    assert (whole, fault) == frame(each_byte(raw))


def changed(raw: bytes, at: int) -> bytes:
    """``raw`` with one bit of one byte turned."""
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


@pytest.mark.parametrize(
    "broken",
    [
        changed(EVENT, 2),
        changed(EVENT, 9),
        changed(EVENT, 30),
        changed(EVENT, len(EVENT) - 10),
        changed(EVENT, len(EVENT) - 1),
        lengths(0, 0),
        lengths(20, 5),
        lengths(2**31, 0),
        lengths(2**20, 2**19),
        written.message({":event-type": "x"}),
        written.message({":message-type": "surprise"}),
        written.packed(b"\x05name", b""),
        written.packed(b"\x01a\x07\x00\x09x", b""),
        written.packed(b"\x01a\x07\x00", b""),
        written.packed(b"\x01a\x0a", b""),
        written.packed(b"\x01a\x07\x00\x01\xff", b""),
        b'{"message":"no stream at all"}',
    ],
)
def test_a_corrupt_message_ends_the_stream(broken: bytes) -> None:
    """What came before is given out, nothing after it, and the fault says why; wherever the pieces end."""
    raw = EVENT + broken + EVENT
    whole, fault = frame([raw])

    assert 1 == len(whole)
    assert "event" in fault
    assert (whole, fault) == frame(each_byte(raw))


def test_a_long_message_is_not_copied_for_every_piece_of_it() -> None:
    """A message is looked at when its length is known and when it is whole, not in between."""
    framer, raw = EventStreamFramer(), written.event("x", "y" * 5000)
    framer.feed(raw[:20])
    held = framer._held

    for at in range(20, len(raw) - 1):
        framer.feed(raw[at : at + 1])

    assert held is framer._held
    assert 1 == len(framer.feed(raw[-1:]))


def test_headers_that_never_repeat_are_not_remembered_for_ever() -> None:
    """A stream of ever new headers is read all the same, and keeps no more of them than a few."""
    framer = EventStreamFramer()
    names = [str(at) for at in range(200)]

    found = [json.loads(payload) for name in names for payload in framer.feed(written.event(name, {}))]

    assert [{name: {}} for name in names] == found
    assert len(framer._begins) < 100


def test_lengths_that_never_repeat_are_not_remembered_for_ever() -> None:
    """A stream of ever longer messages is read all the same, and keeps no more of their lengths than a few."""
    framer = EventStreamFramer()

    found = [framer.feed(written.event("x", "y" * length)) for length in range(1100)]

    assert all(len(payloads) == 1 for payloads in found)
    assert len(framer._sizes) <= 1024


@given(st.lists(st.integers(0, 3)), st.binary(max_size=40), st.lists(st.integers(0, 400)))
def test_cuts_do_not_matter(events: list[int], junk: bytes, at: list[int]) -> None:
    """Any messages with anything behind them give the same payloads and the same fault at any cuts."""
    raw = b"".join(written.event(f"type{kind}", {"n": kind}) for kind in events) + junk
    places = [0, *sorted(min(place, len(raw)) for place in at), len(raw)]
    pieces = [raw[start:end] for start, end in itertools.pairwise(places)]

    assert frame([raw]) == frame(pieces) == frame(each_byte(raw))


@pytest.mark.parametrize(("start", "expected"), [(EVENT[:1], "event-stream"), (b"", "event-stream"), (b"{", "json")])
def test_the_content_type_names_the_framing(start: bytes, expected: str) -> None:
    """A body that is plainly JSON is read as JSON, whatever its content type."""
    assert expected == guess_framing("application/vnd.amazon.eventstream", start)
