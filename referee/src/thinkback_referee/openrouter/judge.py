"""The judge of the router: a chat request, then its reasoning parameters, then the details that come back.

Stricter than the router, which drops or forwards what it does not like: what its own SDK had to learn is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..chat.judge import order_faults, shape_faults
from ..chat.refusals import refuse
from ..jsons import as_text, compact, names
from ..verdict import Verdict, first
from .profiles import EFFORTS, HOST
from .request import Request, carrier_of, text_of

_TYPES = ("reasoning.text", "reasoning.summary", "reasoning.encrypted", "reasoning.server_tool_call")
# Texts unconfirmed.
UNKNOWN_KEY = 'Unrecognized key: "reasoning.{name}"'
TWO_CONTROLS = 'Only one of "reasoning.effort" and "reasoning.max_tokens" may be specified'
TWO_EFFORTS = '"reasoning_effort" and "reasoning.effort" must not differ'
BAD_EFFORT = "Invalid option: expected one of {efforts}"
MANDATORY = "Reasoning is mandatory for this endpoint and cannot be disabled."
MODIFIED = (
    "messages.{index}.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
    "cannot be modified. These blocks must remain as they were in the original response."
)
OWN = (UNKNOWN_KEY, TWO_CONTROLS, TWO_EFFORTS, BAD_EFFORT, MANDATORY)
_PARAMETERS = names("effort max_tokens exclude enabled summary context mode")


def judge(request: Request) -> Verdict:
    """The verdict on a request; reads the ledger and changes nothing."""
    return first(_faults(request))


def _faults(request: Request) -> Iterator[Verdict]:
    yield from shape_faults(request.row.chat, request.body)
    yield from order_faults(request.chat)
    yield from _parameter_faults(request)
    yield from _detail_faults(request)
    yield from _missing(request)
    yield from _repeated(request)
    yield from _altered(request)


def upstream(request: Request, message: str, reason: str) -> Verdict:
    """A refusal of the model's provider, inside the router's own."""
    raw = compact({"error": {"message": message, "type": "invalid_request_error"}})
    metadata = {"raw": raw, "provider_name": request.row.family.provider}
    return Verdict(400, {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}, reason)


def invalid(request: Request, index: int, identifier: str, reason: str) -> Verdict:
    """The provider's refusal of a carrier."""
    return upstream(request, request.row.family.invalid.format(index=index, id=identifier or "rs_0"), reason)


def _parameter_faults(request: Request) -> Iterator[Verdict]:
    reasoning, shorthand = request.reasoning, request.body.get("reasoning_effort")
    for name in reasoning:
        if name not in _PARAMETERS:
            yield refuse(HOST, UNKNOWN_KEY.format(name=name), f"unknown reasoning.{name}")
    if reasoning.get("effort") and reasoning.get("max_tokens"):
        yield refuse(HOST, TWO_CONTROLS, "two controls")
    if reasoning.get("effort") and shorthand and shorthand != reasoning.get("effort"):
        yield refuse(HOST, TWO_EFFORTS, "two efforts")
    if request.effort and request.effort not in EFFORTS:
        yield refuse(HOST, BAD_EFFORT.format(efforts="|".join(EFFORTS)), "bad effort")
    if request.row.mandatory and not request.thinks:
        yield refuse(HOST, MANDATORY, "reasoning is mandatory")


def _detail_faults(request: Request) -> Iterator[Verdict]:
    family = request.row.family
    for back in request.returned:
        where = f"messages[{back.message.index}]"
        if not isinstance(back.message.raw.get("reasoning_details", []), list):
            yield refuse(HOST, f"{where}.reasoning_details: expected array", f"bad details at {where}")
        for entry in back.entries:
            if entry.get("type") not in _TYPES:
                yield refuse(HOST, f"{where}.reasoning_details: invalid type", f"bad details at {where}")
            # Recorded: an entry whose format is null is accepted.
            if as_text(entry.get("format")) not in ("", "unknown", family.format):
                yield invalid(request, back.message.index, as_text(entry.get("id")), f"foreign format at {where}")
            readable = entry.get("type") == "reasoning.text" and text_of(entry)
            if readable and not family.text_back:
                yield invalid(request, back.message.index, "", f"text at {where}")
            if readable and family.carrier == "signature" and not carrier_of(entry):
                text = f"messages.{back.message.index}.content.0.thinking.signature: Field required"
                yield upstream(request, text, f"unsigned at {where}")


def _missing(request: Request) -> Iterator[Verdict]:
    family = request.row.family
    start = max((message.index for message in request.chat.messages if message.role == "user"), default=-1)
    for back in request.returned if family.missing and request.thinks else ():
        if back.message.index > start and back.message.calls and not back.carriers:
            text = family.missing.format(index=back.message.index)
            yield upstream(request, text, f"missing at messages[{back.message.index}]")


def _altered(request: Request) -> Iterator[Verdict]:
    family = request.row.family
    for back in request.returned:
        minted, index = request.minted(back), back.message.index
        if not back.carriers:
            # Readable reasoning of no known response may be the client's own.
            continue
        identifier = next((as_text(entry.get("id")) for entry in back.entries if entry.get("id")), "")
        if minted is None or back.carriers != minted.carriers:
            yield invalid(request, index, identifier, f"changed at messages[{index}]")
        elif (minted.model, minted.account) != (request.row.chat.model, request.account):
            yield invalid(request, index, identifier, f"foreign at messages[{index}]")
        elif family.carrier == "signature" and "".join(map(text_of, back.entries)) != minted.thought:
            yield upstream(request, MODIFIED.format(index=index), f"changed at messages[{index}]")
        elif back.message.calls != minted.calls:
            yield invalid(request, index, identifier, f"moved to messages[{index}]")


def _repeated(request: Request) -> Iterator[Verdict]:
    seen: set[str] = set()
    for back in request.returned:
        for entry in back.entries:
            carrier = carrier_of(entry)
            if carrier in seen:
                text = f"Duplicate item found with id {as_text(entry.get('id')) or 'rs_0'}"
                yield upstream(request, text, f"repeated at messages[{back.message.index}]")
            seen |= {carrier} if carrier else set()
