"""Reasoning that is bound to what stood before it: is it still there, and is the chain unbroken?

The record of a request has digests of its system, tools and messages; a block minted under it is valid only behind
the same. The same proof tells whether a conversation that the provider keeps is the one we have.
"""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple, TypeAlias

from thinkback.compile.policy import Policy
from thinkback.compile.units import ResponseUnit

Link: TypeAlias = Literal["", "sent", "broken"]
"""What a response means for the chain: nothing, a block of it was sent, or one that belongs there was not."""

OTHER_SYSTEM = "it is bound to its prefix, and the system prompt differs from the one it was made with"
OTHER_TOOLS = "it is bound to its prefix, and the tools differ from those it was made with"
GAP = "reasoning behind it had to be dropped, and what is sent must not have a gap"
_CHANGED = "it is bound to its prefix, and what stands before it was changed after it was made"
_COPIED = "it is bound to its prefix, and was copied here from another line"


class Chain(NamedTuple):
    """The first response whose bound reasoning was sent, and the last that had to be left out (-1: none)."""

    first: int = -1
    broken: int = -1

    def add(self, number: int, link: Link) -> Chain:
        """One more response."""
        if link == "sent" and self.first < 0:
            return Chain(number, self.broken)
        return Chain(self.first, number) if link == "broken" else self

    @property
    def gap(self) -> int:
        """The number of responses that must be left out so that no gap is; 0 where there is none."""
        return self.broken + 1 if 0 <= self.first < self.broken else 0


NO_CHAIN = Chain()


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


def against(unit: ResponseUnit, prefix: Prefix, changed: int, known: int) -> str:
    """Why reasoning that is bound to its prefix must stay away, or nothing.

    ``changed`` is the ``seq`` of the last commit that changed something before it, ``known`` how many messages are
    as they were when reasoning before it was made. Without a record (an adopted history) whoever vouched for it vouched
    for its place; one that names a record which is not here was copied from another line.
    """
    if unit.seq < changed:
        return _CHANGED
    minted = unit.minted
    if minted is None:
        return _COPIED if unit.header.origin.request else ""
    if minted.system != prefix.system:
        return OTHER_SYSTEM
    if minted.tools != prefix.tools:
        return OTHER_TOOLS
    if minted.messages != prefix.messages():
        return f"it is bound to its prefix, and a message from index {known} on differs"
    return ""


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
