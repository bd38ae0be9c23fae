"""Signatures changed in responses of Gemini, and where a stream of them ends."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.gemini.feeding import body, chunk, feed, sse, stream
from thinkback.model.blocks import carriers_of
from thinkback.wire.gemini.opaque import armoured, bare, ends, rewrite

DIALECT = "gemini"
PARTS: list[dict[str, Any]] = [
    {"text": "a", "thoughtSignature": "c2ln"},
    {"functionCall": {"name": "f", "args": {"thoughtSignature": "x", "parts": [{"thoughtSignature": "y"}]}}},
    {"text": "", "thought_signature": "c2lo"},
]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("listed", [False, True])
def test_each_signature_is_changed_and_no_other_byte(indent: int | None, listed: bool) -> None:
    """What stands in arguments is no signature; the form of the document stays, also where it is an array."""
    value = chunk(*PARTS, thoughtSignature="z")
    payload = json.dumps([value] if listed else value, indent=indent).encode()

    made = rewrite(payload, lambda signature: f"tb1.{signature}")

    for signature in ("c2ln", "c2lo"):
        changed = base64.b64encode(f"tb1.{signature}".encode())
        payload = payload.replace(f'"{signature}"'.encode(), b'"' + changed + b'"')
    assert payload == made
    assert payload == rewrite(payload, str)


def test_a_payload_without_signatures_is_the_same_object() -> None:
    """Nothing is copied where there is nothing to change."""
    payload = json.dumps(chunk({"text": '"thoughtSignature": "x"', "thoughtSignature": ""})).encode()

    assert payload is rewrite(payload, str.upper)


@given(st.text())
def test_what_is_armoured_comes_back_from_clients_of_every_language(value: str) -> None:
    """As written, in the other alphabet, and without padding it is the same value again."""
    value = value.encode("utf-8", "replace").decode()
    sent = armoured(value)

    assert value == bare(sent) == bare(sent.translate(str.maketrans("+/", "-_"))) == bare(sent.rstrip("="))
    assert base64.b64decode(sent) == value.encode()


@pytest.mark.parametrize("signature", ["EqQB\ud83d", "/+8=", "a", "no base64!", "tb1.AA"])
def test_a_signature_of_another_make_is_as_it_came(signature: str) -> None:
    """What is no text in base64 was not armoured."""
    assert signature == bare(signature)


@pytest.mark.corpus
def test_a_recorded_response_has_its_signatures_changed(
    recorded_exchange: Exchange, ran: Callable[[Exchange], None]
) -> None:
    """Every signature that is read afterwards is the changed one, and unchanged ones change nothing."""
    ran(recorded_exchange)
    raw, framing = recorded_exchange.body, recorded.framing_of(recorded_exchange)
    if recorded.is_refused(recorded_exchange):
        return

    def rewritten(change: Callable[[str], str]) -> bytes:
        if framing == "json":
            return rewrite(raw, change)
        return b"\n".join(
            b"data: " + rewrite(line[6:], change) if line.startswith(b"data: ") else line for line in raw.split(b"\n")
        )

    def signatures(data: bytes) -> list[str]:
        return [carrier.value for block in feed([data], framing)[1].blocks for carrier in carriers_of(block)]

    assert raw == rewritten(str)
    assert signatures(raw) == [bare(value)[4:] for value in signatures(rewritten(lambda value: f"tb1.{value}"))]


def test_a_stream_ends_with_the_response_that_says_why() -> None:
    """A piece is cut before the last event; one that began in an earlier piece ends in it from the start."""
    events = stream({"text": '"finishReason": "STOP"'}, {"text": "b"})

    assert events.rindex(b"data:") == ends(events)
    assert 0 == ends(body({"text": "b"}))
    assert -1 == ends(sse(chunk({"text": "b"})))
    assert -1 == ends(b"")
