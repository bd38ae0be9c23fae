"""The judge of the router: a chat request, then its reasoning parameters, then the details that come back.

Stricter than the router, which drops or forwards what it does not like: what its own SDK had to learn is refused here.
"""

from __future__ import annotations

from collections.abc import Callable

from ..chat import structure
from ..chat.refusals import refuse
from ..jsons import as_text, compact
from ..verdict import ACCEPTED, Verdict
from .ledger import carrier_of, text_of
from .profiles import EFFORTS, OPENROUTER
from .request import Request

_TYPES = ("reasoning.text", "reasoning.summary", "reasoning.encrypted", "reasoning.server_tool_call")
# Texts unconfirmed.
UNKNOWN_KEY = 'Unrecognized key: "reasoning.{name}"'
TWO_CONTROLS = 'Only one of "reasoning.effort" and "reasoning.max_tokens" may be specified'
TWO_EFFORTS = '"reasoning_effort" and "reasoning.effort" must not differ'
BAD_EFFORT = "Invalid option: expected one of {efforts}"
MANDATORY = "Reasoning is mandatory for this endpoint and cannot be disabled."
OWN = (UNKNOWN_KEY, TWO_CONTROLS, TWO_EFFORTS, BAD_EFFORT, MANDATORY)
_PARAMETERS = frozenset({"effort", "max_tokens", "exclude", "enabled", "summary", "context", "mode"})


def judge(request: Request) -> Verdict:
    """The verdict on a request; reads the ledger and changes nothing."""
    fault = structure.malformed(request.row.chat, request.body)
    if fault is None:
        fault = structure.unpaired(request.chat) or structure.ends_wrong(request.chat)
    for check in _CHECKS:
        fault = fault or check(request)
    return fault or ACCEPTED


def upstream(request: Request, message: str, reason: str) -> Verdict:
    """A refusal of the model's provider, inside the router's own."""
    raw = compact({"error": {"message": message, "type": "invalid_request_error"}})
    metadata = {"raw": raw, "provider_name": request.row.family.provider}
    return Verdict(400, {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}, reason)


def invalid(request: Request, index: int, identifier: str, reason: str) -> Verdict:
    """The provider's refusal of a carrier."""
    return upstream(request, request.row.family.invalid.format(index=index, id=identifier or "rs_0"), reason)


def _parameters(request: Request) -> Verdict | None:
    reasoning, shorthand = request.reasoning, request.body.get("reasoning_effort")
    for name in reasoning:
        if name not in _PARAMETERS:
            return refuse(OPENROUTER, UNKNOWN_KEY.format(name=name), f"unknown reasoning.{name}")
    if reasoning.get("effort") and reasoning.get("max_tokens"):
        return refuse(OPENROUTER, TWO_CONTROLS, "two controls")
    if reasoning.get("effort") and shorthand and shorthand != reasoning.get("effort"):
        return refuse(OPENROUTER, TWO_EFFORTS, "two efforts")
    if request.effort and request.effort not in EFFORTS:
        return refuse(OPENROUTER, BAD_EFFORT.format(efforts="|".join(EFFORTS)), "bad effort")
    if request.row.mandatory and not request.thinks:
        return refuse(OPENROUTER, MANDATORY, "reasoning is mandatory")
    return None


def _shapes(request: Request) -> Verdict | None:
    family = request.row.family
    for back in request.returned:
        where = f"messages[{back.message.index}]"
        if not isinstance(back.message.raw.get("reasoning_details", []), list):
            return refuse(OPENROUTER, f"{where}.reasoning_details: expected array", f"bad details at {where}")
        for entry in back.entries:
            if entry.get("type") not in _TYPES:
                return refuse(OPENROUTER, f"{where}.reasoning_details: invalid type", f"bad details at {where}")
            # Recorded: an entry whose format is null is accepted.
            if as_text(entry.get("format")) not in ("", "unknown", family.format):
                return invalid(request, back.message.index, as_text(entry.get("id")), f"foreign format at {where}")
            readable = entry.get("type") == "reasoning.text" and text_of(entry)
            if readable and not family.text_back:
                return invalid(request, back.message.index, "", f"text at {where}")
            if readable and family.carrier == "signature" and not carrier_of(entry):
                text = f"messages.{back.message.index}.content.0.thinking.signature: Field required"
                return upstream(request, text, f"unsigned at {where}")
    return None


def _missing(request: Request) -> Verdict | None:
    family = request.row.family
    start = max((message.index for message in request.chat.messages if message.role == "user"), default=-1)
    for back in request.returned if family.missing and request.thinks else ():
        if back.message.index > start and back.message.calls and not back.carriers:
            text = family.missing.format(index=back.message.index)
            return upstream(request, text, f"missing at messages[{back.message.index}]")
    return None


def _altered(request: Request) -> Verdict | None:
    family = request.row.family
    for back in request.returned:
        minted, index = request.minted(back), back.message.index
        if not back.carriers:
            # Readable reasoning of no known response may be the client's own.
            continue
        identifier = next((as_text(entry.get("id")) for entry in back.entries if entry.get("id")), "")
        if minted is None or back.carriers != minted.carriers:
            return invalid(request, index, identifier, f"changed at messages[{index}]")
        if (minted.model, minted.account) != (request.row.chat.model, request.account):
            return invalid(request, index, identifier, f"foreign at messages[{index}]")
        if family.carrier == "signature" and "".join(map(text_of, back.entries)) != minted.thought:
            text = (
                f"messages.{index}.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
                "cannot be modified. These blocks must remain as they were in the original response."
            )
            return upstream(request, text, f"changed at messages[{index}]")
        if back.message.calls != minted.calls:
            return invalid(request, index, identifier, f"moved to messages[{index}]")
    return None


def _repeated(request: Request) -> Verdict | None:
    seen: set[str] = set()
    for back in request.returned:
        for entry in back.entries:
            carrier = carrier_of(entry)
            if carrier in seen:
                text = f"Duplicate item found with id {as_text(entry.get('id')) or 'rs_0'}"
                return upstream(request, text, f"repeated at messages[{back.message.index}]")
            seen |= {carrier} if carrier else set()
    return None


_CHECKS: tuple[Callable[[Request], Verdict | None], ...] = (_parameters, _shapes, _missing, _repeated, _altered)
