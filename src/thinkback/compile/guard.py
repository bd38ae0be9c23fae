"""The guard: may reasoning minted there be replayed here?"""

from __future__ import annotations

import fnmatch
from typing import NamedTuple

from thinkback.model.blocks import Origin
from thinkback.model.commits import RECIPE
from thinkback.model.target import Target, model_matches


class Verdict(NamedTuple):
    """``carriers``: opaque values may go back; ``text``: readable reasoning may. ``reason`` names what differs."""

    carriers: bool
    text: bool
    reason: str


_OTHER_MODEL = "minted by model {}, target is {}"
OTHER_ACCOUNT = "minted under another account"
VALID = Verdict(True, True, "minted by this endpoint and model")
NO_ORIGIN = Verdict(False, True, "its origin is not known: readable text may go back, opaque values may not")


def check(origin: Origin, target: Target, end_user: str = "", recipe: int = RECIPE) -> Verdict:
    """Compare ``origin`` with ``target``, asked for ``end_user``, as the target's rule demands.

    Where nobody knows the endpoint, as of what was imported, the model decides; the first ``recipe`` did not ask.
    """
    if _is_own(origin, target):
        return VALID
    if not origin.endpoint:
        if recipe > 1 and _models(origin) and not (_reads(origin, target) or _is_of(origin, target)):
            return Verdict(
                False, False, _OTHER_MODEL.format(origin.requested_model or origin.served_model, target.model)
            )
        if origin.dialect != target.endpoint.dialect:
            return Verdict(False, True, "its origin is not known, and it was written in another dialect")
        return NO_ORIGIN
    difference = _difference(origin, target, end_user)
    if difference:
        return Verdict(False, False, difference)
    return Verdict(False, not target.rule.guard.account, OTHER_ACCOUNT) if _other_account(origin, target) else VALID


def _is_own(origin: Origin, target: Target) -> bool:
    """Whether nothing differs at all, as mostly; only then it need not be said what does."""
    return (
        origin.endpoint == target.base_url != ""
        and origin.requested_model == target.model != ""
        and origin.dialect == target.endpoint.dialect
        and origin.account == target.account
        and not target.rule.guard.end_user
    )


def _difference(origin: Origin, target: Target, end_user: str) -> str:
    guard = target.rule.guard
    if origin.dialect != target.endpoint.dialect:
        return f"minted in the {origin.dialect} dialect, target speaks {target.endpoint.dialect}"
    elsewhere = origin.endpoint != target.base_url
    if elsewhere and not any(fnmatch.fnmatchcase(origin.endpoint, pattern) for pattern in guard.hosts):
        return f"minted by {origin.endpoint}, target is {target.base_url}"
    if not _reads(origin, target):
        return _OTHER_MODEL.format(origin.requested_model, target.model)
    return "minted for another end user" if guard.end_user and origin.end_user != end_user else ""


def _other_account(origin: Origin, target: Target) -> bool:
    """Whether the accounts differ: two that are known, or any two where the rule drops what is unknown."""
    # Accounts of two hosts cannot be compared; where hosts read each other, they say so themselves.
    if origin.endpoint != target.base_url or origin.account == target.account:
        return False
    guard = target.rule.guard
    known = origin.account_known and target.account_known
    return known or (guard.account and guard.unknown_account == "drop")


def _models(origin: Origin) -> list[str]:
    return [model for model in (origin.requested_model, origin.served_model) if model]


def _is_of(origin: Origin, target: Target) -> bool:
    """True if the target's model minted it under another host's name for it: ``deepseek/deepseek-v4-pro``."""
    return _bare(target.model) in map(_bare, _models(origin))


def _bare(model: str) -> str:
    return model.rpartition("/")[2].lower()


def _reads(origin: Origin, target: Target) -> bool:
    """Whether the target's model is one of those that minted, or reads what one of them wrote."""
    minted = _models(origin)
    if target.model in minted:
        return True
    guard = target.rule.guard
    if any(model_matches(model, guard.refuses) for model in minted):
        return False
    return any(model_matches(model, guard.reads) for model in minted)
