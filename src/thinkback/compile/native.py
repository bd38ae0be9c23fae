"""Reasoning that goes back in its place, as the block it was: what of a response may, and what must stay with it.

The unit is the response: where one opaque block of it may not go, none does, and neither do the ids that tie other
items to it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Container, Iterable
from typing import NamedTuple

from thinkback.compile.bound import Link
from thinkback.compile.guard import Verdict
from thinkback.compile.policy import Policy, Stance
from thinkback.compile.units import Changes, ResponseUnit
from thinkback.model.blocks import (
    Block,
    Carrier,
    Text,
    ThinkingBlock,
    ToolCall,
    Unknown,
    carriers_of,
    is_place,
    opaque_values,
)

MARKER = "a placeholder of the provider, not reasoning"
INVALID = "a refused request named it invalid for this target"
SENT = "its opaque value goes out with an earlier block, and never twice"
_EMPTY = "empty reasoning is omitted"
_NOT_KEPT = "nothing of it was kept"
_UNSIGNED = "without its opaque value it must not go back"
_DANGLING = "nothing follows it in its response, and the endpoint refuses reasoning without a follower"


class Fault(NamedTuple):
    """Why a piece of reasoning must not go.

    ``lost``: it is genuine reasoning that could not be sent; ``foreign``: somebody else's; ``breaks``: it belongs to a
    chain that must not have a gap. ``repeats``: it came twice in its response, and goes out once.
    """

    reason: str
    lost: bool = False
    foreign: bool = False
    breaks: bool = False
    repeats: bool = False


class Sorted(NamedTuple):
    """What of a response's reasoning goes (by identity), why the rest does not, and what that means for the chain."""

    kept: frozenset[int]
    faults: dict[str, Fault]
    link: Link


def sort(
    unit: ResponseUnit,
    stance: Stance,
    policy: Policy,
    invalid: frozenset[str],
    seen: Container[str],
    bound: str,
) -> Sorted:
    """Which blocks of reasoning go back in their place."""
    verdict = policy.verdict(unit.header.origin)
    same = unit.header.origin.dialect == policy.target.endpoint.dialect
    faults: dict[str, Fault] = {}
    here: set[str] = set()
    for hash, block in unit.thoughts:
        fault = _said_fault(hash, unit.changes, verdict, stance) if unit.changes is not None else None
        if fault is None or block.marker:
            fault = _fault(hash, block, stance, policy, verdict, invalid, seen, here, bound, same)
        if fault is not None:
            faults[hash] = fault
        here.update(_opaque(carriers_of(block), policy))
    _withhold_all(unit, faults)
    kept = {id(block) for hash, block in unit.thoughts if hash not in faults}
    if policy.rule.follower:
        for hash, block in _dangling(unit, kept, invalid, seen):
            faults[hash] = Fault(_DANGLING)
            kept.discard(id(block))
    link: Link = ""
    if verdict.carriers and any(fault.breaks for fault in faults.values()):
        link = "broken"
    elif any(id(block) in kept and carriers_of(block) for _, block in unit.thoughts):
        link = "sent"
    return Sorted(frozenset(kept), faults, link)


def _said_fault(hash: str, changes: Changes, verdict: Verdict, stance: Stance) -> Fault | None:
    """Why one block must not go because of what people made of its response, all of which is valid or nothing."""
    if hash in changes.lost:
        return Fault(changes.lost[hash], lost=True, breaks=True)
    if hash in changes.skipped and not stance.required:
        return Fault(changes.skipped[hash], breaks=True)
    void = changes.voided(required=stance.required)
    return Fault(void, lost=True, breaks=True) if void and verdict.carriers else None


def _fault(
    hash: str,
    block: ThinkingBlock,
    stance: Stance,
    policy: Policy,
    verdict: Verdict,
    invalid: frozenset[str],
    seen: Container[str],
    here: Container[str],
    bound: str,
    same: bool,
) -> Fault | None:
    """Why one block must not go, in the order of DESIGN 3.5: first what is not valid, then what is not wanted."""
    carriers = carriers_of(block)
    if block.marker:
        return Fault(MARKER)
    if hash in invalid:
        return Fault(INVALID, lost=True, breaks=True)
    if not verdict.carriers and (carriers or not (same and verdict.text)):
        return Fault(verdict.reason, lost=True, foreign=True)
    if bound:
        return Fault(bound, lost=True, breaks=True)
    if not carriers and not block.thought:
        return Fault(_NOT_KEPT, lost=True, breaks=policy.rule.prefix_bound) if is_place(block) else Fault(_EMPTY)
    unsigned = not any(carrier.kind not in ("item_id", "phase") for carrier in carriers)
    if unsigned and any(fnmatch.fnmatchcase(block.source_field, kind) for kind in policy.rule.need_signature):
        return Fault(_UNSIGNED)
    values = _opaque(carriers, policy)
    if any(value in seen for value in values):
        return Fault(SENT, breaks=True)
    if any(value in here for value in values):
        return Fault(SENT, repeats=True)
    # Mostly what is stripped stands before all that is sent; an annotation may ask for something before it.
    # What stood in a text is part of what stands before later blocks, and its absence is told from that.
    breaks = policy.rule.prefix_bound and block.source_field != "content"
    return Fault(stance.against, breaks=breaks) if stance.against else None


def _opaque(carriers: Iterable[Carrier], policy: Policy) -> list[str]:
    """The values that must not go out twice. A signature that nobody demands may be the same on every block."""
    signed = bool(policy.rule.need_signature)
    return opaque_values([carrier for carrier in carriers if signed or carrier.kind != "signature"])


def _withhold_all(unit: ResponseUnit, faults: dict[str, Fault]) -> None:
    """Where one opaque block is faulty, the others of the response are no use."""
    opaque = [hash for hash, block in unit.thoughts if carriers_of(block)]
    cause = next((faults[hash] for hash in opaque if hash in faults and not faults[hash].repeats), None)
    if cause is not None:
        for hash in opaque:
            faults.setdefault(hash, cause._replace(reason=f"its response goes whole or not at all: {cause.reason}"))


def _dangling(
    unit: ResponseUnit, kept: Container[int], invalid: frozenset[str], seen: Container[str]
) -> list[tuple[str, ThinkingBlock]]:
    """The reasoning at the end of a response that nothing follows, or nothing that will be written."""
    gone = {
        id(block)
        for hash, block in unit.others
        if isinstance(block, Unknown)
        and (hash in invalid or any(value in seen for value in opaque_values(block.carriers)))
    }
    follows = (at for at, block in enumerate(unit.blocks) if _is_written(block) and id(block) not in gone)
    behind = {id(block) for block in unit.blocks[max(follows, default=-1) + 1 :]}
    return [(hash, block) for hash, block in unit.thoughts if id(block) in behind and id(block) in kept]


def _is_written(block: Block) -> bool:
    """Whether a block is no reasoning and says something."""
    if isinstance(block, Text):
        return bool(block.text or block.carriers)
    return not isinstance(block, ThinkingBlock)


def needs_dummy(unit: ResponseUnit, blocks: tuple[Block, ...], policy: Policy) -> bool:
    """Whether the first call lacks the signature that the endpoint demands of it, or of a thought before it."""
    if not (policy.rule.signed_calls and unit.calls):
        return False
    first = next(block for block in blocks if isinstance(block, ToolCall) or _is_signed(block))
    return isinstance(first, ToolCall) and not any(carrier.kind == "thought_signature" for carrier in first.carriers)


def _is_signed(block: Block) -> bool:
    return isinstance(block, ThinkingBlock) and block.signature != ""
