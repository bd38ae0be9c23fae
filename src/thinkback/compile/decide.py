"""Decide: what goes of one response, block by block, and why.

``PASSES`` is the whole of it, in the order of precedence: each pass gets the pieces of a response and gives them back
with what it decided; what one has decided no later one decides again. A pass sees all pieces of a response, because the
response is the unit: it goes whole or not at all, and no opaque value goes twice. Must not: write bytes.

How the reasoning of a tool loop is kept: the rule's words ``open_turn``, ``later`` and ``scope`` say what its endpoint
demands of a response in its place (``Policy.stance``), and the pass ``required`` lets that go whatever is set.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from thinkback.compile import forms, translate
from thinkback.compile.guard import Verdict
from thinkback.compile.pieces import BREAKS, LOST, Case, Cause, Piece
from thinkback.compile.policy import Policy, ResponseContext, Stance
from thinkback.compile.prefix_binding import Link
from thinkback.compile.units import Changes, ResponseUnit
from thinkback.errors import ReplayRefused
from thinkback.model import canonical
from thinkback.model.blocks import (
    Block,
    Carrier,
    Media,
    Text,
    ThinkingBlock,
    ToolCall,
    Unknown,
    carriers_of,
    is_place,
    opaque_values,
)
from thinkback.model.plan import NOTHING, Carry
from thinkback.model.target import DecisionAction

Kind: TypeAlias = tuple[Hashable, ...]
Precedents: TypeAlias = dict[Kind, list[Piece]]
# Of a longer response its kind would be as long; those are few.
_FEW = 8
Pass: TypeAlias = Callable[[list[Piece], Case], list[Piece]]

_MARKER = "a placeholder of the provider, not reasoning"
_REPEATS = "repeats another block of the response"
_INVALID = "a refused request named it invalid for this target"
_SENT = "its opaque value goes out with an earlier block, and never twice"
_EMPTY = "empty reasoning is omitted"
_NOT_KEPT = "nothing of it was kept"
_UNSIGNED = "without its opaque value it must not go back"
_DANGLING = "nothing follows it in its response, and the endpoint refuses reasoning without a follower"
_NO_PLACE = "the endpoint has no place for it on this block"
_UNTIED = "an id ties it to reasoning of its response that does not go"
# What lets a model go on with its thoughts; other carriers name or label an item.
_OF_REASONING = frozenset({"signature", "encrypted", "redacted", "thought_signature"})
# What a program may send back of an item that is no reasoning, whoever made it.
_OF_AN_ITEM = frozenset({"encrypted", "item_id", "phase"})
_NAME = "item_reference"


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What is decided of one response: its pieces, the blocks to write, and what the message takes along beside them.

    ``calls`` are the ids its calls go under; ``parts`` as in ``DecisionLog``. ``link`` is what it means for a chain of
    reasoning that must not have a gap. ``off``: turn thinking off. ``flat`` is why it goes as text, empty where it goes
    as what it was.
    """

    pieces: list[Piece]
    blocks: tuple[Block, ...]
    carry: Carry
    calls: tuple[str, ...] = ()
    parts: Mapping[str, int] = {}
    link: Link = ""
    off: bool = False
    flat: str = ""


def decide(case: Case, precedents: Precedents) -> Answer:
    """What of a response goes. Raises ``ReplayRefused`` where the endpoint demands what may not be sent.

    Of responses of one kind the passes are asked once; ``precedents`` has what they said, for one policy.
    """
    kind = _kind_of(case)
    known = precedents.get(kind) if kind is not None else None
    if known is not None:
        pieces = _like(known, case.unit)
    else:
        pieces = pieces_of(case.unit)
        for each in PASSES:
            pieces = each(pieces, case)
        if kind is not None:
            precedents[kind] = pieces
    missing = pieces[-1].cause if pieces and pieces[-1].block is None else ""
    if missing == "flatten":
        return Answer(pieces, (), NOTHING, flat=pieces[-1].reason)
    blocks, carry = forms.blocks_of(pieces, case), forms.carry_of(pieces, case)
    parts: Mapping[str, int] = {}
    link: Link = ""
    if case.native:
        parts, link = forms.parts_of(pieces, blocks), link_of(pieces, case)
    calls: tuple[str, ...] = ()
    if case.unit.calls:
        blocks, calls = _renamed(blocks, case)
    return Answer(pieces, blocks, carry, calls, parts, link, missing == "thinking_off")


def _kind_of(case: Case) -> Kind | None:
    """All that the passes look at, of a response that carries nothing and nobody changed; ``None`` for others."""
    unit, policy = case.unit, case.policy
    if unit.opaque or not unit.plain or unit.changes is not None or not case.same or policy.invalid:
        return None
    if len(unit.blocks) > _FEW or policy.rule.empty_details:
        return None
    kinds: list[Hashable] = []
    for block in unit.blocks:
        if type(block) is ThinkingBlock:
            if block.wire:
                return None
            thought = block.thought
            said = 0 if not thought else 1 if thought.isspace() else 2
            kinds.append((block.source_field, block.kind, block.is_hidden, block.marker, block.opening, said))
        else:
            kinds.append(type(block) is Text and block.text != "")
    return case.stance, case.verdict, case.form, *kinds


def _like(known: Sequence[Piece], unit: ResponseUnit) -> list[Piece]:
    """The blocks of a response as those of another of its kind were decided."""
    pieces: list[Piece] = []
    at = 0
    for piece in known:
        if piece.block is None:
            pieces.append(piece)
            continue
        block = unit.blocks[at]
        out = block if piece.out is not None else None
        pieces.append(Piece(unit.hashes[at], block, piece.state, out, piece.reason, piece.cause, piece.beside))
        at += 1
    return pieces


def pieces_of(unit: ResponseUnit) -> list[Piece]:
    """The blocks of a response, with nothing decided."""
    pieces: list[Piece] = []
    for hash, block in zip(unit.hashes, unit.blocks, strict=True):
        if type(block) is ThinkingBlock:
            pieces.append(Piece(hash, block, "open"))
        else:
            pieces.append(Piece(hash, block, "beside", block))
    return pieces


def case_of(
    unit: ResponseUnit, place: ResponseContext, policy: Policy, verdict: Verdict, seen: Container[str], bound: str
) -> Case:
    """A response in its place, with what people made of it. ``seen`` and ``bound`` as in ``Case``."""
    form = forms.form_of(policy, unit.thoughts)
    stance = policy.stance(place)
    changes = unit.changes
    if changes is None:
        return Case(unit, policy, stance, form, verdict, seen, bound)
    void, unlifted = changes.voided(required=stance.required), ""
    if stance.required and changes.edited:
        unit = _as_made(unit, changes)
    lifted = lifted_stance(changes, place, policy)
    if lifted is not None:
        # What is opaque goes whole or not at all.
        if form in ("native", "details"):
            stance = lifted
        else:
            unlifted = stance.against
            wanted = any(hash in changes.lifted and not _is_away(hash, changes) for hash, _ in unit.thoughts)
            stance = lifted if wanted else stance
    return Case(unit, policy, stance, form, verdict, seen, bound, void, unlifted)


def _is_away(hash: str, changes: Changes) -> bool:
    return hash in changes.lost or hash in changes.skipped


def lifted_stance(changes: Changes, place: ResponseContext, policy: Policy) -> Stance | None:
    """What holds for reasoning that settings are against and an annotation asks for, if that lets it go."""
    if not changes.lifted or not policy.stance(place).against:
        return None
    lifted = policy.lifted(place)
    return None if lifted.against else lifted


def remarks_of(changes: Changes, *, required: bool, lifted: bool) -> Mapping[str, str]:
    """What is remarked about blocks that go, by commit hash."""
    if required:
        made = {**changes.skipped, **{hash: away.reason for hash, away in changes.edited.items()}}
        return {hash: f"; {why}, but what is required goes as it was made" for hash, why in made.items()}
    return {hash: f"; {why}" for hash, why in changes.lifted.items()} if lifted else {}


def _as_made(unit: ResponseUnit, changes: Changes) -> ResponseUnit:
    """A response with its reasoning as it was made: what is required is the model's own, not what people made of it."""
    before = {hash: away.block for hash, away in changes.edited.items()}
    twin = unit.copy(unit.owner)
    twin.blocks, twin.thoughts, twin.calls, twin.hashes, twin.plain = (), (), (), (), True
    pairs = zip(unit.hashes, unit.blocks, strict=True)
    twin.put(unit.hashes, [before.get(hash, block) for hash, block in pairs])
    return twin


def overridden(pieces: list[Piece], case: Case) -> list[Piece]:
    """What people said of commits: skipped, erased and changed reasoning stays away, unless required goes as it was."""
    changes = case.unit.changes
    if changes is None:
        return pieces
    return [_overridden(piece, case, changes) if piece.state == "open" else piece for piece in pieces]


def _overridden(piece: Piece, case: Case, changes: Changes) -> Piece:
    if case.native and piece.thought.marker:
        return piece
    if piece.hash in changes.lost:
        return piece.drop(changes.lost[piece.hash], "erased")
    if piece.hash in changes.skipped and not case.stance.required:
        return piece.drop(changes.skipped[piece.hash], "skipped")
    if case.native:  # of what is opaque all is valid or nothing
        return piece.drop(case.void, "changed") if case.void and case.verdict.carriers else piece
    return piece.drop(case.unlifted, "against") if case.unlifted and piece.hash not in changes.lifted else piece


def unwanted(pieces: list[Piece], case: Case) -> list[Piece]:
    """Where a message field is not wanted in any form, that is the reason, whether it would be valid or not."""
    stance = case.stance
    if case.native or stance.tells or not stance.against:
        return pieces
    return [piece.drop(stance.against, "against") if piece.state == "open" else piece for piece in pieces]


def valid(pieces: list[Piece], case: Case) -> list[Piece]:
    """What is not valid here is never sent: another's, void, bound to what changed, sent before, or no reasoning."""
    if not case.unit.thoughts:
        return pieces
    return _valid_in_place(pieces, case) if case.native else _valid_in_message(pieces, case)


def _valid_in_place(pieces: list[Piece], case: Case) -> list[Piece]:
    here: set[str] = set()
    judged: list[Piece] = []
    signed = bool(case.policy.rule.need_signature)
    for piece in pieces:
        if isinstance(piece.block, ThinkingBlock):
            carriers = carriers_of(piece.block)
            # A signature that nobody demands may be the same on every block.
            values = opaque_values([each for each in carriers if signed or each.kind != "signature"])
            if piece.state == "open":
                piece = _judged_in_place(piece, piece.block, carriers, values, here, case)
            here.update(values)
        judged.append(piece)
    return judged


def _judged_in_place(
    piece: Piece, block: ThinkingBlock, carriers: Sequence[Carrier], values: Sequence[str], here: set[str], case: Case
) -> Piece:
    verdict, rule = case.verdict, case.policy.rule
    if block.marker:
        return piece.drop(_MARKER, "marker")
    if piece.hash in case.policy.invalid:
        return piece.drop(_INVALID, "invalid")
    if not verdict.carriers and (carriers or not (case.same and verdict.text)):
        return piece.drop(verdict.reason, "foreign")
    if case.bound:
        return piece.drop(case.bound, "bound")
    if not carriers and not block.thought:
        return piece.drop(_NOT_KEPT, "not_kept") if is_place(block) else piece.drop(_EMPTY, "empty")
    unsigned = not any(carrier.kind not in ("item_id", "phase") for carrier in carriers)
    if unsigned and any(fnmatch.fnmatchcase(block.source_field, kind) for kind in rule.need_signature):
        return piece.drop(_UNSIGNED, "unsigned")
    if any(value in case.seen for value in values):
        return piece.drop(_SENT, "sent")
    return piece.drop(_SENT, "twice") if any(value in here for value in values) else piece


def _valid_in_message(pieces: list[Piece], case: Case) -> list[Piece]:
    own = forms.own_field(case.form)
    doubled = own != "" and _is_doubled(pieces, own)
    here: set[str] | None = None
    judged: list[Piece] = []
    for piece in pieces:
        block = piece.block
        if piece.state == "open" and isinstance(block, ThinkingBlock):
            carries = block.signature != "" or block.carriers != ()
            repeats = (doubled or block.is_hidden) and not (own and block.source_field == own)
            fault = _fault_in_message(piece.hash, block, case, repeats=repeats, carries=carries)
            if fault is not None:
                piece = piece.drop(*fault)
            elif carries and case.carries:
                opaque = opaque_values(carriers_of(block))
                here = _sent_beside(pieces, case) if here is None else here
                if not here.isdisjoint(opaque) or any(value in case.seen for value in opaque):
                    piece = piece.drop(_SENT, "sent")
                else:
                    here.update(opaque)
        judged.append(piece)
    return judged


def _is_doubled(pieces: Sequence[Piece], own: str) -> bool:
    """Whether the form's own field says the same as others beside it."""
    left = [piece.thought for piece in pieces if piece.state == "open"]
    return len(left) > 1 and any(block.is_hidden and block.source_field == own for block in left)


def _fault_in_message(
    hash: str, block: ThinkingBlock, case: Case, *, repeats: bool, carries: bool
) -> tuple[str, Cause] | None:
    if block.marker:
        return _MARKER, "marker"
    if repeats:
        return _REPEATS, "repeated"
    if hash in case.policy.invalid:
        return _INVALID, "invalid"
    if not case.verdict.text or (carries and not case.carries and not block.thought):
        return case.why_not, "foreign"
    return None


def _sent_beside(pieces: Sequence[Piece], case: Case) -> set[str]:
    """The opaque values that go out with blocks of this very message which are no reasoning."""
    found: set[str] = set()
    for piece in pieces:
        if piece.state == "beside" and piece.block is not None and piece.block.carriers:
            for carrier in piece.block.carriers:
                away = _against(piece.hash, piece.block, carrier, case, found, untied=False)
                found.update(() if away else opaque_values((carrier,)))
    return found


def required(pieces: list[Piece], case: Case) -> list[Piece]:
    """What the rule demands in this place goes, whatever is set: ``Stance.required``."""
    return _going(pieces, case) if case.stance.required else pieces


def stripped(pieces: list[Piece], case: Case) -> list[Piece]:
    """What settings or the endpoint are against stays away; the rest goes."""
    against = case.stance.against
    if not against:
        return _going(pieces, case)
    return [piece.drop(against, "against") if piece.state == "open" else piece for piece in pieces]


def _going(pieces: list[Piece], case: Case) -> list[Piece]:
    why = case.stance.why
    return [piece.go("goes", why) if piece.state == "open" else piece for piece in pieces]


def whole(pieces: list[Piece], case: Case) -> list[Piece]:
    """Where one opaque block in its place may not go, the others of the response are no use."""
    if not case.native:
        return pieces
    opaque = [piece for piece in pieces if isinstance(piece.block, ThinkingBlock) and carriers_of(piece.block)]
    fault = next((piece for piece in opaque if piece.state == "drop" and piece.cause != "twice"), None)
    if fault is None:
        return pieces
    reason = f"its response goes whole or not at all: {fault.reason}"
    return [
        piece.drop(reason, fault.cause) if piece.state == "goes" and carriers_of(piece.thought) else piece
        for piece in pieces
    ]


def followed(pieces: list[Piece], case: Case) -> list[Piece]:
    """Where the dialect demands a follower, reasoning that nothing written follows stays away."""
    if not (case.native and case.policy.rule.follower):
        return pieces
    last = max((at for at, piece in enumerate(pieces) if _follows(piece, case)), default=-1)
    behind = [piece.drop(_DANGLING, "dangling") if piece.state == "goes" else piece for piece in pieces[last + 1 :]]
    return [*pieces[: last + 1], *behind]


def _follows(piece: Piece, case: Case) -> bool:
    """Whether a block is no reasoning, says something, and is not one that stays away."""
    match piece.block:
        case Text() as block:
            return bool(block.text or block.carriers)
        case ThinkingBlock():
            return False
        case Unknown() as block:
            gone = piece.hash in case.policy.invalid
            return not gone and not any(value in case.seen for value in opaque_values(block.carriers))
        case _:
            return True


def link_of(pieces: Sequence[Piece], case: Case) -> Link:
    """What the reasoning of a response means for a chain that must not have a gap."""
    if case.verdict.carriers and any(_breaks(piece, case) for piece in pieces):
        return "broken"
    going = (piece.thought for piece in pieces if piece.state in _IN_PLACE and isinstance(piece.block, ThinkingBlock))
    return "sent" if any(carriers_of(block) for block in going) else ""


def _breaks(piece: Piece, case: Case) -> bool:
    if piece.cause in BREAKS:
        return True
    if not case.policy.rule.prefix_bound:
        return False
    # Mostly what is stripped stands before all that is sent; an annotation may ask for something before it.
    # What stood in a text is part of what stands before later blocks, and its absence is told from that.
    return piece.cause == "not_kept" or (piece.cause == "against" and piece.thought.source_field != forms.CONTENT)


def foreign(pieces: list[Piece], case: Case) -> list[Piece]:
    """Readable text of another model's reasoning goes as prose where ``reasoning.foreign`` asks for it."""
    mode = case.policy.settings.foreign
    if mode == "drop" or (case.stance.against and not case.stance.tells):
        return pieces
    return [_as_prose(piece, mode, case.policy) if piece.cause == "foreign" else piece for piece in pieces]


def _as_prose(piece: Piece, mode: str, policy: Policy) -> Piece:
    block, reason = piece.thought, piece.reason
    if not block.thought.strip() or mode not in ("text", block.kind):
        return piece
    if policy.rule.forbid_foreign_text:
        made = piece.drop(f"{reason}; the endpoint refuses foreign reasoning as text", "foreign")
        return msgspec.structs.replace(made, beside=reason)
    action: DecisionAction = "summary" if block.kind == "summary" else "text"
    made = piece.go(action, f"{reason}; reasoning.foreign={mode} keeps its readable text", reason)
    return msgspec.structs.replace(made, cause="foreign")


def beside(pieces: list[Piece], case: Case) -> list[Piece]:
    """What is no reasoning: what it carries goes back inside it, or it is written without that.

    Items that nobody else can read go back to their maker only, or where nobody knows who made them.
    """
    if case.unit.plain and case.same:
        return pieces
    here: set[str] = set()
    untied = False
    if case.native:
        going = [piece.thought for piece in pieces if piece.state == "native"]
        here.update(value for block in going for each in carriers_of(block) for value in opaque_values((each,)))
        left = any(piece.state != "beside" and piece.cause not in ("", "marker") for piece in pieces)
        untied = case.policy.rule.tied and left and link_of(pieces, case) != "sent"
    return [_beside(piece, case, here, untied=untied) if piece.state == "beside" else piece for piece in pieces]


def _beside(piece: Piece, case: Case, here: set[str], *, untied: bool) -> Piece:
    block, lost = piece.block, ""
    assert block is not None
    away: list[str] = []
    left: list[Carrier] = []
    for carrier in block.carriers:
        reason = _against(piece.hash, block, carrier, case, here, untied=untied)
        lost = lost or reason
        away.append(reason)
        if not reason:
            left.append(carrier)
            here.update(opaque_values((carrier,)))
    item = isinstance(block, Unknown | Media)
    if item and not block.carriers and not (case.same and case.verdict.text):
        lost = case.verdict.reason
    told = Text(block.text) if isinstance(block, Unknown) and block.text else None
    out = told if item and lost else _plain(block, left, case, changed=lost != "")
    return msgspec.structs.replace(piece, out=out, reason=lost, away=tuple(away))


def _plain(block: Block, left: Sequence[Carrier], case: Case, *, changed: bool) -> Block:
    """A block with the carriers that may go, and without what its maker put around it where one may not."""
    if (case.verdict.carriers or case.is_clients) and not changed:
        return block
    if case.same and not changed and isinstance(block, ToolCall) and block.wire and not _is_function(block):
        return block  # a kind of call that cannot be rebuilt
    plain = translate.block(block, case.same)
    return msgspec.structs.replace(plain, carriers=tuple(left)) if changed and left else plain


class _Kind(msgspec.Struct):
    type: Any = "function"


def _is_function(call: ToolCall) -> bool:
    kind: _Kind = canonical.decode(call.wire, _Kind)
    return kind.type in ("function", "function_call", "tool_use")


def _against(hash: str, block: Block, carrier: Carrier, case: Case, here: Container[str], *, untied: bool) -> str:
    """Why a carrier of something that is no reasoning stays away, or nothing; ``here`` goes out in this message."""
    if hash in case.policy.invalid:
        return _INVALID
    if not case.verdict.carriers:
        is_theirs = case.is_clients and not case.void and carrier.kind in _OF_AN_ITEM
        return "" if is_theirs and not _is_name(block) else case.verdict.reason
    if case.void:
        return case.void
    if carrier.kind in _OF_REASONING and (case.bound or case.stance.against):
        return case.bound or case.stance.against
    if untied and carrier.kind == "item_id":
        return _UNTIED
    if any(value in case.seen or value in here for value in opaque_values((carrier,))):
        return _SENT
    return "" if case.policy.form == "native" or _has_place(block, carrier) else _NO_PLACE


def _is_name(block: Block) -> bool:
    """Tell if an item only names another one: the host would fill in what any key of its account said."""
    item = canonical.decode_lenient(block.wire) if isinstance(block, Unknown) else None
    return isinstance(item, dict) and (item.keys() <= {"type", "id"} or item.get("type") in (None, _NAME))


def _has_place(block: Block, carrier: Carrier) -> bool:
    """Whether a message field can hold it: inside a verbatim item, or Gemini's signature on the message."""
    if isinstance(block, Text):
        return carrier.kind == "thought_signature"
    return isinstance(block, Unknown) or (isinstance(block, ToolCall) and bool(block.wire))


def fill(pieces: list[Piece], case: Case) -> list[Piece]:
    """Where the endpoint demands something and nothing is left to send, down the rule's ``missing`` list."""
    stance, policy = case.stance, case.policy
    if case.native:
        # A stand-in that was sent while the turn was under way stays, so that the next request begins as the last did.
        if not stance.against and policy.missing and _needs_dummy(pieces, case):
            return _filled(pieces, case)
        going = any(piece.state in ("native", "tags") for piece in pieces)
        if not stance.fill or policy.rule.signed_calls or going or not _is_missing(pieces, case):
            return pieces
        return _filled(pieces, case, flattens=_is_known(case))
    if stance.required and _needs_dummy(pieces, case):
        return _filled(pieces, case)
    if not stance.fill or policy.rule.signed_calls or _sends(pieces, case):
        return pieces
    return _filled(pieces, case)


def _sends(pieces: Sequence[Piece], case: Case) -> bool:
    """Whether reasoning goes in a form that the endpoint takes for it: where it demands a field, tags are none."""
    if any(
        piece.state in ("field", "native") or (piece.state == "tags" and case.policy.form != "field")
        for piece in pieces
    ):
        return True
    return bool(forms.told_in_field(pieces, case)) or forms.sends_empty_details(case)


def _is_missing(pieces: Sequence[Piece], case: Case) -> bool:
    demanded = case.policy.restored or case.policy.everywhere
    return demanded or not case.verdict.carriers or any(piece.cause in LOST for piece in pieces)


def _is_known(case: Case) -> bool:
    """Whether the endpoint could miss reasoning of this exchange: not if it is another's, or people changed it."""
    changes = case.unit.changes
    away = changes.away if changes is not None else ()
    return case.verdict.carriers and all(isinstance(gone.block, ThinkingBlock) for gone in away)


def _needs_dummy(pieces: Sequence[Piece], case: Case) -> bool:
    """Whether the first call lacks the signature that the endpoint demands of it, or of a thought before it."""
    if not (case.policy.rule.signed_calls and case.unit.calls):
        return False
    blocks = forms.blocks_of(pieces, case)
    first = next(block for block in blocks if isinstance(block, ToolCall) or _is_signed(block))
    return isinstance(first, ToolCall) and not any(carrier.kind == "thought_signature" for carrier in first.carriers)


def _is_signed(block: Block) -> bool:
    return isinstance(block, ThinkingBlock) and block.signature != ""


def _filled(pieces: list[Piece], case: Case, *, flattens: bool = True) -> list[Piece]:
    """``pieces`` with what stands in; without ``flattens`` the response does not go as text all the same."""
    policy, stance = case.policy, case.stance
    lost = _first_lost(pieces, case)
    fault = (lost.beside or lost.reason) if lost is not None else ""
    why = stance.against or fault
    why = f"its own stays away: {why}" if why else "the response brought none that can go back"
    for step in policy.missing:
        match step:
            case "placeholder":
                reason = f"the endpoint demands reasoning on this message; {why}"
                return [*pieces, Piece("", None, "placeholder", reason=reason, text=policy.placeholder)]
            case "dummy":
                reason = f"the endpoint demands a signature on the first call; {why}"
                return [*pieces, Piece("", None, "dummy", reason=reason)]
            case "thinking-off-for-this-turn":
                reason = f"thinking is off for this turn: the endpoint demands reasoning; {why}"
                return [*pieces, Piece("", None, "drop", reason=reason, cause="thinking_off")]
            case "flatten-exchange-to-text":
                reason = f"the exchange goes as text: the endpoint demands its reasoning, and {why}"
                return [*pieces, Piece("", None, "drop", reason=reason, cause="flatten")] if flattens else pieces
            case "none":
                return pieces
    if lost is None or not stance.required:
        return pieces
    target = policy.target
    raise ReplayRefused(
        f"{target.endpoint.id} demands the reasoning of block {lost.hash[:12]}, which may not be sent: {fault}",
        details={"block": lost.hash, "rule": policy.rule.id, "endpoint": target.endpoint.id, "model": target.model},
        next_actions=("use the model that wrote this turn", "finish or fork the turn before you switch the model"),
    )


def _first_lost(pieces: Sequence[Piece], case: Case) -> Piece | None:
    """The first piece of genuine reasoning that could not be sent; in a message, what was erased comes first."""
    lost = [piece for piece in pieces if piece.cause in LOST]
    if not case.native:
        lost.sort(key=lambda piece: piece.cause != "erased")
    return lost[0] if lost else None


def _renamed(blocks: tuple[Block, ...], case: Case) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """The blocks with their calls under ids that are given, and given once; and those ids."""
    unit, policy = case.unit, case.policy
    blocks = translate.fitted_calls(blocks, policy.custom)
    native = policy.form == "native"
    # A response that people changed is none that the provider knows: nothing must tie its calls to one.
    anew = native and unit.changes is not None and unit.changes.void != "" and unit.thoughts != ()
    ids = translate.call_ids(unit, policy.target.endpoint.dialect, anew=anew)
    if ids == tuple(call.id for call in unit.calls):
        return blocks, ids
    left = iter(ids)
    return tuple(
        translate.renamed(block, next(left), not native) if isinstance(block, ToolCall) else block for block in blocks
    ), ids


_IN_PLACE = frozenset({"goes", "native", "tags"})

PASSES: tuple[Pass, ...] = (
    overridden,
    unwanted,
    valid,
    required,
    stripped,
    whole,
    followed,
    foreign,
    forms.formed,
    beside,
    fill,
)
"""The precedence, first to last: the first that speaks about a piece decides. ``valid`` beats ``required``, which beats
every setting; ``overridden`` comes first to say why a block is not what was made, and yields to what is required.
"""
