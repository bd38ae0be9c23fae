"""What a response reader hands over when the body has ended."""

from __future__ import annotations

import msgspec

from thinkback.model.blocks import Block
from thinkback.model.commits import Response, Usage


class ReadOptions(msgspec.Struct, frozen=True):
    """``reasoning_field``: the one message field that holds reasoning (no fallback to others when it is set)."""

    reasoning_field: str = ""


class ReadResult(msgspec.Struct, frozen=True):
    """A response as values: its header, its blocks in arrival order, and the usage it reported."""

    response: Response
    blocks: tuple[Block, ...]
    usage: Usage | None


def stamped(result: ReadResult) -> ReadResult:
    """``result`` with the response's origin on each of its blocks."""
    origin = result.response.origin
    blocks = tuple(msgspec.structs.replace(block, origin=origin) for block in result.blocks)
    return msgspec.structs.replace(result, blocks=blocks)
