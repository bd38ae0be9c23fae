"""The forms reasoning goes back in: in its place, in a message field, as tags in ``content``, as ``reasoning_details``.

What the pieces that go come to: the blocks of the message and what it carries beside them; and as prose what a person
wants said of reasoning that another model gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from thinkback.compile.pieces import Case, Piece
from thinkback.compile.policy import Policy
from thinkback.compile.units import ResponseUnit, Thought
from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall
from thinkback.model.plan import NOTHING, Carry
from thinkback.model.rule import Form
from thinkback.model.slices import is_sliced, whole
from thinkback.model.target import model_matches

DETAILS, CONTENT = "reasoning_details", "content"
_OWN_FIELD: dict[Form, str] = {"details": DETAILS, "tags": CONTENT}
_EMPTY = "empty reasoning is omitted"
_BESIDE_TAGS = "the endpoint has no place for it beside tags"


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


def field_name(policy: Policy, thoughts: Sequence[ThinkingBlock]) -> str:
    """The field's name: the rule's, else the one the text came in, else the commonest."""
    if policy.field:
        return policy.field
    received = (block.source_field for block in thoughts)
    return next((name for name in received if name and name not in (DETAILS, CONTENT)), "reasoning_content")


def formed(pieces: list[Piece], case: Case) -> list[Piece]:
    """How that goes which goes."""
    going = [piece.thought for piece in pieces if piece.state == "goes"]
    if not going:
        return pieces
    match case.form:
        case "field":
            return _in_field(pieces, going, case)
        case "native":
            return [_in_place(piece) if piece.state == "goes" else piece for piece in pieces]
        case "tags":
            return _in_tags(pieces, going)
        case _:
            return _in_details(pieces, case)


def _in_place(piece: Piece) -> Piece:
    block = piece.thought
    if block.source_field == CONTENT and not block.wire:
        return piece.stay("tags", f"goes back as tags in its text: {piece.reason}")
    return piece.stay("native", f"goes back as it came: {piece.reason}")


def _in_field(pieces: list[Piece], going: list[ThinkingBlock], case: Case) -> list[Piece]:
    """All text in one message field: the rule's, or the one it came in."""
    if not _joined(going):
        return [piece.drop(_EMPTY, "empty") if piece.state == "goes" else piece for piece in pieces]
    name = field_name(case.policy, going)
    beside = f"the endpoint has no place for it beside {name}"
    return [
        piece.go("field", f"goes back in {name}: {piece.reason}", beside) if piece.state == "goes" else piece
        for piece in pieces
    ]


def _in_tags(pieces: list[Piece], going: list[ThinkingBlock]) -> list[Piece]:
    """The slices of ``content`` exactly as they came; text that came elsewhere goes between tags of its own."""
    tagged = [block for block in going if block.source_field == CONTENT]
    text = _joined(tagged or going)
    return [_tagged(piece, text, has_own=tagged != []) if piece.state == "goes" else piece for piece in pieces]


def _tagged(piece: Piece, text: str, *, has_own: bool) -> Piece:
    if has_own and piece.thought.source_field != CONTENT:
        made = piece.drop("content has tags of its own, and there is no place beside them", "no_place")
    elif text:
        made = piece.go("tags", f"goes back as tags in content: {piece.reason}", _BESIDE_TAGS)
    else:
        made = piece.drop(_EMPTY, "empty")
    # Where any of them go, the writer finds each in its place.
    return msgspec.structs.replace(made, out=piece.block) if text else made


class _Entry(msgspec.Struct):
    """What the rules about details look at; hosts put anything into any of it."""

    type: Any = ""
    format: Any = None
    signature: Any = None


def _in_details(pieces: list[Piece], case: Case) -> list[Piece]:
    """The entries unmodified, and text beside them where the rule wants it; other origins' as text alone."""
    made = [_entry(piece, case) if piece.state == "goes" else piece for piece in pieces]
    loose = [piece.thought for piece in made if piece.state == "goes"]
    if not loose:
        return made
    has_entries = any(piece.state == "native" for piece in made)
    field = case.policy.field
    against = "" if _joined(loose) else _EMPTY
    if not against and not field:
        against = f"the endpoint takes no text {'beside' if has_entries else 'without'} its details"
    return [_loose(piece, against, field) if piece.state == "goes" else piece for piece in made]


def _loose(piece: Piece, against: str, field: str) -> Piece:
    if against:
        return piece.drop(against, "no_place")
    beside = "its origin is not known" if piece.thought.source_field == DETAILS else "text goes back without it"
    return piece.go("field", f"goes back in {field}: {piece.reason}", beside)


def _entry(piece: Piece, case: Case) -> Piece:
    """An entry that goes back, or may not; what is none is left."""
    block, rule = piece.thought, case.policy.rule
    if block.source_field != DETAILS or not block.wire:
        return piece
    entry: _Entry = canonical.decode(block.wire, _Entry)
    kind = entry.type if isinstance(entry.type, str) else ""
    format = entry.format if isinstance(entry.format, str) else "unknown"
    if kind in rule.drop_details.get(format, ()):
        return piece.drop(f"{kind} of {format} must not go back", "unfit")
    signed = bool(entry.signature) and case.carries
    if kind == "reasoning.text" and format in rule.need_signature and not signed:
        return piece.drop(f"{kind} of {format} without its signature must not go back", "unfit")
    if not case.carries:
        return piece
    made = piece.go("native", f"entry goes back unmodified: {piece.reason}")
    echoes = case.policy.field in case.unit.header.repeats and model_matches(format, rule.repeat_text)
    return msgspec.structs.replace(made, echoed=True) if echoes else made


def sends_empty_details(case: Case) -> bool:
    """Whether the empty list that the response came with goes back."""
    if case.form in ("native", "field", "tags") or case.stance.against or not case.policy.rule.empty_details:
        return False
    return case.carries and '"reasoning_details":[]' in case.unit.header.message


def carry_of(pieces: Sequence[Piece], case: Case) -> Carry:
    """What the message takes along beside its blocks."""
    policy, carry = case.policy, NOTHING
    match case.form:
        case "native":
            pass
        case "field":
            texts = [piece.thought for piece in pieces if piece.state == "field"]
            if texts:
                carry = Carry((field_name(policy, texts), *policy.rule.also), _joined(texts))
            elif told := told_in_field(pieces, case):
                carry = Carry((field_name(policy, ()), *policy.rule.also), "\n".join(told))
        case "tags":
            texts = [piece.thought for piece in pieces if piece.state == "tags"]
            if texts:
                carry = Carry(text=_joined(texts), tagged=True)
        case _:
            carry = _details(pieces, case)
    return _standing_in(pieces, carry, policy)


def _details(pieces: Sequence[Piece], case: Case) -> Carry:
    entries = [piece for piece in pieces if piece.state == "native"]
    loose = [piece for piece in pieces if piece.state == "field" or piece.cause == "no_place"]
    said = loose or (entries if any(piece.echoed for piece in entries) else [])
    text = _joined([piece.thought for piece in said if piece.state != "drop"])
    has_list = bool(entries) or sends_empty_details(case)
    if not text and not has_list:
        return NOTHING
    details = tuple(piece.thought.wire for piece in entries) if has_list else None
    return Carry((case.policy.field,) if text else (), text, details)


def _standing_in(pieces: Sequence[Piece], carry: Carry, policy: Policy) -> Carry:
    """``carry`` with what stands in for reasoning that is missing, which comes last."""
    last = pieces[-1] if pieces else None
    if last is None or last.block is not None:
        return carry
    if last.state == "placeholder":
        fields = (field_name(policy, ()), *policy.rule.also)
        return msgspec.structs.replace(carry, fields=fields, text=last.text)
    return msgspec.structs.replace(carry, dummy=policy.rule.dummy) if last.state == "dummy" else carry


def told_in_field(pieces: Sequence[Piece], case: Case) -> list[str]:
    """The texts of another model's reasoning that go where the model's own would: in its field, if that is free."""
    if case.form != "field" or case.stance.against or any(piece.state == "field" for piece in pieces):
        return []
    return _foreign_texts(pieces)


def _foreign_texts(pieces: Sequence[Piece]) -> list[str]:
    return [piece.thought.thought for piece in pieces if piece.state in ("text", "summary")]


def blocks_of(pieces: Sequence[Piece], case: Case) -> tuple[Block, ...]:
    """The blocks of the message as they are written."""
    blocks = tuple([piece.out for piece in pieces if piece.out is not None])
    if case.policy.settings.foreign != "drop":
        told = _foreign_texts(pieces)
        if told and not told_in_field(pieces, case):
            blocks = _with_prose(told, case.unit, blocks)
    if case.native:
        blocks = whole(blocks)
        return tuple(sorted(blocks, key=_is_call)) if case.policy.rule.calls_last else blocks
    for _, thought in case.unit.thoughts:
        if thought.source_field == CONTENT:
            if not any(piece.state == "tags" for piece in pieces):
                blocks = _without_tags(blocks)
            break
    return whole(blocks) if is_sliced(blocks) else blocks


def parts_of(pieces: Sequence[Piece], blocks: Sequence[Block]) -> dict[str, int]:
    """Where among ``blocks`` those stand that go in their place as they are, by commit hash."""
    found: dict[str, int] = {}
    following = 0  # they mostly stand in their order
    for piece in pieces:
        if following < len(blocks) and blocks[following] is piece.out:
            at = following
        else:
            at = next((at for at, block in enumerate(blocks) if block is piece.out), -1)
        if at >= 0:
            found[piece.hash], following = at, at + 1
    return found


def _is_call(block: Block) -> bool:
    return isinstance(block, ToolCall)


def _without_tags(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Where tags are taken out of a text, the white space behind them goes with them."""
    at, first = _first_text(blocks)
    if first is None or first.text == first.text.lstrip():
        return blocks
    return (*blocks[:at], msgspec.structs.replace(first, text=first.text.lstrip()), *blocks[at + 1 :])


def _with_prose(told: Sequence[str], unit: ResponseUnit, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Reasoning of another model as plain prose before the first text."""
    model = unit.header.origin.requested_model or "another model"
    prose = "(Earlier reasoning, by {}: {})\n\n".format(model, "\n".join(told))
    at, first = _first_text(blocks)
    if first is None:
        return (Text(prose.rstrip()), *blocks)
    # Where tags are taken out of a text, the white space behind them goes with them.
    return (*blocks[:at], msgspec.structs.replace(first, text=prose + first.text.lstrip()), *blocks[at + 1 :])


def _first_text(blocks: Sequence[Block]) -> tuple[int, Text | None]:
    texts = ((at, block) for at, block in enumerate(blocks) if isinstance(block, Text) and not block.wire)
    return next(texts, (-1, None))


def _joined(thoughts: Sequence[ThinkingBlock]) -> str:
    """Pieces of one field joined as they were cut, different fields on lines of their own; empty if blank."""
    if len(thoughts) == 1:
        text = _text(thoughts[0])
        return text if not text.isspace() else ""
    pieces: list[str] = []
    last = ""
    for block in thoughts:
        if block.thought:
            pieces += ("\n", _text(block)) if pieces and block.source_field != last else (_text(block),)
            last = block.source_field
    text = "".join(pieces)
    return text if text.strip() else ""


def _text(block: ThinkingBlock) -> str:
    """The text of a field as it came, a placeholder in front of the thought with it; tags are the writer's."""
    return block.opening + block.thought if block.thought and block.source_field != CONTENT else block.thought
