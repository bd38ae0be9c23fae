"""A ``GenerateContentResponse`` put together again from its blocks."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.slices import whole
from thinkback.wire.gemini.blocks import wire_object
from thinkback.wire.result import ReadResult


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The response as the wire had it; that of a stream as if it had come whole."""
    response = result.response
    envelope: dict[str, Any] = canonical.decode(response.envelope) if response.envelope else {}
    candidate: dict[str, Any] = envelope.pop("candidate", {})
    others: list[Any] = envelope.pop("candidates", [])
    parts = [canonical.decode(wire_object(block)) for block in whole(result.blocks)]
    if parts:
        candidate["content"] = {**candidate.get("content", {}), "parts": parts}
    if response.finish is not None:
        candidate["finishReason"] = response.finish
    if candidate or others:
        envelope["candidates"] = [candidate, *others]
    if result.usage is not None:
        envelope["usageMetadata"] = canonical.decode(result.usage.wire)
    return envelope
