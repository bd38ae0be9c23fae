"""The rules about signatures that come back: on the first call of each open step, genuine, in their place, and once.

*Missing* is Google's rule, and so is *genuine* for the open turn. For older turns, for signatures on anything but
calls, for another model's, for a place other than their own, and for repetition Google only answers worse; the
referee refuses. Models that look at no signature (2.5) are let alone: recorded, accepted requests to them repeat one.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from ..verdict import Verdict
from .errors import refuse
from .ledger import Ledger, Mint, octets
from .profiles import Host
from .request import Content, Part, Request

NOT_BASE64 = "Invalid value at '{place}.thought_signature' (TYPE_BYTES), Base64 decoding failed for \"{value}\""
REPEATED = "Thought signature at {place} repeats that of an earlier part."  # text unconfirmed
MOVED = "Thought signature at {place} belongs to another part."  # text unconfirmed
LATE_DUMMY = "Thought signature at {place} is not on the first function call of its step."  # text unconfirmed


def missing(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse a step of the open turn whose first call is unsigned."""
    if not request.profile.validates:
        return None
    for content in request.open_turn:
        for part, call in content.calls[:1]:
            if not part.signature:
                text = request.host.missing.format(name=call.get("name"), position=content.index + 1)
                return refuse(text, f"missing at contents[{content.index}]")
    return None


def changed(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse a signature that was not issued by this model, neither here nor at the other Google host."""
    for content, part in _signed(request):
        mint, place = ledger.find(part.signature), _place(content, part)
        if mint is None and octets(part.signature) == part.signature.encode():
            return refuse(NOT_BASE64.format(place=place, value=part.signature), f"changed at {place}")
        if mint is None or mint.model != request.profile.reported:
            return refuse(request.host.invalid, f"{'changed' if mint is None else 'foreign'} at {place}")
    return None


def moved(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse a signature of a call on anything else, and one of a text on a part with other text."""
    for content, part in _signed(request):
        mint = ledger.find(part.signature)
        if mint is not None and not _in_place(part, mint):
            return refuse(MOVED.format(place=_place(content, part)), f"moved at {_place(content, part)}")
    return None


def repeated(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse one signature on two parts; Google bills it twice."""
    seen: set[bytes] = set()
    for content, part in _signed(request):
        value = octets(part.signature)
        if value in seen:
            return refuse(REPEATED.format(place=_place(content, part)), f"repeated at {_place(content, part)}")
        seen.add(value)
    return None


def late_dummy(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse a dummy anywhere but on the first call of a step, where nothing asks for it."""
    if not request.profile.validates:
        return None
    for content in request.contents:
        first = content.calls[0][0] if content.calls else None
        for part in content.parts:
            if part is not first and is_dummy(request.host, part.signature):
                return refuse(LATE_DUMMY.format(place=_place(content, part)), f"dummy at {_place(content, part)}")
    return None


def is_dummy(host: Host, signature: str) -> bool:
    """Whether the signature is a documented stand-in, literal or base64-encoded."""
    return signature in host.dummies or signature in _encoded(host)


def _encoded(host: Host) -> set[str]:
    return {base64.b64encode(dummy.encode()).decode() for dummy in host.dummies}


def _signed(request: Request) -> Iterator[tuple[Content, Part]]:
    """The parts with a signature that must be genuine."""
    if not request.profile.validates:
        return
    for content in request.contents:
        for part in content.parts:
            if part.signature and not is_dummy(request.host, part.signature):
                yield content, part


def _in_place(part: Part, mint: Mint) -> bool:
    if mint.call:
        return part.call is not None and part.call.get("name") == mint.call
    if part.call is not None:
        return False
    # Recorded: the signature of a text on a part of its own, before the text.
    return mint.text is None or not part.text or part.text == mint.text


def _place(content: Content, part: Part) -> str:
    return f"contents[{content.index}].parts[{part.index}]"
