"""Fuzz the framing of text and the reader of ``openai-chat``: ``python -m tests.fuzz.atheris_chat [SECONDS]``.

The first byte says which framing and how the rest is cut; whole and cut it must be read the same.
"""

from __future__ import annotations

import json

from tests.fuzz import harness

with harness.instrumented():
    from thinkback.model.blocks import Origin
    from thinkback.model.deltas import Delta
    from thinkback.wire.framing import Framing
    from thinkback.wire.openai_chat.read import Reader, raw_response
    from thinkback.wire.result import ReadResult

from bench.streams import stream
from tests.wire.feeding import check, cuts

FRAMINGS: tuple[Framing, ...] = ("sse", "sse", "sse", "json", "ndjson")
ORIGIN = Origin("openai-chat", "https://api.example.org", "m")


def feed(framing: Framing, pieces: list[bytes]) -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body in pieces."""
    reader = Reader(ORIGIN, framing, None, "r1")
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.close()
    return deltas, reader.result()


def target(data: bytes) -> None:
    """Raises for any input that breaks a law."""
    how, raw = (data[0] if data else 0), data[1:]
    framing = FRAMINGS[how % len(FRAMINGS)]
    whole = feed(framing, [raw])
    assert whole == feed(framing, cuts(raw, how, 1 + how % 50))
    check(*whole)
    raw_response(whole[1])


DETAILS = json.dumps(
    {"choices": [{"delta": {"reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0}]}}]}
)
SEEDS = [
    b"\x03" + stream(3).body[:1600],
    b"\x01data: " + b'{"choices":[{"delta":{"content":"<think>a</think>b"}}]}\r\n\r\ndata: [DONE]\r\n\r\n',
    b"\x02data: " + DETAILS.encode() + b"\n\n",
    b'\x08{"choices":[{"message":{"content":"a","reasoning":"b","tool_calls":[{"id":"c"}]}}],"usage":{"prompt_tokens":1}}',
    b'\x05data: {"error":{"message":"no","code":400}}\n\n',
]

if __name__ == "__main__":
    harness.run("chat", target, SEEDS)
