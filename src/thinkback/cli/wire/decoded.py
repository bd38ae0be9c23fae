"""A response as one object for programs: what it says, its opaque values, its usage, its blocks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Text, ThinkingBlock, ToolCall, carriers_of, is_shown
from thinkback.model.commits import Failure, Usage
from thinkback.model.slices import ENDS
from thinkback.wire.dialect import Trace
from thinkback.wire.result import ReadResult

Json = dict[str, Any]

_EMPTY_FIELD = re.compile(rb'"(?:reasoning_content|reasoning|reasoning_text)"\s*:\s*""')
# What stands beside the one member that names a part.
_BESIDE = frozenset({"thought", "thoughtSignature"})


def as_json(trace: Trace, result: ReadResult, data: bytes) -> Json:
    """``result``, read from ``data``, as one object."""
    blocks, response = result.blocks, result.response
    opaque = [carrier for block in blocks for carrier in carriers_of(block)]
    thoughts = [block for block in blocks if isinstance(block, ThinkingBlock)]
    # An ending that the provider gives as a word is in ``finish``; it gave no error.
    error = response.error if response.error and response.error.code != response.finish else None
    return {
        "reasoning_text": _reasoning(trace, thoughts, data),
        "answer_text": _answer(trace, result, data),
        "tool_calls": [_call(trace, block) for block in blocks if isinstance(block, ToolCall)],
        "order": _order(trace, blocks),
        "signatures": [c.value for c in opaque if c.kind in ("signature", "thought_signature")],
        "encrypted": [c.value for c in opaque if c.kind in ("encrypted", "redacted")],
        "usage": _usage(result.usage),
        "usage_normalised": normalised(result.usage),
        "finish": response.finish,
        "model": response.origin.served_model or None,
        "complete": response.complete,
        "error": _failure(error, data) if error else None,
        "blocks": [canonical.decode(canonical.encode(block)) for block in blocks],
    }


def refusal(failure: Failure, data: bytes) -> Json:
    """An HTTP error as the same object."""
    return {
        "reasoning_text": None,
        "answer_text": None,
        "tool_calls": [],
        "order": [],
        "signatures": [],
        "encrypted": [],
        "usage": _usage(None),
        "usage_normalised": normalised(None),
        "finish": None,
        "model": None,
        "complete": False,
        "error": _failure(failure, data),
        "blocks": [],
    }


def _reasoning(trace: Trace, thoughts: Sequence[ThinkingBlock], data: bytes) -> str | None:
    """All readable reasoning; what has only an opaque value bears no text.

    A field that came and stayed empty leaves no block: the body itself tells it from none at all.
    """
    readable = [trace.readable(block) for block in thoughts if is_shown(block) and _bears_text(block)]
    if readable or not _EMPTY_FIELD.search(data):
        return "".join(readable) if readable else None
    return ""


def _bears_text(block: ThinkingBlock) -> bool:
    if block.source_field == "thinking":
        return True
    return block.kind != "none" and bool(block.thought or block.source_field != "reasoning_details")


def _answer(trace: Trace, result: ReadResult, data: bytes) -> str | None:
    texts = [block.text for block in result.blocks if isinstance(block, Text)]
    empty = trace.empty_text
    if not texts and result.response.content != "text" and not (empty and empty.search(data)):
        return None
    return "".join(texts)


def _order(trace: Trace, blocks: Sequence[Block]) -> list[str]:
    """Kinds of the blocks, equal neighbours as one; what only its provider understands by its own name for it."""
    order: list[str] = []
    for block in blocks:
        name = _name(block)
        hidden = isinstance(block, ThinkingBlock) and block.is_hidden
        blank = isinstance(block, Text) and not block.text.strip() and trace.blank_texts
        # The end of a text that reasoning takes up to its end, because the tag is never closed.
        blank = blank or (isinstance(block, Text) and not block.text and block.source_field == ENDS)
        if not hidden and not blank and order[-1:] != [name]:
            order.append(name)
    return order


def _name(block: Block) -> str:
    match block:
        case ThinkingBlock():
            only = block.kind == "none" and any(carrier.kind == "redacted" for carrier in block.carriers)
            return "redacted" if only else "reasoning"
        case Text():
            return "text"
        case ToolCall():
            return "tool_call"
        case Media() if not block.wire:
            return "media"
        case _:
            return _own_name(block.wire)


def _own_name(wire: str) -> str:
    item = canonical.decode(wire) if wire else {}
    if not isinstance(item, dict):
        return "other"
    return str(item.get("type") or next((key for key in item if key not in _BESIDE), "other"))


def _call(trace: Trace, call: ToolCall) -> Json:
    """A call with its arguments parsed where they are a JSON object or array."""
    arguments: Any = call.arguments
    try:
        parsed = json.loads(call.arguments)
        # a program must be able to read our JSON: numbers without end stay text
        json.dumps(parsed, allow_nan=False)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict | list):
        arguments = parsed
    id = None if not call.id and trace.calls_without_id else call.id
    return {"id": id, "name": call.name, "arguments": arguments, "arguments_raw": call.arguments}


def _usage(usage: Usage | None) -> dict[str, int | None]:
    return {name: getattr(usage, name) if usage else None for name in ("input", "output", "reasoning", "cached")}


def normalised(usage: Usage | None) -> dict[str, int | None]:
    """Usage with the cache counted into the input and reasoning into the output, however the provider counts.

    Where its dialect does not say, the reported total tells; without one, more reasoning than output does.
    """
    counts = _usage(usage)
    told = usage.counted if usage else ()
    reported = _parsed(usage.wire).get("total_tokens") if usage and usage.wire else None
    total = reported if isinstance(reported, int) else None
    if usage and counts["input"] is not None and "cache_beside_input" in told:
        counts["input"] += (usage.cached or 0) + (usage.cache_write or 0)
    given, output, reasoning = counts["input"], counts["output"], counts["reasoning"]
    if output is not None and reasoning:
        added = reasoning > output or "reasoning_beside_output" in told
        if total is not None and given is not None and total in (given + output, given + output + reasoning):
            added = total != given + output
        counts["output"] = output + reasoning if added else output
    if counts["output"] is not None and given is not None and total is None:
        total = given + counts["output"]
    return {**counts, "total": total}


def _parsed(wire: str) -> Json:
    """The provider's own object, or nothing where it is none."""
    try:
        found = json.loads(wire)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _failure(failure: Failure, data: bytes) -> Json:
    """An error as the provider gave it; a code that stood there as a number is one."""
    code: str | int | None = failure.code or None
    if failure.code.lstrip("-").isdigit() and re.search(rb'"code"\s*:\s*' + failure.code.encode() + rb"\b", data):
        code = int(failure.code)
    return {
        "status": failure.status or None,
        "type": failure.type or None,
        "code": code,
        "message": failure.message,
    }
