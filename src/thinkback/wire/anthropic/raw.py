"""A message put together again from its blocks."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.slices import whole
from thinkback.wire.anthropic.blocks import wire_object
from thinkback.wire.result import ReadResult


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The message as an unstreamed response has it."""
    message: dict[str, Any] = canonical.decode(result.response.envelope) if result.response.envelope else {}
    message["content"] = [canonical.decode(wire_object(block)) for block in whole(result.blocks)]
    if result.usage is not None and result.usage.wire:
        message["usage"] = canonical.decode(result.usage.wire)
    return message
