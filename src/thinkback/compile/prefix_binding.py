"""Reasoning that is bound to what stood before it: is it still there, and is the chain unbroken?

The record of a request has digests of its system, tools and messages, and names the end of its chain of reasoning; a
block minted under it is valid only behind the same. What became of a commit in between proves nothing. The same proof
tells whether a conversation that the provider keeps is the one we have.

Reasoning may be removed from the start of a chain, not from its middle. So what goes before a response must be the end
of what went when it was made. As that holds of each of them, it is enough that the last is the same and that no more
go than did: a record needs two values, however long the conversation is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from thinkback.compile.policy import Policy
from thinkback.compile.units import Chain, ResponseUnit
from thinkback.model import canonical
from thinkback.model.blocks import carriers_of, opaque_values
from thinkback.model.commits import RECIPE

Link: TypeAlias = Literal["", "sent", "broken"]
"""What a response means for the chain: nothing, a block of it was sent, or one that belongs there was not."""

OTHER_SYSTEM = "it is bound to its prefix, and the system prompt differs from the one it was made with"
OTHER_TOOLS = "it is bound to its prefix, and the tools differ from those it was made with"
GAP = "reasoning behind it had to be dropped, and what is sent must not have a gap"
WITHOUT = "reasoning behind it was made without it before it, and goes"
_CHANGED = "it is bound to its prefix, and what stands before it was changed after it was made"
_COPIED = "it is bound to its prefix, and was copied here from another line"


class Member(NamedTuple):
    """A response whose bound reasoning goes: its commit hash, the digest of that, and the chain it was made behind.

    Of a record without one (``None``) it is known that nothing was left out behind the member before it, so it must
    ``follow`` that still.
    """

    hash: str
    digest: str
    behind: Chain | None
    follows: bool

    def fits(self, before: Chain) -> bool:
        """True if it is valid with ``before`` sent before it."""
        if before.length == 0:
            return True
        if self.behind is None:
            return self.follows
        return self.behind.last == before.last and self.behind.length >= before.length


class Progress(NamedTuple):
    """The state of a request's chain: what went, whether a response was left out since, and whether all fits."""

    sent: Chain = Chain()
    broken: bool = False
    fits: bool = True

    def leave_out(self) -> Progress:
        """A response that belongs there does not go."""
        return self._replace(broken=True)

    def add(self, member: Member) -> Progress:
        """One more response goes."""
        sent = Chain(self.sent.length + 1, member.digest)
        return Progress(sent, False, self.fits and member.fits(self.sent))


def left_out(members: Sequence[Member], *, ends_broken: bool = False) -> dict[str, str]:
    """The members (by commit hash) that must stay away so that all others are valid, and why.

    The last one stays, as the endpoint may demand it; before it what its request had there, and so on.
    ``ends_broken``: what goes must not be followed by a response that does not, as earlier versions had it.
    """
    if ends_broken:
        return {member.hash: GAP for member in members}
    found: dict[str, str] = {}
    *before, member = members
    most = member.behind.length if member.behind is not None else len(before)
    while before and most:
        at = _place_before(member, before)
        if at < 0:
            break
        found.update((skipped.hash, WITHOUT) for skipped in before[at + 1 :])
        member, before = before[at], before[:at]
        most = min(most - 1, member.behind.length if member.behind is not None else len(before))
    reason = GAP if most else WITHOUT
    return {**{member.hash: reason for member in before}, **found}


def _place_before(member: Member, before: Sequence[Member]) -> int:
    """Locate in ``before`` the member that went right before ``member`` when it was made; -1: nowhere."""
    if member.behind is None:
        return len(before) - 1 if member.follows else -1
    places = (at for at in reversed(range(len(before))) if before[at].digest == member.behind.last)
    return next(places, -1)


def chain_digest(unit: ResponseUnit) -> str:
    """The digest of what is opaque in the reasoning of a response."""
    values = (value for _, block in unit.thoughts for value in opaque_values(carriers_of(block)))
    return canonical.digest("\n".join(values).encode())


class Prefix:
    """What stands before the next message, as digests: of the ``system`` messages, the ``tools``, the messages."""

    def __init__(self, hasher: hashlib._Hash, system: str, tools: str) -> None:
        self._hasher = hasher
        self.system = system
        self.tools = tools

    def add(self, item: bytes) -> None:
        """One more message, without its reasoning."""
        self._hasher.update(item + b"\n")

    def messages(self) -> str:
        """The digest of the messages."""
        return self._hasher.copy().hexdigest()


def is_bound(unit: ResponseUnit, policy: Policy) -> bool:
    """Whether reasoning of a response is valid only behind what it was made behind."""
    return policy.rule.prefix_bound and unit.opaque != () and policy.verdict(unit.header.origin).carriers


def against(unit: ResponseUnit, prefix: Prefix, changed: int, known: int, recipe: int = RECIPE) -> str:
    """Why reasoning that is bound to its prefix must stay away, or nothing.

    ``changed`` is the ``seq`` of the last commit that changed something before it, ``known`` how many messages are
    as they were when reasoning before it was made. Without a record (an adopted history) whoever vouched for it vouched
    for its place as it was then; one that names a record which is not here was copied from another line. The first
    ``recipe`` took any change for another prefix.
    """
    minted = unit.minted
    if (minted is None or recipe == 1) and unit.seq < changed:
        return _CHANGED
    if minted is None:
        return _COPIED if unit.header.origin.request else ""
    # What only a change of system or tools took away comes back with them.
    if minted.messages != prefix.messages():
        return f"it is bound to its prefix, and a message from index {known} on differs"
    if minted.system != prefix.system:
        return OTHER_SYSTEM
    return OTHER_TOOLS if minted.tools != prefix.tools else ""


def is_kept(unit: ResponseUnit, prefix: Prefix, policy: Policy) -> bool:
    """Whether the provider keeps the conversation up to this response as we have it."""
    minted = unit.minted
    if policy.server is None or minted is None or not minted.stored or not unit.header.id:
        return False
    if unit.changes is not None:  # the provider has it as it was
        return False
    if not unit.header.complete or not policy.verdict(unit.header.origin).carriers:
        return False
    return minted.system == prefix.system and minted.messages == prefix.messages()
