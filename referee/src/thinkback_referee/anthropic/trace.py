"""What becomes of each thinking block of a request: who may read it, and whether it still fits its conversation.

One walk over the history, in its order, as the checks build on each other. That the rest of a turn's thinking goes with
a block that does not fit needs no rule of its own: it was minted under the same prefix.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..jsons import JsonObject
from .ledger import Ledger, Seal, Trail, system_digest, tools_digest
from .profiles import MODELS, UNBOUND
from .request import Block, Message, Request

MODEL = "model_binding_mismatch"
ORGANIZATION = "organization_binding_mismatch"
END_USER = "end_user_binding_mismatch"
PREFIX = "prefix_binding_mismatch"


@dataclass(frozen=True, slots=True)
class Fate:
    """One seal of the history; ``block`` is None where the client left it out.

    ``reason``: why it does not count, empty where it does; ``part``: what of the prefix differs. ``allowed``: the check
    that it failed and that is not enforced for this request, so that it counts.
    """

    message: Message
    seal: Seal
    block: Block | None
    reason: str = ""
    part: str = ""
    allowed: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """The fates of all seals, in order, those that were left out included."""

    fates: tuple[Fate, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """The opaque values that count."""
        return tuple(fate.seal.opaque for fate in self.fates if fate.block is not None and not fate.reason)

    @property
    def dropped(self) -> tuple[Fate, ...]:
        """What came back and does not count."""
        return tuple(fate for fate in self.fates if fate.block is not None and fate.reason)

    @property
    def missing(self) -> tuple[Fate, ...]:
        """What did not come back and would count."""
        return tuple(fate for fate in self.fates if fate.block is None and not fate.reason)

    def transformations(self) -> list[JsonObject]:
        """The report of what was dropped, and of what was shown to the model although it failed a check."""
        return [
            {
                "type": "thinking_dropped" if fate.reason else "thinking_mismatch_allowed",
                "path": fate.block.path,
                "reason": fate.reason or fate.allowed,
            }
            for fate in self.fates
            if fate.block is not None and (fate.reason or fate.allowed)
        ]


def trace(request: Request, ledger: Ledger) -> Trace:
    """Walk the history."""
    walk = _Walk(request, ledger)
    return Trace(tuple(fate for message in request.messages for fate in walk.read(message)))


def may_read(request: Request, seal: Seal) -> bool:
    """Whether a block comes from the caller's organisation, or from another platform and is bound to none."""
    caller = request.caller
    if seal.host == caller.host.name:
        return seal.account == caller.account
    return {seal.model, request.profile.model} <= UNBOUND


class _Walk:
    def __init__(self, request: Request, ledger: Ledger) -> None:
        self._request = request
        self._ledger = ledger
        self._trail = Trail()
        self._kept: list[str] = []
        self._system = system_digest(request.body)
        self._tools = tools_digest(request.body)

    def read(self, message: Message) -> Iterator[Fate]:
        """The fates in one message: of what is there, then of what is not."""
        before = tuple(self._kept)
        trails = {self._trail.digest}
        for block in message.blocks:
            seal = self._ledger.seal(block.opaque)
            if seal is not None:
                yield self._judge_present(message, block, seal)
            self._trail.feed(message.role, block)
            trails.add(self._trail.digest)
        if message.role == "assistant":
            yield from self._absent(message, trails, before)

    def _judge_present(self, message: Message, block: Block, seal: Seal) -> Fate:
        reason, part = self._misfit(seal, {self._trail.digest}, self._kept)
        is_allowed = reason == PREFIX and not self._request.enforces_prefix
        if is_allowed or not reason:
            self._kept.append(seal.opaque)
        return Fate(message, seal, block, allowed=reason) if is_allowed else Fate(message, seal, block, reason, part)

    def _absent(self, message: Message, trails: Collection[str], before: tuple[str, ...]) -> Iterator[Fate]:
        there = {block.opaque for block in message.thinking}
        for minted in self._ledger.answers(message):
            chain = list(before)
            for seal in minted.seals:
                # What another platform minted is not known to be missing.
                if seal.opaque not in there and seal.host == self._request.caller.host.name:
                    yield Fate(message, seal, None, *self._misfit(seal, trails, chain))
                chain.append(seal.opaque)

    def _misfit(self, seal: Seal, trails: Collection[str], kept: Sequence[str]) -> tuple[str, str]:
        request, profile = self._request, self._request.profile
        also = profile.reads_on_api if request.caller.host.api else frozenset()
        is_bound = profile.bound and MODELS[seal.model].bound
        # Of several reasons the first of this order is told (anthropic 2.12, thinking_dropped).
        if not may_read(request, seal):
            return ORGANIZATION, ""
        if is_bound and seal.user != request.user:
            return END_USER, ""
        if seal.model not in {profile.model, *profile.reads, *also}:
            return MODEL, ""
        if not is_bound:
            return "", ""
        parts = (
            ("system", seal.system == self._system),
            ("tools", seal.tools == self._tools),
            ("messages", seal.trail in trails),
            # Thinking may be missing from the start of the history, not from its middle.
            ("chain", not kept or seal.chain[-len(kept) :] == tuple(kept)),
        )
        part = next((name for name, same in parts if not same), "")
        return (PREFIX, part) if part else ("", "")
