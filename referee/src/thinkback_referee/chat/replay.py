"""The rules about reasoning that comes back: required, forbidden, unaltered, its own, and only once.

*Missing* is the provider's rule, and so is the placeholder that is taken instead: providers cannot tell what was lost.
*Changed*, *foreign* and *repeated* are stricter than they are; the ledger can tell. A message that the ledger does not
know was made by the client, or minted elsewhere, and may carry any text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..verdict import Verdict
from .ledger import Ledger, Mint
from .refusals import refuse
from .request import Message, Request

FOREIGN = "The reasoning of messages[{index}] was issued by another provider"
REPEATED = "The reasoning of messages[{index}] repeats that of an earlier message"
_FIELDS = ("reasoning_content", "reasoning", "thinking")


@dataclass(frozen=True, slots=True)
class Returned:
    """An assistant message that came back, and what the ledger knows of it."""

    message: Message
    values: tuple[str, ...]
    """All reasoning texts it carries; blank ones are placeholders and left out."""
    mints: tuple[Mint, ...]
    foreign: tuple[Mint, ...]


def missing(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse a required reasoning that is absent, null, or blank where no such placeholder is known to be taken."""
    profile = request.profile
    for back in _returned(request, ledger):
        index = back.message.index
        if index not in request.required:
            continue
        value = back.message.reasoning(profile.field)
        absent = value is None or not (value.strip() or value in profile.placeholders)
        if absent and not _had_none_to_return(back):
            return _must_be_passed_back(request, index, "missing")
    return None


def changed(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse reasoning that differs by any byte from what was minted with this message."""
    for back in _returned(request, ledger):
        if not back.mints or any(mint.tagged for mint in back.mints):
            continue
        issued = {mint.reasoning for mint in back.mints}
        if any(value not in issued for value in back.values):
            return _must_be_passed_back(request, back.message.index, "changed")
    return None


def foreign(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse reasoning that another host minted; no provider asks for a stranger's thoughts."""
    for back in _returned(request, ledger):
        theirs = {mint.reasoning for mint in back.foreign}
        if not back.mints and any(value in theirs for value in back.values):
            text = FOREIGN.format(index=back.message.index)
            return refuse(request.profile.host, text, f"foreign at messages[{back.message.index}]")
    return None


def repeated(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse one reasoning on more messages than it was minted for."""
    seen: Counter[str] = Counter()
    for back in _returned(request, ledger):
        for value in set(back.values):
            seen[value] += 1
            if seen[value] > max(1, ledger.issued(value)):
                text = REPEATED.format(index=back.message.index)
                return refuse(request.profile.host, text, f"repeated at messages[{back.message.index}]")
    return None


def _returned(request: Request, ledger: Ledger) -> list[Returned]:
    host = request.profile.host.name
    return [
        Returned(
            message,
            tuple(value for name in _FIELDS if (value := message.reasoning(name)) and value.strip()),
            tuple(ledger.mints(host, message)),
            tuple(ledger.foreign(host, message)),
        )
        for message in request.assistants
    ]


def _had_none_to_return(back: Returned) -> bool:
    # Recorded and accepted: an answer for which the model had not thought came back without the field although the
    # request offered tools. Nothing of the kind is recorded for messages with calls.
    return not back.message.calls and any(not mint.reasoning for mint in back.mints)


def _must_be_passed_back(request: Request, index: int, what: str) -> Verdict:
    host = request.profile.host
    return refuse(host, host.changed.format(index=index), f"{what} at messages[{index}]")
