"""One response at a time: withhold it, or decide what of its reasoning goes along, and say why."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from thinkback.compile.policy import Policy
from thinkback.compile.units import ResponseUnit, Turn
from thinkback.errors import ReplayRefused
from thinkback.model import canonical
from thinkback.model.blocks import ThinkingBlock, carriers_of
from thinkback.model.plan import NOTHING, Carry
from thinkback.model.target import Decision, DecisionAction, model_matches


class Place(NamedTuple):
    """Where a response stands: in the turn under way or a finished one, and among those that keep reasoning."""

    is_open: bool
    used_tools: bool
    stripped: bool


class Choice(NamedTuple):
    """What compile decided for one response. ``withheld``: the whole message stays away. ``off``: turn thinking off."""

    carry: Carry
    decisions: list[Decision]
    withheld: bool = False
    off: bool = False


class _Sendable(NamedTuple):
    """The reasoning that may go, and what must not, each with its reason."""

    thoughts: list[tuple[str, ThinkingBlock]]
    refused: list[tuple[str, ThinkingBlock, str]]


def withheld_reason(unit: ResponseUnit, turn: Turn) -> str:
    """Why a response is not replayed at all (DESIGN 3.7), or nothing."""
    if not unit.header.complete:
        return "the response did not complete"
    calls = unit.calls
    if calls and not unit.results and turn.state == "capped":
        return "its calls were never run: the turn reached its cap"
    return ""


def decide(unit: ResponseUnit, turn: Turn, place: Place, policy: Policy, invalid: frozenset[str]) -> Choice:
    """The carry of one response with a decision for each reasoning text and each carrier."""
    reason = withheld_reason(unit, turn)
    thoughts = unit.thoughts
    if reason:
        return Choice(NOTHING, [d for h, b in thoughts for d in _drops(h, b, policy, reason)], withheld=True)
    has_calls = bool(unit.calls)
    required = policy.required(place.is_open, has_calls, place.used_tools)
    if not required:
        reason = _unwanted(place, policy)
        if reason:
            return Choice(NOTHING, [d for h, b in thoughts for d in _drops(h, b, policy, reason)])
    sendable = _sendable(unit, thoughts, policy, invalid)
    choice = _write(unit, sendable, policy)
    if choice.carry != NOTHING or not _must_have_something(required, has_calls, policy):
        return choice
    return _missing(unit, choice, policy, bool(sendable.refused) and required)


def _unwanted(place: Place, policy: Policy) -> str:
    """Why reasoning that is not required does not go along."""
    if not policy.settings.enabled:
        return "reasoning.enabled is false"
    if policy.rule.form == "none":
        return "the endpoint takes no reasoning back"
    demand = policy.rule.open_turn if place.is_open else policy.rule.later
    if demand == "never":
        return f"the endpoint must not see reasoning of {'the turn under way' if place.is_open else 'finished turns'}"
    if place.stripped:
        return "reasoning.stripFromContext or keepLast strips it"
    if not policy.wanted(place.is_open, place.used_tools):
        return "not demanded by the endpoint, and reasoning.includeInContext does not ask for it"
    return ""


def _sendable(
    unit: ResponseUnit, thoughts: list[tuple[str, ThinkingBlock]], policy: Policy, invalid: frozenset[str]
) -> _Sendable:
    verdict = policy.verdict(unit.header.origin)
    kept: list[tuple[str, ThinkingBlock]] = []
    refused: list[tuple[str, ThinkingBlock, str]] = []
    seen: set[str] = set()
    for hash, block in thoughts:
        opaque = carriers_of(block)
        if block.marker:
            refused.append((hash, block, "a placeholder of the provider, not reasoning"))
        elif block.is_hidden:
            refused.append((hash, block, "repeats another block of the response"))
        elif hash in invalid:
            refused.append((hash, block, "a refused request named it invalid for this target"))
        elif not verdict.text or (opaque and not verdict.carriers):
            refused.append((hash, block, verdict.reason))
        elif any(carrier.value in seen for carrier in opaque):
            refused.append((hash, block, "its opaque value was already sent"))
        else:
            kept.append((hash, block))
            seen.update(carrier.value for carrier in opaque)
    return _Sendable(kept, refused)


def _write(unit: ResponseUnit, sendable: _Sendable, policy: Policy) -> Choice:
    """Put sendable reasoning into the form of the rule; foreign text where the user opted in."""
    decisions: list[Decision] = []
    carry = NOTHING
    form = policy.rule.form
    if policy.rule.as_received and any(block.source_field == "reasoning_details" for _, block in sendable.thoughts):
        form = "details"
    if form == "field":
        carry = _as_field(sendable.thoughts, policy, decisions)
    elif form == "tags":
        carry = _as_tags(sendable.thoughts, policy, decisions)
    elif form == "details":
        carry = _as_details(unit, sendable.thoughts, policy, decisions)
    else:
        for hash, block in sendable.thoughts:
            decisions += _drops(hash, block, policy, "the endpoint takes no reasoning back")
    return Choice(_add_foreign(unit, sendable, policy, carry, decisions), decisions)


def _as_field(thoughts: list[tuple[str, ThinkingBlock]], policy: Policy, decisions: list[Decision]) -> Carry:
    text = "".join(block.thought for _, block in thoughts)
    if not text.strip():
        for hash, block in thoughts:
            decisions += _drops(hash, block, policy, "empty reasoning is omitted")
        return NOTHING
    name = policy.rule.field or next((b.source_field for _, b in thoughts if b.source_field), "")
    if not name or name in ("content", "reasoning_details"):
        name = "reasoning_content"
    for hash, block in thoughts:
        reason = f"goes back in {name}: {_demand(policy)}"
        decisions.append(_decision("field", "reasoning", hash, policy, reason, len(block.thought)))
        decisions += [
            _decision("drop", carrier.kind, hash, policy, f"the endpoint has no place for it beside {name}")
            for carrier in carriers_of(block)
        ]
    return Carry(fields=(name, *policy.rule.also), text=text)


def _as_tags(thoughts: list[tuple[str, ThinkingBlock]], policy: Policy, decisions: list[Decision]) -> Carry:
    text = "".join(block.thought for _, block in thoughts)
    if not text.strip():
        return NOTHING
    for hash, block in thoughts:
        reason = f"goes back as tags in content: {_demand(policy)}"
        decisions.append(_decision("tags", "reasoning", hash, policy, reason, len(block.thought)))
    return Carry(tagged=True, text=text)


class _Entry(msgspec.Struct):
    """What the details rules look at."""

    type: str = ""
    format: str | None = None
    signature: str | None = None


def _as_details(
    unit: ResponseUnit, thoughts: list[tuple[str, ThinkingBlock]], policy: Policy, decisions: list[Decision]
) -> Carry:
    kept: list[str] = []
    texts: list[str] = []
    repeat = False
    for hash, block in thoughts:
        if block.source_field != "reasoning_details":
            texts.append(block.thought)
            continue
        entry = canonical.decode(block.wire, _Entry)
        reason = _entry_fault(entry, policy)
        if reason:
            decisions += _drops(hash, block, policy, reason)
            continue
        kept.append(block.wire)
        repeat = repeat or model_matches(entry.format or "unknown", policy.rule.repeat_text)
        decisions += _natives(hash, block, policy, f"entry goes back unmodified: {_demand(policy)}")
    loose = [(hash, block) for hash, block in thoughts if block.source_field != "reasoning_details"]
    text = "".join(texts)
    if text.strip() and not kept and not policy.rule.field:
        for hash, block in loose:
            decisions += _drops(hash, block, policy, "the details it came with are missing")
        text = ""
    elif text.strip():
        for hash, block in loose:
            reason = f"goes back in {policy.rule.field}: {_demand(policy)}"
            decisions.append(_decision("field", "reasoning", hash, policy, reason, len(block.thought)))
    if repeat and policy.rule.field in unit.header.repeats:
        text = "".join(block.thought for _, block in thoughts if block.source_field == "reasoning_details")
    fields = (policy.rule.field,) if text.strip() and policy.rule.field else ()
    empty = policy.rule.empty_details and '"reasoning_details":[]' in unit.header.message
    if not kept and not fields and not empty:
        return NOTHING
    return Carry(fields=fields, text=text if fields else "", details=tuple(kept) if kept or empty else None)


def _entry_fault(entry: _Entry, policy: Policy) -> str:
    kind, format = entry.type, entry.format or "unknown"
    if kind in policy.rule.drop_details.get(format, ()):
        return f"{kind} of {format} must not go back"
    if kind == "reasoning.text" and format in policy.rule.need_signature and not entry.signature:
        return f"{kind} of {format} without its signature must not go back"
    return ""


def _add_foreign(
    unit: ResponseUnit, sendable: _Sendable, policy: Policy, carry: Carry, decisions: list[Decision]
) -> Carry:
    """Drop what the guard refused, or tell its readable text where ``reasoning.foreign`` asks for it."""
    told: list[str] = []
    mode = policy.settings.foreign
    for hash, block, reason in sendable.refused:
        foreign = not block.marker and not block.is_hidden and bool(block.thought.strip())
        wanted = foreign and (mode == "text" or (mode == "summary" and block.kind == "summary"))
        if wanted and policy.rule.forbid_foreign_text:
            reason += "; the endpoint refuses foreign reasoning as text"
        elif wanted:
            told.append(block.thought)
            action: DecisionAction = "summary" if block.kind == "summary" else "text"
            asked = f"{reason}; reasoning.foreign={mode} keeps its readable text"
            decisions.append(_decision(action, "reasoning", hash, policy, asked, len(block.thought)))
            decisions += [_decision("drop", c.kind, hash, policy, reason) for c in carriers_of(block)]
            continue
        decisions += _drops(hash, block, policy, reason)
    if not told:
        return carry
    text = "\n".join(told)
    if policy.rule.form == "field" and not carry.text:
        return Carry(fields=(policy.rule.field or "reasoning_content", *policy.rule.also), text=text)
    model = unit.header.origin.requested_model or "another model"
    return msgspec.structs.replace(carry, prefix=f"(Earlier reasoning, by {model}: {text})\n\n")


def _must_have_something(required: bool, has_calls: bool, policy: Policy) -> bool:
    if not policy.thinking or not policy.missing:
        return required and policy.thinking
    return required or policy.always or (policy.rule.placeholder_on == "tool-calls" and has_calls)


def _missing(unit: ResponseUnit, choice: Choice, policy: Policy, lost: bool) -> Choice:
    """Go down the rule's ``missing`` list. ``lost``: there was reasoning, and it may not be sent."""
    rule = policy.rule
    hash = unit.hashes[0] if unit.hashes else unit.commit.hash
    for step in policy.missing:
        if step == "placeholder":
            why = "its own reasoning may not be sent here" if lost else "the response brought no reasoning"
            reason = f"the endpoint demands reasoning on this message, and {why}"
            decision = _decision("placeholder", "reasoning", hash, policy, reason)
            carry = Carry(fields=(rule.field or "reasoning_content",), text=policy.placeholder)
            return Choice(carry, [*choice.decisions, decision])
        if step == "thinking-off-for-this-turn":
            reason = "the endpoint demands reasoning that may not be sent: thinking is off for this turn"
            return Choice(NOTHING, [*choice.decisions, _decision("drop", "reasoning", hash, policy, reason)], off=True)
        if step == "none":
            return choice
    if not lost:
        return choice
    raise ReplayRefused(
        f"{policy.target.endpoint.id} demands the reasoning of block {hash[:12]}, which may not be sent: "
        f"{choice.decisions[0].reason if choice.decisions else 'nothing is left of it'}",
        details={"block": hash, "rule": rule.id, "endpoint": policy.target.endpoint.id, "model": policy.target.model},
        next_actions=("use the model that wrote this turn", "finish or fork the turn before you switch the model"),
    )


def _demand(policy: Policy) -> str:
    return f"rule {policy.rule.id}" + (" (guessed)" if policy.target.guessed else "")


def _natives(hash: str, block: ThinkingBlock, policy: Policy, reason: str) -> list[Decision]:
    found = [_decision("native", carrier.kind, hash, policy, reason) for carrier in carriers_of(block)]
    if block.thought or not found:
        found.insert(0, _decision("native", "reasoning", hash, policy, reason, len(block.thought)))
    return found


def _drops(hash: str, block: ThinkingBlock, policy: Policy, reason: str) -> list[Decision]:
    found = [_decision("drop", carrier.kind, hash, policy, reason) for carrier in carriers_of(block)]
    if block.thought or not found:
        found.insert(0, _decision("drop", "reasoning", hash, policy, reason, len(block.thought)))
    return found


def _decision(
    action: DecisionAction, what: str, hash: str, policy: Policy, reason: str, characters: int = 0
) -> Decision:
    return Decision(
        action=action,
        what=what,  # type: ignore[arg-type]
        block=hash,
        rule=policy.rule.id,
        reason=reason,
        characters=characters,
        guessed=policy.target.guessed,
    )
