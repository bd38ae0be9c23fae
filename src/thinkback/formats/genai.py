"""Parts of messages as OpenTelemetry's conventions for generative AI write them, out of blocks and back.

Signatures and sealed values are members by the names that OpenInference has for them. What such members do not say of
a block stands in one more, ``thinkback``, so that ``block_of(part_of(block))`` is that block, but for its origin.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.formats.parts import call
from thinkback.model import canonical
from thinkback.model.blocks import (
    Block,
    Carrier,
    CarrierKind,
    Media,
    Text,
    ThinkingBlock,
    ThoughtKind,
    ToolCall,
    ToolResult,
    Unknown,
    is_shown,
)
from thinkback.wire.values import members_of, plain

OURS = "thinkback"
SEALED: tuple[tuple[str, CarrierKind], ...] = (
    ("id", "item_id"),
    ("encrypted_content", "encrypted"),
    ("data", "redacted"),
)
"""Members of a part of reasoning, and the carriers that they are."""
CALL_SIGNATURE = "reasoning_signature"
_OF_TEXTS: tuple[tuple[str, CarrierKind], ...] = (("signature", "thought_signature"), ("id", "item_id"))
_ELSEWHERE = frozenset({"origin"})


def part_of(block: Block) -> dict[str, Any]:
    """``block`` as a part of a message; what is kept but not shown has its text only in our own member."""
    part = _part_of(block)
    if isinstance(block, ToolResult | Media):
        return part
    own, base = msgspec.structs.asdict(block), msgspec.structs.asdict(block_of(part))
    more = {
        name: msgspec.to_builtins(value)
        for name, value in own.items()
        if name not in _ELSEWHERE and value != base.get(name)
    }
    return {**part, OURS: more} if more else part


def _part_of(block: Block) -> dict[str, Any]:
    sealed = {carrier.kind: carrier.value for carrier in block.carriers}
    match block:
        case Text():
            said: dict[str, Any] = {"type": "text", "content": block.text}
            return _with(said, signature=sealed.get("thought_signature"), id=sealed.get("item_id"))
        case ThinkingBlock():
            said = {"type": "reasoning", "content": block.thought if is_shown(block) else ""}
            return _with(said, signature=block.signature, **{name: sealed.get(kind) for name, kind in SEALED})
        case ToolCall():
            said = {"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.arguments}
            return _with(said, **{CALL_SIGNATURE: sealed.get("thought_signature")})
        case ToolResult():
            said = {"type": "tool_call_response", "id": block.id, "response": block.content}
            return _with(said, name=block.name, is_error=block.is_error)
        case Media():
            about = {"mime_type": block.media_type, "modality": block.media_type.partition("/")[0]}
            return {"type": "uri", **about, "uri": block.url} if block.url else {"type": "blob", **about}
    return {"type": "unknown"}


def _with(part: dict[str, Any], **more: object) -> dict[str, Any]:
    return {**part, **{name: value for name, value in more.items() if value}}


def block_of(part: dict[str, Any]) -> Block:
    """The block of a part that a model made. Never raises: a member of another type is one that is not there."""
    block = _block_of(part)
    more = members_of(part.get(OURS))
    known = {name: more[name] for name in block.__struct_fields__ if name in more and name not in _ELSEWHERE}
    if not known:
        return block
    try:
        return canonical.convert({**msgspec.to_builtins(block), **known}, type(block))
    except msgspec.ValidationError:
        return block


def _block_of(part: dict[str, Any]) -> Block:
    match part.get("type"):
        case "text":
            return Text(plain(part.get("content")), carriers=_carriers(part, _OF_TEXTS))
        case "reasoning":
            words, carriers = plain(part.get("content")), _carriers(part, SEALED)
            # of what is sealed, only a summary can be read
            kind: ThoughtKind = "none" if not words else "summary" if carriers else "raw"
            signature = plain(part.get("signature"))
            return ThinkingBlock(words, source_field="reasoning", signature=signature, kind=kind, carriers=carriers)
        case "tool_call":
            made = call(part.get("id"), part.get("name"), part.get("arguments"))
            carriers = _carriers(part, ((CALL_SIGNATURE, "thought_signature"),))
            return msgspec.structs.replace(made, carriers=carriers)
    return Unknown(canonical.source({name: value for name, value in part.items() if name != OURS}))


def _carriers(part: dict[str, Any], named: tuple[tuple[str, CarrierKind], ...]) -> tuple[Carrier, ...]:
    return tuple(Carrier(kind, value) for name, kind in named if (value := plain(part.get(name))))
