"""Reasoning without a signature is given one, in streams and in whole messages, and nothing else changes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.wire.anthropic.front import Signing

SIGNED = {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "mine"}}


def event(kind: str, index: int, **members: Any) -> bytes:
    """One event of a stream."""
    return b"event: %b\ndata: %b\n\n" % (
        kind.encode(),
        json.dumps({"type": kind, "index": index, **members}).encode(),
    )


def stream(signature: str = "") -> list[bytes]:
    """Reasoning, then text; the reasoning with a signature or without."""
    return [
        b'event: ping\ndata: {"type":"ping"}\n\n',
        event("content_block_start", 0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
        event("content_block_delta", 0, delta={"type": "thinking_delta", "thinking": "content_block_stop"}),
        *(
            [event("content_block_delta", 0, delta={"type": "signature_delta", "signature": signature})]
            * bool(signature)
        ),
        event("content_block_delta", 0, delta={"type": "thinking_delta", "thinking": "."}),
        event("content_block_stop", 0),
        event("content_block_start", 1, content_block={"type": "text", "text": ""}),
        event("content_block_stop", 1),
    ]


@pytest.mark.covers(True)
@given(st.sets(st.integers(1, 7)))
def test_a_block_that_ends_without_a_signature_gets_one_in_front_of_its_end(cuts: set[int]) -> None:
    """However many events come at once."""
    events = stream()
    at = [0, *sorted(cuts), len(events)]
    signing = Signing(lambda: "mine")
    pieces = [b"".join(events[start:stop]) for start, stop in pairwise(at)]
    got = b"".join(map(signing.events, pieces))

    added = b"event: content_block_delta\ndata: %b\n\n" % json.dumps(SIGNED, separators=(",", ":")).encode()
    assert b"".join((*events[:4], added, *events[4:])) == got


@pytest.mark.parametrize("data", [b"".join(stream("theirs")), b"".join(stream("theirs")).replace(b"\n", b"\r\n")])
def test_a_block_that_is_signed_stays_as_it_is(data: bytes) -> None:
    """Also where lines end in two characters."""
    assert data == Signing(lambda: "mine").events(data)


@pytest.mark.parametrize(
    "data", [b'data: {"type":"thinking" content_block_start\n\n', b"data: \xff content_block_stop"]
)
def test_what_is_no_event_passes(data: bytes) -> None:
    """Bytes that are no JSON neither raise nor count."""
    signing = Signing(lambda: "mine")
    signing.events(b"".join(stream()[:2]))

    assert data == signing.events(data)


@pytest.mark.parametrize("unsigned", [{"type": "thinking", "thinking": "é"}, {"type": "thinking", "signature": ""}])
def test_a_message_has_a_signature_in_each_block_of_reasoning(unsigned: dict[str, Any]) -> None:
    """Whether it was empty or missing; other blocks stay."""
    others = [{"type": "thinking", "thinking": "", "signature": "theirs"}, {"type": "text", "text": "a"}]
    message = {"type": "message", "content": [unsigned, *others], "n": 1.50}
    got = json.loads(Signing(lambda: "mine").document(json.dumps(message).encode()))

    assert {**message, "content": [{**unsigned, "signature": "mine"}, *others]} == got


@pytest.mark.parametrize(
    "data",
    [
        b'{"content": [{"type":"text","text":"a"}]}',
        b'{ "content": [{"type":"thinking","signature":"theirs"}] }',
        b'{"type":"thinking"}',
        b'{"content": [{"type":"thinking"}',
    ],
)
def test_a_document_with_nothing_to_sign_is_the_same_object(data: bytes) -> None:
    """So is one that is no message."""
    assert data is Signing(lambda: "mine").document(data)
