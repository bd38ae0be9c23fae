"""A response object put together again from its blocks."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.slices import whole
from thinkback.wire.openai_responses.blocks import thoughts, wire_object
from thinkback.wire.placeholders import parted
from thinkback.wire.result import ReadResult


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The response object as the host would have given it in one piece."""
    envelope = result.response.envelope
    response: dict[str, Any] = canonical.decode(envelope) if envelope else {}
    response["output"] = [canonical.decode(wire_object(block)) for block in whole(result.blocks)]
    if result.usage is not None:
        response["usage"] = canonical.decode(result.usage.wire)
    return response


def joined_thought(block: ThinkingBlock) -> str:
    """The parts of a reasoning item without anything between them, as they are on the wire."""
    item = canonical.decode(wire_object(block))
    return parted("".join(thoughts(item.get("content" if block.kind == "raw" else "summary"))))[1]
