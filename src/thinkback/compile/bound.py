"""Reasoning that is bound to what stood before it (DESIGN 3.4): is it still there, and is the chain unbroken?

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
_GAP = "reasoning behind it had to be dropped, and what is sent must not have a gap"


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
    """What stands before the next message, as far as digests tell; ``floor`` responses are left out to avoid a gap.

    ``known`` messages at the beginning are as they were when the last valid response was made. ``changed`` is the
    ``seq`` of the last commit that changed something before: what was made earlier was made behind something else.
    """

    def __init__(
        self, hasher: hashlib._Hash, digests: tuple[str, str], floor: int, known: int, changed: int = -1
    ) -> None:
        self._hasher = hasher
        self._system, self._tools = digests
        self._floor = floor
        self.known = known
        self.changed = changed

    def add(self, item: bytes) -> None:
        """One more message, without its reasoning."""
        self._hasher.update(item + b"\n")

    def against(self, unit: ResponseUnit, number: int, messages: int, policy: Policy) -> str:
        """Why reasoning that is bound to its prefix must stay away, or nothing; ``messages`` stand before it.

        Without a record (an adopted history) whoever vouched for it vouched for its place; one that names a record
        which is not here was copied from another line.
        """
        if not policy.rule.prefix_bound or not unit.opaque or not policy.verdict(unit.header.origin).carriers:
            return ""
        if unit.seq < self.changed:
            return "it is bound to its prefix, and what stands before it was changed after it was made"
        minted = unit.minted
        if minted is not None:
            if minted.system != self._system:
                return OTHER_SYSTEM
            if minted.tools != self._tools:
                return OTHER_TOOLS
            if minted.messages != self._digest():
                return f"it is bound to its prefix, and a message from index {self.known} on differs"
        elif unit.header.origin.request:
            return "it is bound to its prefix, and was copied here from another line"
        self.known = messages
        return _GAP if number < self._floor else ""

    def is_kept(self, unit: ResponseUnit, policy: Policy) -> bool:
        """Whether the provider keeps the conversation up to this response as we have it."""
        minted = unit.minted
        if policy.server is None or minted is None or not minted.stored or not unit.header.id:
            return False
        if unit.changes is not None:  # the provider has it as it was
            return False
        if not unit.header.complete or not policy.verdict(unit.header.origin).carriers:
            return False
        return minted.system == self._system and minted.messages == self._digest()

    def _digest(self) -> str:
        return self._hasher.copy().hexdigest()
