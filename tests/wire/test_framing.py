"""Framing: events out of bytes, whatever the line ends and wherever the cuts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.feeding import each_byte
from thinkback.wire.framing import FRAMERS, Framing, guess_framing

BOM = b"\xef\xbb\xbf"

SSE = [
    ("one event", b"data: a\n\n", [b"a"]),
    ("several", b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    ("no space after the colon", b"data:a\n\ndata:b\n\n", [b"a", b"b"]),
    ("only one space is taken", b"data:  a\n\n", [b" a"]),
    ("several lines", b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n1}']),
    ("several lines, one without a space", b"data: a\ndata:b\n\n", [b"a\nb"]),
    ("a line without a colon", b"data\ndata: a\n\n", [b"\na"]),
    ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    ("CR", b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    ("mixed ends", b"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", [b"a", b"b", b"c"]),
    ("comments", b": keep-alive\n\n: x\ndata: a\n: y\n\n", [b"a"]),
    ("other fields", b"event: error\nid: 1\nretry: 3\ndata: a\n\n", [b"a"]),
    ("named events", b"event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", [b"1", b"2"]),
    ("named events, one without data", b"event: a\ndata: \n\nevent: b\ndata: 2\n\n", [b"2"]),
    ("a longer field name", b"database: x\n\ndata: a\n\n", [b"a"]),
    ("no data", b"event: ping\n\ndata:\n\ndata\n\ndata: a\n\n", [b"a"]),
    ("more blank lines", b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n", [b"a", b"b"]),
    ("a byte order mark", BOM + b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    ("a mark that is not at the start", b"\n\n" + BOM + b"data: a\n\ndata: b\n\n", [b"b"]),
    ("no end", b"data: a\n\ndata: b", [b"a", b"b"]),
    ("half an end", b"data: a\n\ndata: b\r", [b"a", b"b"]),
    ("nothing", b"", []),
]
NDJSON = [
    ("lines", b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
    ("CRLF and blank lines", b"1\r\n\r\n \n2\r\n", [b"1\r", b"2\r"]),
    ("no end", b"1\n2", [b"1", b"2"]),
    ("a byte order mark", BOM + b"1\n2\n", [b"1", b"2"]),
    ("a mark and no end", BOM + b"1", [b"1"]),
    ("nothing", b" ", []),
]
JSON = [
    ("a document", b'{"a":\n1}', [b'{"a":\n1}']),
    ("a byte order mark", BOM + b"{}", [b"{}"]),
    ("nothing", b" \n", []),
]
CASES = [(framing, *case) for framing, cases in (("sse", SSE), ("ndjson", NDJSON), ("json", JSON)) for case in cases]


def frame(framing: Framing, pieces: list[bytes]) -> list[bytes]:
    """All payloads of a body in pieces."""
    framer = FRAMERS[framing]()
    found = [payload for piece in pieces for payload in framer.feed(piece)]
    return found + framer.close()


@pytest.mark.parametrize(("framing", "name", "raw", "expected"), CASES, ids=[f"{c[0]} {c[1]}" for c in CASES])
def test_payloads_whole_and_byte_by_byte(framing: Framing, name: str, raw: bytes, expected: list[bytes]) -> None:
    """Each body gives its payloads, fed at once or a byte at a time."""
    assert expected == frame(framing, [raw])
    assert expected == frame(framing, each_byte(raw))


@given(
    st.lists(st.sampled_from([b"data: a", b"data:b", b"data", b": c", b"\n", b"\r", b"\r\n", BOM, b"x"])).map(b"".join),
    st.lists(st.integers(0, 60)),
    st.sampled_from(["sse", "ndjson", "json"]),
)
def test_cuts_do_not_matter(raw: bytes, at: list[int], framing: Framing) -> None:
    """Any body gives the same payloads at any cuts, empty pieces included."""
    places = [0, *sorted(min(place, len(raw)) for place in at), len(raw)]
    pieces = [raw[start:end] for start, end in itertools.pairwise(places)]

    assert frame(framing, [raw]) == frame(framing, pieces) == frame(framing, each_byte(raw))


def test_an_event_is_given_out_with_the_cr_that_ends_it() -> None:
    """A blank line made of CRs is complete at once; nothing waits for an LF that may follow."""
    framer = FRAMERS["sse"]()

    assert [b"a"] == framer.feed(b"data: a\r\r")
    assert [b"b"] == framer.feed(b"\ndata: b\r\r")


@pytest.mark.parametrize(
    ("content_type", "start", "expected"),
    [
        ("text/event-stream", b"", "sse"),
        ("Text/Event-Stream; charset=utf-8", b"data: {}", "sse"),
        ("text/event-stream", b'{"error":{}}', "json"),
        ("application/x-ndjson", b"{}", "ndjson"),
        ("application/jsonl", b"{}", "ndjson"),
        ("application/json", b"{}", "json"),
        ("application/json", b"data: {}", "sse"),
        ("application/json", b"\n\n: comment", "sse"),
        ("", BOM + b"event: x", "sse"),
        ("", b"d", "sse"),
        ("", b"retr", "sse"),
        ("", b"death", "json"),
        ("", b"", "json"),
        ("text/html", b"<html>", "json"),
    ],
)
def test_the_framing_is_guessed_from_type_and_first_bytes(content_type: str, start: bytes, expected: str) -> None:
    """The content type decides, unless the body plainly is something else."""
    assert expected == guess_framing(content_type, start)
