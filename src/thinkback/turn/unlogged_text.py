"""What the log gets of reasoning whose readable text is not to be kept (``commit_reasoning=False``).

The whole block stays in memory until its turn ends, because the endpoint may demand it back; the log gets its place,
so that the indexes of its response stay whole, and nothing that anyone could read or send.
"""

from __future__ import annotations

import msgspec

from thinkback.model.blocks import Block, ThinkingBlock, Unknown
from thinkback.model.commits import Response

# A content part that says nothing, where one stood that nobody knows.
_NO_PART = '{"type":"text","text":""}'
_EMPTY_DETAILS = '{"reasoning_details":[]}'


def is_held(block: Block) -> bool:
    """Whether ``block`` is or may be reasoning: nobody can say of an unknown item that it is not."""
    return isinstance(block, ThinkingBlock | Unknown)


def bare(block: Block) -> Block:
    """The place of ``block``."""
    if isinstance(block, ThinkingBlock):
        # Without its verbatim entry a block of details is none.
        field = "" if block.source_field == "reasoning_details" else block.source_field
        return ThinkingBlock("", is_hidden=block.is_hidden, source_field=field, kind="none")
    return Unknown(_NO_PART)


def bare_header(response: Response) -> Response:
    """``response`` without message fields that nobody owns: they may repeat reasoning under another name."""
    kept = response.message if response.message == _EMPTY_DETAILS else ""
    return msgspec.structs.replace(response, message=kept)
