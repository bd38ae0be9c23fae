"""Parts of a content and blocks, there and back.

A block keeps its part verbatim only where ``wire_object`` would not rebuild the same JSON value from its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, within
from thinkback.wire.arguments import as_object
from thinkback.wire.gemini import media

# The wire's own spelling, and the one of the SDKs.
SIGNATURES = ("thoughtSignature", "thought_signature")
CALLS = ("functionCall", "function_call")
_BARE = frozenset({"thought", *SIGNATURES})


def read_part(
    part: Mapping[str, Any], arguments: str | None = None
) -> Text | ThinkingBlock | ToolCall | Media | Unknown:
    """A part as a block. ``arguments`` is the source text of a call's ``args`` where that is at hand."""
    block = _understood(part, arguments)
    if isinstance(block, Unknown) or canonical.decode(wire_object(block)) == part:
        return block
    return msgspec.structs.replace(block, wire=canonical.source(dict(part)))


def _understood(part: Mapping[str, Any], arguments: str | None) -> Text | ThinkingBlock | ToolCall | Media | Unknown:
    values = [part[name] for name in SIGNATURES if isinstance(part.get(name), str) and part[name]]
    carriers = (Carrier("thought_signature", values[0]),) if values else ()
    call = part.get(call_key(part))
    if isinstance(call, Mapping) and isinstance(call.get("name"), str):
        id, args = call.get("id"), call.get("args")
        source = "{}" if args is None else arguments or canonical.source(args)
        return ToolCall(id if isinstance(id, str) else "", call["name"], source, carriers=carriers)
    found = media.read_media(part, carriers)
    if found is not None:
        return found
    text = part.get("text", "" if part and part.keys() <= _BARE else None)
    if not isinstance(text, str):
        return Unknown(canonical.source(dict(part)), carriers)
    if part.get("thought") is True:
        return ThinkingBlock(text, source_field="thought", kind="summary" if text else "none", carriers=carriers)
    return Text(text, carriers=carriers)


def call_key(part: Mapping[str, Any]) -> str:
    """The name under which ``part`` has a call, if it has one."""
    return CALLS[1] if CALLS[1] in part else CALLS[0]


def wire_object(block: Block) -> bytes:
    """``block`` as a part. Raises ``UnsupportedContent`` for media without content."""
    if block.wire or isinstance(block, Unknown):
        return canonical.raw(block.wire)
    match block:
        case Text():
            field = b'"text":' + canonical.string(block.text)
        case ThinkingBlock():
            field = b'"text":%b,"thought":true' % canonical.string(block.thought)
        case ToolCall():
            fields = (_id(block.id), canonical.string(block.name), as_object(block.arguments))
            field = b'"functionCall":{%b"name":%b,"args":%b}' % fields
        case ToolResult():
            fields = (_id(block.id), canonical.string(block.name), _response(block))
            field = b'"functionResponse":{%b"name":%b,"response":%b}' % fields
        case Media():
            field = media.written(block)
        case _:
            assert_never(block)
    signatures = [carrier.value for carrier in block.carriers if carrier.kind == "thought_signature"]
    if signatures:
        field += signed(signatures[0])
    return b"{%b}" % field


def signed(value: str) -> bytes:
    """What stands behind the other fields of a part that has a signature."""
    return b',"thoughtSignature":' + canonical.string(value)


def _id(id: str) -> bytes:
    return b'"id":%b,' % canonical.string(id) if id else b""


def _response(result: ToolResult) -> bytes:
    """What a tool gave back: its own object, or its text in one, in the field that says whether it failed."""
    if within(result) is not None:
        return canonical.raw(result.content)
    field = "error" if result.is_error else result.source_field
    if field:
        return b'{"%b":%b}' % (field.encode(), canonical.string(result.content))
    if result.content.lstrip().startswith("{"):
        try:
            canonical.decode(result.content, dict[str, Any])
        except msgspec.DecodeError:
            pass
        else:
            return canonical.raw(result.content)
    return b'{"result":%b}' % canonical.string(result.content)
