"""Fuzz the binary event stream and the reader of ``bedrock``: ``python -m tests.fuzz.atheris_bedrock [SECONDS]``.

No mutation finds a checksum. So if the first byte is odd, what follows is taken for headers and payloads, parted by
NUL, that are put into messages whose checksums are right; else it is the body as it stands.
"""

from __future__ import annotations

from tests.fuzz import harness

with harness.instrumented():
    from thinkback.model.blocks import Origin
    from thinkback.model.deltas import Delta
    from thinkback.wire.bedrock.read import Reader, raw_response
    from thinkback.wire.result import ReadResult

from bench.dialects import stream_of
from tests.wire import event_stream
from tests.wire.feeding import check, cuts

ORIGIN = Origin("bedrock", "https://api.example.org", "m")
TYPES = ("contentBlockDelta", "contentBlockStart", "contentBlockStop", "messageStart", "messageStop", "metadata")
_HEADERS = 0x80


def feed(pieces: list[bytes]) -> tuple[list[Delta], ReadResult]:
    """All deltas and the result of a body in pieces."""
    reader = Reader(ORIGIN, "event-stream", None, "r1")
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    deltas += reader.close()
    return deltas, reader.result()


def message(part: bytes) -> bytes:
    """The first byte of ``part`` is the type, or says that the rest are headers."""
    kind, payload = (part[0] if part else 0), part[1:]
    if kind >= _HEADERS:
        return event_stream.packed(payload, b"{}")
    headers = {":event-type": TYPES[kind % len(TYPES)], ":message-type": "event"}
    return event_stream.message(headers, payload)


def target(data: bytes) -> None:
    """Raises for any input that breaks a law."""
    how, raw = (data[0] if data else 0), data[1:]
    if how % 2:
        raw = b"".join(map(message, raw.split(b"\0")))
    whole = feed([raw])
    assert whole == feed(cuts(raw, how, 1 + how % 50))
    check(*whole)
    raw_response(whole[1])


SEEDS = [
    b"\x02" + stream_of("bedrock", 2).body[:1500],
    b'\x01\x03{"role":"assistant"}\0\0{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"a"}}}'
    b'\0\x00{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"S"}}}\0\x02{"contentBlockIndex":0}'
    b'\0\x01{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"c","name":"f"}}}'
    b'\0\x00{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{}"}}}\0\x04{"stopReason":"tool_use"}',
    b'\x03\x00{"contentBlockIndex":0,"delta":{"text":"<thinking>a</thinking>b"}}\0\x05{"usage":{"inputTokens":1}}',
    b"\x05\xff\x0d:message-type\x07\x05event\x0b:event-type\x07\x01x",
    b'\x01\x00{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"AAAA"}}}',
]

if __name__ == "__main__":
    harness.run("bedrock", target, SEEDS)
