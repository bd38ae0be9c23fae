"""The judge: a request body and the ledger, to a verdict. Pure; the first refusal counts, shape before signatures.

Signatures that come back must be on the first call of each open step, genuine, in their place, and there once.
*Missing* is Google's rule, and so is *genuine* for the open turn. For older turns, for signatures on anything but
calls, for another model's, for a place other than their own, and for repetition Google only answers worse; the
referee refuses. Models that look at no signature (2.5) are let alone: recorded, accepted requests to them repeat one.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator, Mapping

from ..jsons import as_text
from ..verdict import Verdict, first
from .errors import refuse, refuse_value
from .ledger import Ledger, Mint, octets
from .profiles import (
    BAD_BUDGET,
    BAD_LEVEL,
    BOTH_CONTROLS,
    LEVELS,
    NO_BUDGET,
    NO_LEVEL,
    NO_OFF,
    NO_THINKING,
    Host,
    Profile,
)
from .request import Content, Part, Request
from .schema import DATA, read_body

_LEVEL_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel"
_PLACE = "generation_config.thinking_config"
# -1 leaves the budget to the model.
_AUTOMATIC = -1


NO_CONTENTS = "* GenerateContentRequest.contents: contents is not specified\n"
NO_PARTS = "* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n"
NO_DATA = (
    "* GenerateContentRequest.contents[{index}].parts[{part}].data: required oneof field 'data' must have one "
    "initialized field\n"
)
BAD_ROLE = "Please use a valid role: user, model."
COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
ANSWER_TURN = "Please ensure that function response turn comes immediately after a function call turn."
LAST = "Please ensure that multiturn requests end with a user turn or a function response turn."  # text unconfirmed
WRONG_ID = (
    "Function response {name} `{value}` does not match a function call of the function call turn."  # text unconfirmed
)

Call = Mapping[str, object]
NOT_BASE64 = "Invalid value at '{place}.thought_signature' (TYPE_BYTES), Base64 decoding failed for \"{value}\""
REPEATED = "Thought signature at {place} repeats that of an earlier part."  # text unconfirmed
MOVED = "Thought signature at {place} belongs to another part."  # text unconfirmed
LATE_DUMMY = "Thought signature at {place} is not on the first function call of its step."  # text unconfirmed
OWN = (NO_THINKING, NO_BUDGET, REPEATED, MOVED, LATE_DUMMY, LAST, WRONG_ID)


def judge(host: Host, profile: Profile, body: Mapping[str, object], ledger: Ledger) -> Verdict:
    """The verdict on a request to the model; reads the ledger and changes nothing."""
    read = read_body(body)
    return read if isinstance(read, Verdict) else judge_request(Request(host, profile, read), ledger)


def judge_request(request: Request, ledger: Ledger) -> Verdict:
    """The verdict on a request whose names are known to be right."""
    return first(_faults(request, ledger))


def _faults(request: Request, ledger: Ledger) -> Iterator[Verdict]:
    yield from _shape_faults(request)
    yield from _thinking_faults(request)
    yield from _order_faults(request)
    if request.profile.validates:
        yield from _signature_faults(request, ledger)


def _shape_faults(request: Request) -> Iterator[Verdict]:
    """Refuse contents without parts, parts without data or with two kinds of it, and roles that do not exist."""
    if not request.contents:
        yield refuse(NO_CONTENTS, "no contents")
    for content in request.contents:
        if content.role not in ("user", "model", "function") and (content.role or request.host.needs_role):
            yield refuse(BAD_ROLE, f"bad role at contents[{content.index}]")
        if not content.parts:
            yield refuse(NO_PARTS.format(index=content.index), f"no parts at contents[{content.index}]")
        for part in content.parts:
            yield from _part_faults(content, part)


def _order_faults(request: Request) -> Iterator[Verdict]:
    """Refuse calls without their answers directly after them, answers without calls, and a model's last word.

    Contents of the model in a row are one call turn, as recorded; answers must come in one content.
    """
    called: list[Call] = []
    for content in request.contents:
        if content.role == "model":
            if content.calls and not content.index:
                yield refuse(CALL_TURN, "call before any user turn")
            called += [call for _, call in content.calls]
            continue
        yield from _answer_faults(request, called, content)
        called = []
    last = request.contents[-1]
    if last.role == "model":
        place = f"contents[{last.index}]"
        yield refuse(COUNT, f"unanswered call at {place}") if called else refuse(LAST, f"model ends at {place}")


def _part_faults(content: Content, part: Part) -> Iterator[Verdict]:
    place = f"contents[{content.index}].parts[{part.index}]"
    kinds = [name for name in DATA if name in part.raw]
    if len(kinds) > 1:
        text = f"Invalid value at '{place}' (oneof), oneof field 'data' is already set. Cannot set '{kinds[1]}'"
        yield refuse(text, f"two kinds of data at {place}")
    # A part that is nothing but a signature was accepted in recordings.
    if not kinds and not part.signature:
        yield refuse(NO_DATA.format(index=content.index, part=part.index), f"no data at {place}")
    if part.call is not None and content.role != "model":
        yield refuse(CALL_TURN, f"misplaced call at {place}")
    if part.answer is not None and content.role == "model":
        yield refuse(ANSWER_TURN, f"misplaced answer at {place}")


def _answer_faults(request: Request, called: list[Call], content: Content) -> Iterator[Verdict]:
    if content.answers and not called:
        yield refuse(ANSWER_TURN, f"answer without a call at contents[{content.index}]")
    if len(content.answers) != len(called) and (content.answers or request.profile.validates):
        # 2.5 took a call whose result came as text; it is recorded.
        yield refuse(COUNT, f"unanswered call at contents[{content.index - 1}]")
    # Ids decide where the calls have them, names where not.
    by = "id" if all(as_text(call.get("id")) for call in called) else "name"
    wanted = Counter(as_text(call.get(by)) for call in called)
    for answer in content.answers:
        found = as_text(answer.get(by))
        if not wanted[found]:
            yield refuse(WRONG_ID.format(name=by, value=found), f"answer without a call at contents[{content.index}]")
        wanted[found] -= 1


def _thinking_faults(request: Request) -> Iterator[Verdict]:
    """Refuse to configure what the model does not do, two controls, and values that it does not take."""
    profile, thinking = request.profile, request.thinking
    if thinking and not profile.levels and profile.budgets is None:
        yield refuse(NO_THINKING.format(model=profile.model), "thinking is not supported")
    if {"thinkingLevel", "thinkingBudget"} <= thinking.keys():
        yield refuse(BOTH_CONTROLS, "both thinking controls")
    if "thinkingLevel" in thinking:
        level = as_text(thinking["thinkingLevel"]).upper()
        if level not in LEVELS:
            yield refuse_value(f"{_PLACE}.thinking_level", _LEVEL_TYPE, f'"{thinking["thinkingLevel"]}"')
        if level not in profile.levels:
            text = BAD_LEVEL.format(level=level) if profile.levels else NO_LEVEL
            yield refuse(text, "unsupported thinking level")
    if "thinkingBudget" in thinking:
        yield from _budget_faults(profile, thinking["thinkingBudget"])
    if not isinstance(thinking.get("includeThoughts", False), bool):
        yield refuse_value(f"{_PLACE}.include_thoughts", "TYPE_BOOL", f'"{thinking["includeThoughts"]}"')


def _budget_faults(profile: Profile, value: object) -> Iterator[Verdict]:
    """Refuse a budget where the model takes none, one out of its range, and 0 where thinking cannot be off."""
    if not isinstance(value, int) or isinstance(value, bool):
        yield refuse_value(f"{_PLACE}.thinking_budget", "TYPE_INT32", f'"{value}"')
    elif profile.budgets is None:
        yield refuse(NO_BUDGET, "unsupported thinking budget")
    elif value == 0:
        if not profile.off:
            yield refuse(NO_OFF, "thinking cannot be off")
    elif value != _AUTOMATIC and not profile.budgets[0] <= value <= profile.budgets[1]:
        low, high = profile.budgets
        yield refuse(BAD_BUDGET.format(budget=value, low=low, high=high), "thinking budget out of range")


def _signature_faults(request: Request, ledger: Ledger) -> Iterator[Verdict]:
    signed = list(_signed(request))
    for content in request.open_turn:
        for part, call in content.calls[:1]:
            if not part.signature:
                text = request.host.missing.format(name=call.get("name"), position=content.index + 1)
                yield refuse(text, f"missing at contents[{content.index}]")
    # Genuine: issued by this model, here or at the other Google host.
    for part, place in signed:
        mint = ledger.find(part.signature)
        if mint is None and octets(part.signature) == part.signature.encode():
            yield refuse(NOT_BASE64.format(place=place, value=part.signature), f"changed at {place}")
        if mint is None or mint.model != request.profile.reported:
            yield refuse(request.host.invalid, f"{'changed' if mint is None else 'foreign'} at {place}")
    for part, place in signed:
        mint = ledger.find(part.signature)
        if mint is not None and not _in_place(part, mint):
            yield refuse(MOVED.format(place=place), f"moved at {place}")
    # Nothing asks for a dummy anywhere but on the first call of a step.
    for content in request.contents:
        asked = content.calls[0][0] if content.calls else None
        for part in content.parts:
            if part is not asked and is_dummy(request.host, part.signature):
                place = _place(content, part)
                yield refuse(LATE_DUMMY.format(place=place), f"dummy at {place}")
    # Google bills a signature on two parts twice.
    seen: set[bytes] = set()
    for part, place in signed:
        value = octets(part.signature)
        if value in seen:
            yield refuse(REPEATED.format(place=place), f"repeated at {place}")
        seen.add(value)


def is_dummy(host: Host, signature: str) -> bool:
    """Whether the signature is a documented stand-in, literal or base64-encoded."""
    return signature in host.dummies or signature in {
        base64.b64encode(known.encode()).decode() for known in host.dummies
    }


def _signed(request: Request) -> Iterator[tuple[Part, str]]:
    """The parts with a signature that must be genuine, and their places."""
    for content in request.contents:
        for part in content.parts:
            if part.signature and not is_dummy(request.host, part.signature):
                yield part, _place(content, part)


def _in_place(part: Part, mint: Mint) -> bool:
    if mint.call:
        return part.call is not None and part.call.get("name") == mint.call
    if part.call is not None:
        return False
    # Recorded: the signature of a text on a part of its own, before the text.
    return mint.text is None or not part.text or part.text == mint.text


def _place(content: Content, part: Part) -> str:
    return f"contents[{content.index}].parts[{part.index}]"
