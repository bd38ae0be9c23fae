"""What a recording says of a response, and what was read, in the same terms."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, Unknown, carriers_of
from thinkback.wire.result import ReadResult

_SIGNATURES = ("signature", "thought_signature")
_ENCRYPTED = ("encrypted", "redacted")


def expected(expect: dict[str, Any]) -> dict[str, Any]:
    """What the recording says, in the terms of ``found``."""
    error = expect.get("error")
    return {
        "reasoning": expect["reasoning_text"] or "",
        "answer": expect["answer_text"] or "",
        "calls": [(c["id"], c["name"], c.get("arguments_raw", c["arguments"])) for c in expect["tool_calls"]],
        "order": expect["order"],
        "signatures": expect["opaque_sha256"]["signatures"],
        "encrypted": expect["opaque_sha256"]["encrypted"],
        "usage": expect["usage"],
        "finish": expect["finish"],
        "model": expect["model"],
        "error": error and error["message"],
    }


def found(result: ReadResult, readable: Callable[[ThinkingBlock], str] = lambda block: block.thought) -> dict[str, Any]:
    """What was read; ``readable`` is the text of a piece of reasoning as the recording counts it."""
    usage, response = result.usage, result.response
    opaque = [carrier for block in result.blocks for carrier in carriers_of(block)]
    thoughts = [block for block in result.blocks if isinstance(block, ThinkingBlock)]
    return {
        "reasoning": "".join(readable(block) for block in thoughts if not block.is_hidden),
        "answer": "".join(block.text for block in result.blocks if isinstance(block, Text)),
        "calls": [(b.id, b.name, b.arguments) for b in result.blocks if isinstance(b, ToolCall)],
        "order": order(result.blocks),
        "signatures": [prefix(carrier.value) for carrier in opaque if carrier.kind in _SIGNATURES],
        "encrypted": [prefix(carrier.value) for carrier in opaque if carrier.kind in _ENCRYPTED],
        "usage": {name: getattr(usage, name, None) for name in ("input", "output", "reasoning")},
        "finish": response.finish,
        "model": response.origin.served_model or None,
        "error": response.error and response.error.message,
    }


def order(blocks: tuple[Block, ...]) -> list[str]:
    """Kinds of the blocks that are read, equal neighbours as one."""
    names: dict[type[Block], str] = {
        Text: "text",
        ThinkingBlock: "reasoning",
        ToolCall: "tool_call",
        Media: "media",
        Unknown: "other",
    }
    kinds = [names[type(block)] for block in blocks if not (isinstance(block, ThinkingBlock) and block.is_hidden)]
    return [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]


def prefix(value: str) -> str:
    """The beginning of an opaque value's hash."""
    return hashlib.sha256(value.encode()).hexdigest()[:16]
