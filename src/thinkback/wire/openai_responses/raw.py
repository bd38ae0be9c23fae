"""A response object put together again from its blocks."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.slices import whole
from thinkback.wire.openai_responses.blocks import wire_object
from thinkback.wire.result import ReadResult


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The response object as the host would have given it in one piece."""
    envelope = result.response.envelope
    response: dict[str, Any] = canonical.decode(envelope) if envelope else {}
    response["output"] = [canonical.decode(wire_object(block)) for block in whole(result.blocks)]
    if result.usage is not None:
        response["usage"] = canonical.decode(result.usage.wire)
    return response
