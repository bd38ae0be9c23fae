"""The forms reasoning goes back in: a message field, tags inside ``content``, ``reasoning_details``, prose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from thinkback.compile.notes import Notes
from thinkback.compile.policy import Policy
from thinkback.compile.units import ResponseUnit, Thought
from thinkback.model import canonical
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.plan import NOTHING, Carry
from thinkback.model.rule import Form
from thinkback.model.target import model_matches

DETAILS, CONTENT = "reasoning_details", "content"
_OWN_FIELD: dict[Form, str] = {"details": DETAILS, "tags": CONTENT}
_EMPTY = "empty reasoning is omitted"


def form_of(policy: Policy, thoughts: Sequence[Thought]) -> Form:
    """The form of one response: the rule's, or the one it came in where the rule says so."""
    if policy.rule.as_received:
        fields = {block.source_field for _, block in thoughts}
        if DETAILS in fields:
            return "details"
        if CONTENT in fields:
            return "tags"
    return policy.form


def own_field(form: Form) -> str:
    """The wire field whose blocks ``form`` gives back exactly as they came; empty where there is none."""
    return _OWN_FIELD.get(form, "")


def as_field(thoughts: Sequence[Thought], policy: Policy, why: str, notes: Notes) -> Carry:
    """All text in one message field: the rule's, or the one it came in."""
    text = _joined(thoughts)
    if not text:
        for hash, block in thoughts:
            notes.drop(hash, block, _EMPTY)
        return NOTHING
    name = field_name(policy, thoughts)
    beside = f"the endpoint has no place for it beside {name}"
    for hash, block in thoughts:
        notes.text("field", hash, block, f"goes back in {name}: {why}", beside)
    return Carry(fields=(name, *policy.rule.also), text=text)


def field_name(policy: Policy, thoughts: Sequence[Thought]) -> str:
    """The field's name: the rule's, else the one the text came in, else the commonest."""
    if policy.field:
        return policy.field
    received = (block.source_field for _, block in thoughts)
    return next((name for name in received if name and name not in (DETAILS, CONTENT)), "reasoning_content")


def as_tags(thoughts: Sequence[Thought], why: str, notes: Notes) -> Carry:
    """The slices of ``content`` exactly as they came; text that came elsewhere goes between tags of its own."""
    tagged = [(hash, block) for hash, block in thoughts if block.source_field == CONTENT]
    text = _joined(tagged or thoughts)
    for hash, block in thoughts:
        if tagged and block.source_field != CONTENT:
            notes.drop(hash, block, "content has tags of its own, and there is no place beside them")
        elif not text:
            notes.drop(hash, block, _EMPTY)
        else:
            reason = f"goes back as tags in content: {why}"
            notes.text("tags", hash, block, reason, "the endpoint has no place for it beside tags")
    return Carry(tagged=True, text=text) if text else NOTHING


class _Entry(msgspec.Struct):
    """What the rules about details look at; hosts put anything into any of it."""

    type: Any = ""
    format: Any = None
    signature: Any = None


def _entry_of(wire: str) -> tuple[str, str, bool]:
    """(type, format, whether it is signed) of an entry."""
    entry: _Entry = canonical.decode(wire, _Entry)
    kind = entry.type if isinstance(entry.type, str) else ""
    return kind, entry.format if isinstance(entry.format, str) else "unknown", bool(entry.signature)


def as_details(
    unit: ResponseUnit, thoughts: Sequence[Thought], policy: Policy, why: str, notes: Notes, *, native: bool
) -> Carry:
    """The entries unmodified, and text beside them where the rule wants it. Without ``native`` only text may go."""
    kept: list[Thought] = []
    loose: list[Thought] = []
    echoed, repeat = policy.field in unit.header.repeats, False
    for hash, block in thoughts:
        if block.source_field != DETAILS or not block.wire:
            loose.append((hash, block))
            continue
        kind, format, signed = _entry_of(block.wire)
        fault = _fault(kind, format, signed and native, policy)
        if fault:
            notes.drop(hash, block, fault)
        elif not native:
            loose.append((hash, block))
        else:
            kept.append((hash, block))
            repeat = repeat or (echoed and model_matches(format, policy.rule.repeat_text))
            notes.native(hash, block, f"entry goes back unmodified: {why}")
    text = _beside(loose, bool(kept), policy, why, notes)
    if repeat and not loose:
        text = _joined(kept)
    empty = native and policy.rule.empty_details and '"reasoning_details":[]' in unit.header.message
    if not kept and not text and not empty:
        return NOTHING
    details = tuple(block.wire for _, block in kept) if kept or empty else None
    return Carry(fields=(policy.field,) if text else (), text=text, details=details)


def _beside(loose: Sequence[Thought], has_entries: bool, policy: Policy, why: str, notes: Notes) -> str:
    """Text that goes beside the entries, or in place of them."""
    text = _joined(loose)
    against = "" if text else _EMPTY
    if text and not policy.field:
        against = f"the endpoint takes no text {'beside' if has_entries else 'without'} its details"
    for hash, block in loose:
        if against:
            notes.drop(hash, block, against)
        else:
            beside = "its origin is not known" if block.source_field == DETAILS else "text goes back without it"
            notes.text("field", hash, block, f"goes back in {policy.field}: {why}", beside)
    return "" if against else text


def _fault(kind: str, format: str, signed: bool, policy: Policy) -> str:
    """Why an entry must not go back; ``signed``: its signature goes along."""
    if kind in policy.rule.drop_details.get(format, ()):
        return f"{kind} of {format} must not go back"
    if kind == "reasoning.text" and format in policy.rule.need_signature and not signed:
        return f"{kind} of {format} without its signature must not go back"
    return ""


def _joined(thoughts: Sequence[Thought]) -> str:
    """Pieces of one field joined as they were cut, different fields on lines of their own; empty if blank."""
    if len(thoughts) == 1:
        text = _said(thoughts[0][1])
        return text if not text.isspace() else ""
    pieces: list[str] = []
    last = ""
    for _, block in thoughts:
        if block.thought:
            pieces += ("\n", _said(block)) if pieces and block.source_field != last else (_said(block),)
            last = block.source_field
    text = "".join(pieces)
    return text if text.strip() else ""


def _said(block: ThinkingBlock) -> str:
    """The text of a field as it came, a placeholder in front of the thought with it; tags are the writer's."""
    return block.opening + block.thought if block.thought and block.source_field != CONTENT else block.thought
