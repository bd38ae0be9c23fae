"""What of a response is no reasoning: calls, texts, items of unknown kind, and what they carry.

What a block carries goes back inside it, or the block is written without it; items of unknown kind go back to their
maker only, or where nobody knows who made them.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec

from thinkback.compile import native, translate
from thinkback.compile.guard import Verdict
from thinkback.compile.notes import Notes
from thinkback.compile.policy import Policy, Stance
from thinkback.compile.units import ResponseUnit
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, ToolCall, Unknown, opaque_values
from thinkback.model.rule import Form

_NO_PLACE = "the endpoint has no place for it on this block"
_UNTIED = "an id ties it to reasoning of its response that does not go"
# What lets a model go on with its thoughts; other carriers name or label an item.
_OF_REASONING = frozenset({"signature", "encrypted", "redacted", "thought_signature"})


def others(
    unit: ResponseUnit,
    stance: Stance,
    policy: Policy,
    invalid: frozenset[str],
    seen: Container[str],
    notes: Notes,
    bound: str = "",
    *,
    untied: bool = False,
) -> tuple[Block, ...]:
    """The blocks to write. ``untied``: ids that tie an item to reasoning stay away, because that does."""
    if not unit.others and not unit.calls and unit.header.origin.dialect == policy.target.endpoint.dialect:
        return unit.blocks
    verdict = policy.verdict(unit.header.origin)
    void = unit.changes.voided(required=stance.required) if unit.changes is not None else ""
    same = unit.header.origin.dialect == policy.target.endpoint.dialect
    changed: dict[int, tuple[Carrier, ...] | None] = {}
    for hash, block in unit.others:
        left: list[Carrier] = []
        lost = "" if block.carriers or (same and verdict.text) else verdict.reason
        for carrier in block.carriers:
            reason = _against(
                hash, block, carrier, stance, verdict, invalid, seen, notes.opaque, bound, untied, policy.form, void
            )
            if reason:
                if not lost:
                    notes.drop_other(hash, block, reason)
                lost = lost or reason
                notes.drop_carrier(hash, carrier, reason)
            else:
                left.append(carrier)
                notes.carrier(hash, carrier, f"goes back inside its block (rule {policy.rule.id})")
        if lost and not block.carriers:
            notes.drop_other(hash, block, lost)
        if isinstance(block, Unknown | Media) and lost:
            changed[id(block)] = None
        elif lost:
            changed[id(block)] = tuple(left)
    if verdict.carriers and not changed:
        notes.others = dict(unit.others)
        return unit.blocks
    plain = [(block, _plain(block, changed, same, verdict.carriers)) for block in unit.blocks if _stays(block, changed)]
    written = {id(block): made for block, made in plain}
    notes.others = {hash: written[id(block)] for hash, block in unit.others if id(block) in written}
    return tuple(made for _, made in plain)


def _stays(block: Block, changed: dict[int, tuple[Carrier, ...] | None]) -> bool:
    return changed.get(id(block), ()) is not None


def _plain(block: Block, changed: dict[int, tuple[Carrier, ...] | None], same: bool, native: bool) -> Block:
    """A block with the carriers that may go, and without what its maker put around it where one may not."""
    if isinstance(block, ThinkingBlock) or (native and id(block) not in changed):
        return block
    if same and isinstance(block, ToolCall) and block.wire and id(block) not in changed and not _is_function(block):
        return block  # a kind of call that cannot be rebuilt
    left = changed.get(id(block)) or ()
    plain = translate.block(block, same)
    return msgspec.structs.replace(plain, carriers=left) if left else plain


def _against(
    hash: str,
    block: Block,
    carrier: Carrier,
    stance: Stance,
    verdict: Verdict,
    invalid: frozenset[str],
    seen: Container[str],
    here: Container[str],
    bound: str,
    untied: bool,
    form: Form,
    void: str,
) -> str:
    """Why a carrier of something that is no reasoning stays away, or nothing."""
    if hash in invalid:
        return native.INVALID
    if not verdict.carriers:
        return verdict.reason
    if void:
        return void
    if carrier.kind in _OF_REASONING and (bound or stance.against):
        return bound or stance.against
    if untied and carrier.kind == "item_id":
        return _UNTIED
    if any(value in seen or value in here for value in opaque_values((carrier,))):
        return native.SENT
    return "" if form == "native" or _has_place(block, carrier) else _NO_PLACE


def _has_place(block: Block, carrier: Carrier) -> bool:
    """Whether a message field can hold it: inside a verbatim item, or Gemini's signature on the message."""
    if isinstance(block, Text):
        return carrier.kind == "thought_signature"
    return isinstance(block, Unknown) or (isinstance(block, ToolCall) and bool(block.wire))


class _Kind(msgspec.Struct):
    type: Any = "function"


def _is_function(call: ToolCall) -> bool:
    kind: _Kind = canonical.decode(call.wire, _Kind)
    return kind.type in ("function", "function_call", "tool_use")
