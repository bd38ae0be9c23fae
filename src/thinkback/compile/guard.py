"""The guard: may reasoning minted there be replayed here? (DESIGN 3.4)"""

from __future__ import annotations

from typing import NamedTuple

from thinkback.model.blocks import Origin
from thinkback.model.target import Target, model_matches


class Verdict(NamedTuple):
    """``carriers``: opaque values may go back; ``text``: readable reasoning may. ``reason`` names what differs."""

    carriers: bool
    text: bool
    reason: str


VALID = Verdict(True, True, "minted by this endpoint and model")
NO_ORIGIN = Verdict(False, True, "its origin is not known: readable text may go back, opaque values may not")


def check(origin: Origin, target: Target) -> Verdict:
    """Compare ``origin`` with ``target`` as the target's rule demands."""
    if not origin.endpoint:
        return NO_ORIGIN
    difference = _difference(origin, target)
    return Verdict(False, False, difference) if difference else VALID


def _difference(origin: Origin, target: Target) -> str:
    if origin.dialect != target.endpoint.dialect:
        return f"minted in the {origin.dialect} dialect, target speaks {target.endpoint.dialect}"
    if origin.endpoint != target.base_url:
        return f"minted by {origin.endpoint}, target is {target.base_url}"
    if not _reads(origin, target):
        return f"minted by model {origin.requested_model}, target is {target.model}"
    guard = target.rule.guard
    if not guard.account or origin.account == target.account:
        return ""
    known = origin.account_known and target.account_known
    return "minted under another account" if known or guard.unknown_account == "drop" else ""


def _reads(origin: Origin, target: Target) -> bool:
    """Whether the target's model is one of those that minted, or reads what one of them wrote."""
    if target.model in (origin.requested_model, origin.served_model):
        return True
    readable = target.rule.guard.reads
    return any(model and model_matches(model, readable) for model in (origin.requested_model, origin.served_model))
