"""Token counts in one meaning for all dialects: input with what was cached, output with what was reasoned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from thinkback.compile.counts import DEFAULT_RATIO, weigh, weight_of
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, carriers_of, is_shown
from thinkback.model.commits import Usage

# So much may the visible output have more tokens than its length says.
_MARGIN = 1.25


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
    usage = with_beside(usage or Usage(), reasoning_tokens)
    beside = "reasoning_beside_output" in usage.counted
    given, output, reasoning, cached = usage.whole_input(), usage.whole_output(), usage.reasoning, usage.cached
    inside = False if beside else (True if reasoning_tokens == "inside" else None)
    weight = _weight(blocks)
    estimated = not reasoning and weight > 0
    if estimated:
        reasoning = max(1, round(weight / DEFAULT_RATIO))
        if output and not beside and _is_hidden(blocks):
            # A summary says nothing of how much was thought: what the visible output leaves does.
            reasoning = max(reasoning, output - round(_visible(blocks) / DEFAULT_RATIO * _MARGIN))
        # What may be inside a number is not more than it.
        reasoning = min(reasoning, output) if output and not beside else reasoning
    return TokenUse(given, cached, output, reasoning, inside, estimated)


def with_beside(usage: Usage, reasoning_tokens: str) -> Usage:
    """``usage`` that says itself that its output is without the reasoning, where the rule's word is ``added``.

    So it is stored: a list of sessions counts without rules.
    """
    if reasoning_tokens != "added" or "reasoning_beside_output" in usage.counted:
        return usage
    return msgspec.structs.replace(usage, counted=(*usage.counted, "reasoning_beside_output"))


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


def _is_hidden(blocks: Sequence[Block]) -> bool:
    """True if less reasoning may have arrived than there was: a summary, or text beside an opaque value."""
    thoughts = (block for block in blocks if isinstance(block, ThinkingBlock) and is_shown(block))
    return any(block.kind != "raw" or not block.thought or carriers_of(block) for block in thoughts)


def _visible(blocks: Sequence[Block]) -> int:
    """The weight of the text and the calls."""
    texts = sum(weigh(block.text) for block in blocks if isinstance(block, Text))
    return texts + sum(weigh(block.name) + weigh(block.arguments) for block in blocks if isinstance(block, ToolCall))


def _weight(blocks: Sequence[Block]) -> int:
    """Characters of the reasoning that arrived, readable or not."""
    thoughts = (block for block in blocks if isinstance(block, ThinkingBlock))
    return sum(weight_of(block) for block in thoughts if is_shown(block))
