"""What a payload says, as people read it. Never an opaque value, never the wire's own object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, is_shown
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Compaction,
    Content,
    Erased,
    Merge,
    Message,
    Payload,
    PermissionDecision,
    Repair,
    Request,
    Response,
    Tools,
    TurnEnded,
    Usage,
    surviving,
)

BETWEEN_THOUGHTS = "\n\n"
"""What parts the thoughts of one response where people read them; what goes back to a provider has rules of its own."""


def thoughts_of(blocks: Iterable[Block]) -> str:
    """The reasoning of a response as people read it: a blank line between thoughts, no markers, nothing said twice."""
    found = (b.thought for b in blocks if isinstance(b, ThinkingBlock) and is_shown(b))
    return BETWEEN_THOUGHTS.join(thought for thought in found if thought.strip())


def text_of(value: Payload) -> str:
    """The whole readable text; empty for what is said to nobody (records, counts, marks)."""
    value = surviving(value)
    match value:
        case Message():
            told = [f"[{_media(part)}]" for part in value.parts if isinstance(part, Media)]
            return "\n".join(piece for piece in (value.text, *told) if piece)
        case Text() | Content() | BranchSummary():
            return value.text
        case ThinkingBlock():
            return value.thought
        case ToolCall():
            return f"{value.name}({value.arguments})"
        case ToolResult():
            return value.content
        case Media():
            return f"[{_media(value)}]"
        case Tools():
            return ", ".join(tool.name for tool in value.tools)
        case Compaction():
            return value.describe()
        case Erased():
            return f"[{value.notice}]"
        case Unknown() | Usage() | Response() | Request() | TurnEnded() | Repair() | Annotation() | Merge():
            return ""
        case PermissionDecision():
            return ""
        case _:
            assert_never(value)


def _media(part: Media) -> str:
    return f"{part.media_type} {part.name}".rstrip()
