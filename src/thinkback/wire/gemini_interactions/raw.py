"""An interaction put together again from its blocks."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.slices import whole
from thinkback.wire.gemini_interactions.blocks import steps_of
from thinkback.wire.result import ReadResult


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The interaction as the wire had it; that of a stream as if it had come whole."""
    response = result.response
    envelope: dict[str, Any] = canonical.decode(response.envelope) if response.envelope else {}
    envelope["steps"] = [canonical.decode(step) for step in steps_of(whole(result.blocks))]
    if result.usage is not None:
        envelope["usage"] = canonical.decode(result.usage.wire)
    return envelope
