"""A Converse response put together again from its blocks."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.wire.bedrock.blocks import content_objects
from thinkback.wire.result import ReadResult


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The response as Converse gives it, joined from the blocks; a streamed one looks like any other."""
    response, usage = result.response, result.usage
    message: dict[str, Any] = canonical.decode(response.message) if response.message else {}
    content = [canonical.decode(source) for source, _ in content_objects(result.blocks)]
    raw: dict[str, Any] = {"output": {"message": {"role": "assistant", **message, "content": content}}}
    if response.finish is not None:
        raw["stopReason"] = response.finish
    if usage is not None and usage.wire:
        raw["usage"] = canonical.decode(usage.wire)
    return {**raw, **(canonical.decode(response.envelope) if response.envelope else {})}
