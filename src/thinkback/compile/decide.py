"""One response at a time: decide what of its reasoning goes along, and say why."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import msgspec

from thinkback.compile import forms, native, translate
from thinkback.compile.bound import Link
from thinkback.compile.guard import Verdict
from thinkback.compile.notes import Notes
from thinkback.compile.others import others
from thinkback.compile.policy import Policy, Stance
from thinkback.compile.units import Changes, ResponseUnit, Thought
from thinkback.errors import ReplayRefused
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, carriers_of, opaque_values
from thinkback.model.plan import NOTHING, Carry
from thinkback.model.rule import Form
from thinkback.model.slices import is_sliced, whole
from thinkback.model.target import DecisionAction

_REPEATS = "repeats another block of the response"
_PLACEHOLDER, _DUMMY, _THINKING_OFF, _NONE = "placeholder", "dummy", "thinking-off-for-this-turn", "none"
_FLATTEN = "flatten-exchange-to-text"


class Choice(NamedTuple):
    """What compile decided for one response: what it takes along, its blocks to write, the ids of its calls.

    ``off``: turn thinking off. ``link`` is what it means for a chain of reasoning that must not have a gap. ``flat`` is
    why it goes as text, empty where it goes as what it was.
    """

    carry: Carry
    blocks: tuple[Block, ...]
    calls: tuple[str, ...] = ()
    off: bool = False
    link: Link = ""
    flat: str = ""


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
    if unit.changes is not None:
        _tell_away(unit.changes, notes, required=False)
    for hash, block in unit.thoughts:
        notes.drop(hash, block, reason)
    for hash, other in unit.others:
        notes.drop_other(hash, other, reason)
        notes.drop_carriers(hash, other, reason)


def decide(
    unit: ResponseUnit,
    stance: Stance,
    policy: Policy,
    invalid: frozenset[str],
    seen: Container[str],
    notes: Notes,
    bound: str = "",
    lifted: Stance | None = None,
) -> Choice:
    """What one response takes along; ``notes`` gets a decision for each reasoning text and each carrier.

    ``seen`` are the opaque values that earlier messages sent; ``bound`` is why reasoning that is bound to its prefix
    must stay away; ``lifted`` is what holds for reasoning that an annotation asks for. Raises ``ReplayRefused``.
    """
    form = forms.form_of(policy, unit.thoughts)
    if unit.changes is not None:
        unit, stance = _heard(unit, unit.changes, form, stance, lifted, notes)
    if form == "native":
        choice = _decide_native(unit, stance, policy, invalid, seen, notes, bound)
    else:
        choice = _decide_written(unit, form, stance, policy, invalid, seen, notes, lifted)
    if unit.changes is not None:
        _tell_away(unit.changes, notes, required=stance.required)
    return _renamed(choice, unit, policy) if unit.calls else choice


def _tell_away(changes: Changes, notes: Notes, *, required: bool) -> None:
    """What people took away of a response, and what their edits cost; edits of ``required`` reasoning do not hold."""
    for away in (*changes.away, *(() if required else changes.edited.values())):
        notes.away(away)


def _heard(
    unit: ResponseUnit, changes: Changes, form: Form, stance: Stance, lifted: Stance | None, notes: Notes
) -> tuple[ResponseUnit, Stance]:
    """The response and what holds for it after what people said of it; ``notes`` hears of it."""
    notes.void = changes.voided(required=stance.required)
    if stance.required:
        said = {**changes.skipped, **{hash: away.reason for hash, away in changes.edited.items()}}
        notes.remarks = {hash: f"; {why}, but what is required goes as it was made" for hash, why in said.items()}
        return _as_made(unit, changes) if changes.edited else unit, stance
    if lifted is None:
        return unit, stance
    notes.remarks = {hash: f"; {why}" for hash, why in changes.lifted.items()}
    # What is opaque goes whole or not at all.
    return unit, lifted if form in ("native", "details") else stance


def _as_made(unit: ResponseUnit, changes: Changes) -> ResponseUnit:
    """A response with its reasoning as it was made: what is required is the model's own, not what people made of it."""
    before = {hash: away.block for hash, away in changes.edited.items()}
    made = {id(block): before[hash] for hash, block in unit.thoughts if hash in before}
    twin = unit.copy(unit.owner)
    twin.blocks, twin.thoughts, twin.others, twin.calls = (), (), (), ()
    for hash, block in zip(unit.hashes, unit.blocks, strict=True):
        twin.put(hash, made.get(id(block), block))
    return twin


def _renamed(choice: Choice, unit: ResponseUnit, policy: Policy) -> Choice:
    """The calls under ids that are given, and given once."""
    # A response that people changed is none that the provider knows: nothing must tie its calls to one.
    anew = unit.changes is not None and unit.changes.void != "" and policy.form == "native" and unit.thoughts != ()
    ids = translate.call_ids(unit, policy.target.endpoint.dialect, anew=anew)
    if ids == tuple(call.id for call in unit.calls):
        return choice._replace(calls=ids)
    left = iter(ids)
    in_object = policy.form != "native"
    blocks = tuple(
        translate.renamed(block, next(left), in_object) if isinstance(block, ToolCall) else block
        for block in choice.blocks
    )
    return choice._replace(blocks=blocks, calls=ids)


def _decide_native(
    unit: ResponseUnit,
    stance: Stance,
    policy: Policy,
    invalid: frozenset[str],
    seen: Container[str],
    notes: Notes,
    bound: str,
) -> Choice:
    """Reasoning goes back in its place, as the block it was."""
    kept, faults, link = native.sort(unit, stance, policy, invalid, seen, bound)
    refused: list[Refused] = []
    for hash, block in unit.thoughts:
        fault = faults.get(hash)
        if fault is None:
            _goes_native(hash, block, stance, notes)
        else:
            refused.append(Refused(hash, block, fault.reason, fault.lost, fault.foreign))
    untied = policy.rule.tied and link != "sent" and any(fault.reason != native.MARKER for fault in faults.values())
    blocks = others(unit, stance, policy, invalid, seen, notes, bound, untied=untied)
    blocks = tuple(block for block in blocks if not isinstance(block, ThinkingBlock) or id(block) in kept)
    blocks = _told(_refuse(refused, stance, policy, notes), unit, blocks)
    blocks = whole(blocks)
    if policy.rule.calls_last:
        blocks = tuple(sorted(blocks, key=lambda block: isinstance(block, ToolCall)))
    notes.place(unit.thoughts, blocks)
    choice = Choice(NOTHING, blocks, link=link)
    # A stand-in that was sent while the turn was under way stays, so that the next request begins as the last did.
    if not stance.against and policy.missing and native.needs_dummy(unit, blocks, policy):
        return _fill(refused, choice, stance, policy, notes)
    if not stance.fill or kept or policy.rule.signed_calls:
        return choice
    foreign = not policy.verdict(unit.header.origin).carriers
    is_missing = policy.restored or foreign or any(item.lost for item in refused)
    if not is_missing:
        return choice
    filled = _fill(refused, choice, stance, policy, notes)
    # An exchange that people changed, or somebody else's, is none that the endpoint could miss reasoning of.
    away = unit.changes.away if unit.changes is not None else ()
    is_known = not foreign and all(isinstance(gone.block, ThinkingBlock) for gone in away)
    return filled if is_known else filled._replace(flat="")


def _goes_native(hash: str, block: ThinkingBlock, stance: Stance, notes: Notes) -> None:
    if block.source_field == forms.CONTENT and not block.wire:
        notes.text("tags", hash, block, f"goes back as tags in its text: {stance.why}", "")
    else:
        notes.native(hash, block, f"goes back as it came: {stance.why}")


def _decide_written(
    unit: ResponseUnit,
    form: Form,
    stance: Stance,
    policy: Policy,
    invalid: frozenset[str],
    seen: Container[str],
    notes: Notes,
    lifted: Stance | None,
) -> Choice:
    """Reasoning goes back in a field, as tags or as details, or not at all."""
    thoughts = unit.thoughts
    carry = NOTHING
    refused: list[Refused] = []
    blocks = others(unit, stance, policy, invalid, seen, notes)
    if unit.changes is not None:
        thoughts, refused = _asked_for(unit.thoughts, unit.changes, stance, lifted)
        _refuse(refused, stance, policy, notes)
        stance = lifted if lifted is not None and thoughts else stance
    if stance.against and not stance.tells:
        for hash, block in thoughts:
            notes.drop(hash, block, stance.against)
    elif thoughts or policy.rule.empty_details:
        verdict = policy.verdict(unit.header.origin)
        if notes.void and verdict.carriers:
            verdict = verdict._replace(carriers=False, reason=notes.void)
        kept, unfit = _sort(thoughts, forms.own_field(form), verdict, invalid, seen, set(notes.opaque))
        carry = _write(unit, kept, form, stance, policy, notes, verdict.carriers)
        if unfit:
            refused = [*refused, *unfit]
            told = _refuse(unfit, stance, policy, notes)
            if told and form == "field" and not carry.fields and not stance.against:
                fields = (forms.field_name(policy, ()), *policy.rule.also)
                carry, told = Carry(fields=fields, text="\n".join(told)), []
            blocks = _told(told, unit, blocks)
    if unit.thoughts:
        gone = {id(item.block) for item in refused} if carry.tagged else {id(block) for _, block in unit.thoughts}
        blocks = tuple([block for block in blocks if id(block) not in gone])
        if not carry.tagged and forms.CONTENT in [block.source_field for _, block in unit.thoughts]:
            blocks = _without_tags(blocks)
    choice = Choice(carry, whole(blocks) if is_sliced(blocks) else blocks)
    if stance.required and native.needs_dummy(unit, blocks, policy):
        return _fill(refused, choice, stance, policy, notes)
    # Where the endpoint demands a field, tags in the content are none.
    tagged = carry.tagged and policy.form != "field"
    if stance.fill and not policy.rule.signed_calls and not (carry.fields or tagged or carry.details is not None):
        return _fill(refused, choice, stance, policy, notes)
    return choice


def _asked_for(
    thoughts: tuple[Thought, ...], changes: Changes, stance: Stance, lifted: Stance | None
) -> tuple[tuple[Thought, ...], list[Refused]]:
    """The reasoning that people left in its place, and what they took away, or what only they could have put there."""
    left: list[Thought] = []
    refused: list[Refused] = []
    for hash, block in thoughts:
        if hash in changes.lost:
            refused.append(Refused(hash, block, changes.lost[hash], lost=True))
        elif hash in changes.skipped and not stance.required:
            refused.append(Refused(hash, block, changes.skipped[hash]))
        elif lifted is not None and stance.against and hash not in changes.lifted:
            refused.append(Refused(hash, block, stance.against))
        else:
            left.append((hash, block))
    return tuple(left), refused


def _without_tags(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Where tags are taken out of a text, the white space behind them goes with them."""
    at = next((at for at, block in enumerate(blocks) if isinstance(block, Text) and not block.wire), -1)
    first = blocks[at] if at >= 0 else None
    if not isinstance(first, Text) or first.text == first.text.lstrip():
        return blocks
    return (*blocks[:at], msgspec.structs.replace(first, text=first.text.lstrip()), *blocks[at + 1 :])


def _told(told: list[str], unit: ResponseUnit, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Reasoning of another model as plain prose before the first text."""
    if not told:
        return blocks
    model = unit.header.origin.requested_model or "another model"
    prose = "(Earlier reasoning, by {}: {})\n\n".format(model, "\n".join(told))
    at = next((at for at, block in enumerate(blocks) if isinstance(block, Text) and not block.wire), -1)
    first = blocks[at] if at >= 0 else None
    if not isinstance(first, Text):
        return (Text(prose.rstrip()), *blocks)
    # Where tags are taken out of a text, the white space behind them goes with them.
    return (*blocks[:at], msgspec.structs.replace(first, text=prose + first.text.lstrip()), *blocks[at + 1 :])


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
            refused.append(Refused(hash, block, native.MARKER))
        elif not is_own and (block.is_hidden or doubled):
            refused.append(Refused(hash, block, _REPEATS))
        elif hash in invalid:
            refused.append(Refused(hash, block, native.INVALID, lost=True))
        elif not verdict.text or (carriers and not verdict.carriers and not block.thought):
            refused.append(Refused(hash, block, verdict.reason, lost=True, foreign=True))
        elif verdict.carriers and not (here.isdisjoint(opaque) and all(value not in seen for value in opaque)):
            refused.append(Refused(hash, block, native.SENT))
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


def _refuse(refused: list[Refused], stance: Stance, policy: Policy, notes: Notes) -> list[str]:
    """Drop what must not go; the readable texts that ``reasoning.foreign`` wants told all the same."""
    told: list[str] = []
    mode = policy.settings.foreign
    asked = stance.tells or not stance.against
    for hash, block, reason, _, foreign in refused:
        wanted = foreign and asked and bool(block.thought.strip()) and (mode == "text" or mode == block.kind)
        if wanted and not policy.rule.forbid_foreign_text:
            told.append(block.thought)
            action: DecisionAction = "summary" if block.kind == "summary" else "text"
            notes.text(action, hash, block, f"{reason}; reasoning.foreign={mode} keeps its readable text", reason)
        else:
            refusal = "; the endpoint refuses foreign reasoning as text" if wanted else ""
            notes.drop(hash, block, reason + refusal)
    return told


def _fill(refused: list[Refused], choice: Choice, stance: Stance, policy: Policy, notes: Notes) -> Choice:
    """Go down the ``missing`` list where the endpoint demands something and nothing is left to send."""
    lost = next((item for item in refused if item.lost), None)
    why = stance.against or (lost.reason if lost else "")
    why = f"its own stays away: {why}" if why else "the response brought none that can go back"
    for step in policy.missing:
        if step == _PLACEHOLDER:
            reason = f"the endpoint demands reasoning on this message; {why}"
            notes.stand_in("placeholder", reason, len(policy.placeholder))
            fields = (forms.field_name(policy, ()), *policy.rule.also)
            return choice._replace(carry=msgspec.structs.replace(choice.carry, fields=fields, text=policy.placeholder))
        if step == _DUMMY:
            notes.dummy(f"the endpoint demands a signature on the first call; {why}")
            return choice._replace(carry=msgspec.structs.replace(choice.carry, dummy=policy.rule.dummy))
        if step == _THINKING_OFF:
            notes.stand_in("drop", f"thinking is off for this turn: the endpoint demands reasoning; {why}", 0)
            return choice._replace(off=True)
        if step == _FLATTEN:
            return choice._replace(flat=f"the exchange goes as text: the endpoint demands its reasoning, and {why}")
        if step == _NONE:
            return choice
    if lost is None or not stance.required:
        return choice
    target = policy.target
    raise ReplayRefused(
        f"{target.endpoint.id} demands the reasoning of block {lost.hash[:12]}, which may not be sent: {lost.reason}",
        details={"block": lost.hash, "rule": policy.rule.id, "endpoint": target.endpoint.id, "model": target.model},
        next_actions=("use the model that wrote this turn", "finish or fork the turn before you switch the model"),
    )
