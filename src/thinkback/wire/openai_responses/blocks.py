"""Output items to blocks and back.

One block per item. A block keeps its item's source text in ``wire`` only where ``wire_object`` could not rebuild an
equal one from the other fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import CUSTOM_CALL, Block, Carrier, CarrierKind, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.wire.placeholders import marked
from thinkback.wire.values import plain

BETWEEN_PARTS = "\n\n"
CUSTOM = CUSTOM_CALL
_Read: TypeAlias = Text | ThinkingBlock | ToolCall
_before_title = re.compile(BETWEEN_PARTS + r"(?=\*\*)")
_NOT_SAID = frozenset({"reasoning_text", "summary_text"})


def block_of(item: Any, source: str) -> Block:
    """The block of an output item; ``source`` is its source text."""
    fields: dict[str, Any] = item if isinstance(item, dict) else {}
    read = _READ.get(str(fields.get("type")))
    if read is None:
        return Unknown(source, _carriers(fields))
    block = read(fields)
    return block if _rebuilt(block) == item else msgspec.structs.replace(block, wire=source)


def wire_object(block: Block) -> str:
    """The output item of ``block`` as JSON source text."""
    if isinstance(block, Text | ThinkingBlock | ToolCall) and not block.wire:
        return canonical.source(_rebuilt(block))
    return block.wire


def thoughts(parts: Any) -> list[str]:
    """The texts of the parts of a reasoning item's ``content`` or ``summary``; empty ones are none."""
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)] if isinstance(parts, Sequence) else []
    return [text for text in texts if text and isinstance(text, str)]


def carrier(block: Block, kind: CarrierKind) -> str:
    """The value of the block's carrier ``kind``; empty where it has none."""
    return next((carrier.value for carrier in block.carriers if carrier.kind == kind), "")


def reasoning_parts(block: ThinkingBlock) -> dict[str, Any]:
    """``summary``, which every reasoning item must have, and ``content`` where the thought is the raw one.

    The paragraphs of a summary that begin with a title in bold are its parts, as OpenAI writes them.
    """
    if block.kind == "raw":
        return {"summary": [], "content": [{"type": "reasoning_text", "text": block.thought}]}
    texts = _before_title.split(block.thought) if block.thought else []
    return {"summary": [{"type": "summary_text", "text": text} for text in texts]}


def _carriers(item: Mapping[str, Any]) -> tuple[Carrier, ...]:
    """The values that tie an item or that only its maker can read."""
    found: list[Carrier] = []
    names: tuple[tuple[CarrierKind, str], ...] = (("item_id", "id"), ("encrypted", "encrypted_content"))
    for kind, name in names:
        value = item.get(name)
        if value and isinstance(value, str):
            found.append(Carrier(kind, value))
    return tuple(found)


def _read_reasoning(item: Mapping[str, Any]) -> ThinkingBlock:
    """Where there are both, the raw text is the thought and the summary stays in ``wire``."""
    raw, summary = thoughts(item.get("content")), thoughts(item.get("summary"))
    return marked(
        ThinkingBlock(
            BETWEEN_PARTS.join(raw or summary),
            source_field="reasoning",
            signature=plain(item.get("signature")),
            kind="raw" if raw else "summary" if summary else "none",
            carriers=_carriers(item),
        )
    )


def _read_message(item: Mapping[str, Any]) -> Text:
    content, phase = item.get("content"), item.get("phase")
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    refused = any(part.get("type") == "refusal" for part in parts)
    said = [plain(part.get("refusal" if part.get("type") == "refusal" else "text")) for part in parts if _is_said(part)]
    carriers = tuple(found for found in _carriers(item) if found.kind == "item_id")
    if phase and isinstance(phase, str):
        carriers += (Carrier("phase", phase),)
    text = content if isinstance(content, str) else "".join(said)
    return Text(text, source_field="refusal" if refused else "content", carriers=carriers)


def _is_said(part: Mapping[str, Any]) -> bool:
    kind = part.get("type")
    return not isinstance(kind, str) or kind not in _NOT_SAID


def _read_call(item: Mapping[str, Any]) -> ToolCall:
    is_custom = item["type"] == CUSTOM
    arguments = item.get("input" if is_custom else "arguments")
    return ToolCall(
        plain(item.get("call_id")),
        plain(item.get("name")),
        arguments if isinstance(arguments, str) else "" if arguments is None else canonical.source(arguments),
        source_field=CUSTOM if is_custom else "tool_calls",
        carriers=tuple(found for found in _carriers(item) if found.kind == "item_id"),
    )


_READ: dict[str, Callable[[Mapping[str, Any]], _Read]] = {
    "reasoning": _read_reasoning,
    "message": _read_message,
    "function_call": _read_call,
    CUSTOM: _read_call,
}


def _rebuilt(block: _Read) -> dict[str, Any]:
    """The item as most hosts write it."""
    match block:
        case ThinkingBlock():
            encrypted = carrier(block, "encrypted")
            kept = {"encrypted_content": encrypted} if encrypted else {}
            more: dict[str, Any] = {"status": "completed"} if block.kind == "raw" else {"content": []}
            return {"type": "reasoning", **_id(block), **more, **reasoning_parts(block), **kept}
        case Text():
            phase = carrier(block, "phase")
            head = {"type": "message", **_id(block), "status": "completed", "role": "assistant"}
            part: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": [], "text": block.text}
            if block.source_field == "refusal":
                part = {"type": "refusal", "refusal": block.text}
            return {**head, **({"phase": phase} if phase else {}), "content": [part]}
        case _:
            is_custom = block.source_field == CUSTOM
            head = {"type": CUSTOM if is_custom else "function_call", **_id(block), "status": "completed"}
            called = {"call_id": block.id, "name": block.name}
            return {**head, **called, "input" if is_custom else "arguments": block.arguments}


def _id(block: Block) -> dict[str, str]:
    id = carrier(block, "item_id")
    return {"id": id} if id else {}
