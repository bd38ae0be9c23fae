"""Token counts in one meaning for all dialects: input with what was cached, output with what was reasoned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from thinkback.compile.counts import DEFAULT_RATIO, weight_of
from thinkback.model.blocks import Block, ThinkingBlock, is_shown
from thinkback.model.commits import Usage


class TokenUse(msgspec.Struct, frozen=True):
    """What was used. ``None``: neither reported nor to be estimated.

    ``input`` includes ``cached``; ``output`` includes ``reasoning`` wherever the provider counted it
    (``inside``: the number it reported for output did so too, ``None`` where nobody says). ``estimated``: the reasoning
    was not counted by the provider, and the number is a guess from what arrived.
    """

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    reasoning: int | None = None
    inside: bool | None = None
    estimated: bool = False


def token_use(usage: Usage | None, blocks: Sequence[Block], reasoning_tokens: str) -> TokenUse:
    """The use of one response. ``reasoning_tokens`` is the rule's word: ``inside``, ``added`` or ``unknown``."""
    usage = usage or Usage()
    given, output, reasoning, cached = map(counted, (usage.input, usage.output, usage.reasoning, usage.cached))
    if given is not None and "cache_beside_input" in usage.counted:
        given += (cached or 0) + (counted(usage.cache_write) or 0)
    beside = "reasoning_beside_output" in usage.counted or reasoning_tokens == "added"
    inside = False if beside else (True if reasoning_tokens == "inside" else None)
    if output is not None and reasoning and beside:
        output += reasoning
    estimated = not reasoning and _weight(blocks) > 0
    if estimated:
        reasoning = max(1, round(_weight(blocks) / DEFAULT_RATIO))
        # What may be inside a number is not more than it.
        reasoning = min(reasoning, output) if output and not beside else reasoning
    return TokenUse(given, cached, output, reasoning, inside, estimated)


def counted(count: int | None) -> int | None:
    """What a provider counted; below zero it counted nothing, and no budget gets anything back."""
    return None if count is not None and count < 0 else count


def summed(uses: Iterable[TokenUse]) -> TokenUse | None:
    """Several responses together; ``None`` where there are none."""
    found = list(uses)
    if len(found) < 2:
        return found[0] if found else None
    names = ("input", "cached", "output", "reasoning")
    counts = {name: [value for use in found if (value := getattr(use, name)) is not None] for name in names}
    totals = {name: sum(values) if values else None for name, values in counts.items()}
    insides = {use.inside for use in found}
    inside = insides.pop() if len(insides) == 1 else None
    return TokenUse(**totals, inside=inside, estimated=any(use.estimated for use in found))


def _weight(blocks: Sequence[Block]) -> int:
    """Characters of the reasoning that arrived, readable or not."""
    thoughts = (block for block in blocks if isinstance(block, ThinkingBlock))
    return sum(weight_of(block) for block in thoughts if is_shown(block))
