"""One response at a time: decide what of its reasoning goes along, and say why."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

import msgspec

from thinkback.compile import forms
from thinkback.compile.guard import Verdict
from thinkback.compile.notes import Notes, opaque_values
from thinkback.compile.policy import Policy, Stance
from thinkback.compile.units import ResponseUnit, Thought
from thinkback.errors import ReplayRefused
from thinkback.model import canonical
from thinkback.model.blocks import Block, ThinkingBlock, ToolCall, Unknown, carriers_of
from thinkback.model.plan import NOTHING, Carry
from thinkback.model.target import DecisionAction, Form

_MARKER = "a placeholder of the provider, not reasoning"
_REPEATS = "repeats another block of the response"
_INVALID = "a refused request named it invalid for this target"
_SENT = "its opaque value goes out with an earlier block, and never twice"
_PLACEHOLDER, _THINKING_OFF, _NONE = "placeholder", "thinking-off-for-this-turn", "none"


class Choice(NamedTuple):
    """What compile decided for one response: what it takes along, its blocks to write. ``off``: turn thinking off."""

    carry: Carry
    blocks: tuple[Block, ...]
    off: bool = False


class Refused(NamedTuple):
    """A piece of reasoning that must not go, with the reason. ``lost``: it is reasoning, not a double of it.

    ``foreign``: somebody else's, whose text may be told where the user asks for it.
    """

    hash: str
    block: ThinkingBlock
    reason: str
    lost: bool = False
    foreign: bool = False


def withhold(unit: ResponseUnit, reason: str, notes: Notes) -> None:
    """Nothing of a response goes along (DESIGN 3.7)."""
    for hash, block in unit.thoughts:
        notes.drop(hash, block, reason)
    for hash, other in unit.others:
        notes.drop_other(hash, other, reason)


def decide(
    unit: ResponseUnit, stance: Stance, policy: Policy, invalid: frozenset[str], seen: Container[str], notes: Notes
) -> Choice:
    """What one response takes along; ``notes`` gets a decision for each reasoning text and each carrier.

    ``seen`` are the opaque values that earlier messages sent. Raises ``ReplayRefused``.
    """
    thoughts, blocks = unit.thoughts, unit.blocks
    carry = NOTHING
    refused: list[Refused] = []
    if unit.others or unit.calls:
        blocks = _write_others(unit, policy, invalid, seen, notes)
    if stance.against and not stance.tells:
        for hash, block in thoughts:
            notes.drop(hash, block, stance.against)
    elif thoughts or policy.rule.empty_details:
        verdict = policy.verdict(unit.header.origin)
        form = forms.form_of(policy, thoughts)
        kept, refused = _sort(thoughts, forms.own_field(form), verdict, invalid, seen, set(notes.opaque))
        carry = _write(unit, kept, form, stance, policy, notes, verdict.carriers)
        if refused:
            carry = _refuse(unit, refused, form, carry, policy, notes)
            gone = {id(item.block) for item in refused} if carry.tagged else ()
            blocks = tuple(block for block in blocks if id(block) not in gone)
    if stance.fill and not (carry.fields or carry.tagged or carry.details is not None):
        return _fill(refused, carry, blocks, stance, policy, notes)
    return Choice(carry, blocks)


def _sort(
    thoughts: tuple[Thought, ...],
    own: str,
    verdict: Verdict,
    invalid: frozenset[str],
    seen: Container[str],
    here: set[str],
) -> tuple[list[Thought], list[Refused]]:
    """What may go, and what must not. Blocks of the form's ``own`` field go, and not those that say the same.

    ``here`` are the opaque values that go out with this very message.
    """
    kept: list[Thought] = []
    refused: list[Refused] = []
    doubled = (
        own != "" and len(thoughts) > 1 and any(block.is_hidden and block.source_field == own for _, block in thoughts)
    )
    for hash, block in thoughts:
        is_own = own != "" and block.source_field == own
        carriers = carriers_of(block) if block.signature or block.carriers else ()
        opaque = opaque_values(carriers)
        if block.marker:
            refused.append(Refused(hash, block, _MARKER))
        elif not is_own and (block.is_hidden or doubled):
            refused.append(Refused(hash, block, _REPEATS))
        elif hash in invalid:
            refused.append(Refused(hash, block, _INVALID, lost=True))
        elif not verdict.text or (carriers and not verdict.carriers and not block.thought):
            refused.append(Refused(hash, block, verdict.reason, lost=True, foreign=True))
        elif verdict.carriers and not (here.isdisjoint(opaque) and all(value not in seen for value in opaque)):
            refused.append(Refused(hash, block, _SENT))
        else:
            kept.append((hash, block))
            here.update(opaque)
    return kept, refused


def _write(
    unit: ResponseUnit, kept: list[Thought], form: Form, stance: Stance, policy: Policy, notes: Notes, native: bool
) -> Carry:
    """Put reasoning into the form of the rule."""
    if stance.against:
        for hash, block in kept:
            notes.drop(hash, block, stance.against)
        return NOTHING
    if form == "field":
        return forms.as_field(kept, policy, stance.why, notes)
    if form == "tags":
        return forms.as_tags(kept, stance.why, notes)
    return forms.as_details(unit, kept, policy, stance.why, notes, native=native)


def _refuse(
    unit: ResponseUnit, refused: list[Refused], form: Form, carry: Carry, policy: Policy, notes: Notes
) -> Carry:
    """Drop what must not go, or tell its readable text where ``reasoning.foreign`` asks for it."""
    told: list[str] = []
    mode = policy.settings.foreign
    for hash, block, reason, _, foreign in refused:
        wanted = foreign and bool(block.thought.strip()) and (mode == "text" or mode == block.kind)
        if wanted and not policy.rule.forbid_foreign_text:
            told.append(block.thought)
            action: DecisionAction = "summary" if block.kind == "summary" else "text"
            notes.text(action, hash, block, f"{reason}; reasoning.foreign={mode} keeps its readable text", reason)
        else:
            refusal = "; the endpoint refuses foreign reasoning as text" if wanted else ""
            notes.drop(hash, block, reason + refusal)
    return forms.as_prose(told, unit, form, carry, policy) if told else carry


def _fill(
    refused: list[Refused], carry: Carry, blocks: tuple[Block, ...], stance: Stance, policy: Policy, notes: Notes
) -> Choice:
    """Go down the ``missing`` list where the endpoint demands something and nothing is left to send."""
    lost = next((item for item in refused if item.lost), None)
    why = stance.against or (lost.reason if lost else "")
    why = f"its own stays away: {why}" if why else "the response brought none that can go back"
    for step in policy.missing:
        if step == _PLACEHOLDER:
            reason = f"the endpoint demands reasoning on this message; {why}"
            notes.stand_in("placeholder", reason, len(policy.placeholder))
            fields = (forms.field_name(policy, ()), *policy.rule.also)
            return Choice(msgspec.structs.replace(carry, fields=fields, text=policy.placeholder), blocks)
        if step == _THINKING_OFF:
            notes.stand_in("drop", f"thinking is off for this turn: the endpoint demands reasoning; {why}", 0)
            return Choice(carry, blocks, off=True)
        if step == _NONE:
            return Choice(carry, blocks)
    if lost is None or not stance.required:
        return Choice(carry, blocks)
    target = policy.target
    raise ReplayRefused(
        f"{target.endpoint.id} demands the reasoning of block {lost.hash[:12]}, which may not be sent: {lost.reason}",
        details={"block": lost.hash, "rule": policy.rule.id, "endpoint": target.endpoint.id, "model": target.model},
        next_actions=("use the model that wrote this turn", "finish or fork the turn before you switch the model"),
    )


def _write_others(
    unit: ResponseUnit, policy: Policy, invalid: frozenset[str], seen: Container[str], notes: Notes
) -> tuple[Block, ...]:
    """The blocks to write: what a call carries goes back inside it, or the call is written without it.

    Items of unknown kind go back to their maker only, or where nobody knows who made them.
    """
    verdict = policy.verdict(unit.header.origin)
    gone: set[int] = set()
    for hash, block in unit.others:
        reason = _against(hash, block, verdict, invalid, seen, notes.opaque)
        if reason:
            gone.add(id(block))
            notes.drop_other(hash, block, reason)
        for carrier in block.carriers if not reason else ():
            notes.carrier(hash, carrier, f"goes back inside its block (rule {policy.rule.id})")
    if verdict.carriers and not gone:
        return unit.blocks
    left = (block for block in unit.blocks if not (isinstance(block, Unknown) and id(block) in gone))
    return tuple(block if verdict.carriers and id(block) not in gone else _plain(block) for block in left)


def _against(
    hash: str, block: Block, verdict: Verdict, invalid: frozenset[str], seen: Container[str], here: Container[str]
) -> str:
    """Why an item of unknown kind, or what another block carries, stays away; or nothing."""
    if hash in invalid:
        return _INVALID
    if not (verdict.carriers if block.carriers else verdict.text):
        return verdict.reason
    if any(value in seen or value in here for value in opaque_values(block.carriers)):
        return _SENT
    verbatim = isinstance(block, Unknown) or (isinstance(block, ToolCall) and bool(block.wire))
    return "" if verbatim else "the endpoint has no place for it on this block"


class _Kind(msgspec.Struct):
    type: Any = "function"


def _plain(block: Block) -> Block:
    """A call without what its maker put around it; a kind of call we cannot rebuild stays as it is."""
    if not isinstance(block, ToolCall) or not block.wire:
        return block
    kind: _Kind = canonical.decode(block.wire, _Kind)
    return msgspec.structs.replace(block, wire="", carriers=()) if kind.type == "function" else block
