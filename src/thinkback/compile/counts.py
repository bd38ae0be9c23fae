"""Token estimates, calibrated by what the provider reported. Never raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

from thinkback.compile.units import ResponseUnit
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall

# Characters per token before the first report; 3 is the conservative fallback where a tokenizer fails.
DEFAULT_RATIO = 4.0
FALLBACK_RATIO = 3.0


class Calibration(NamedTuple):
    """Sums over reported responses: characters and tokens of reasoning, and of everything else in the output."""

    reasoning_characters: int = 0
    reasoning_tokens: int = 0
    other_characters: int = 0
    other_tokens: int = 0

    def reasoning(self, characters: int) -> float:
        """Tokens of ``characters`` of reasoning."""
        return characters / _ratio(self.reasoning_characters, self.reasoning_tokens)

    def other(self, characters: int) -> float:
        """Tokens of ``characters`` of text and calls."""
        return characters / _ratio(self.other_characters, self.other_tokens)


def observe(known: Calibration, unit: ResponseUnit, inside: bool) -> Calibration:
    """``known`` with the usage of one more response. ``inside``: reasoning is part of the output count."""
    usage = unit.usage
    if usage is None or usage.output is None:
        return known
    reasoning, other = characters_of(unit)
    tokens = usage.reasoning or 0
    rest = usage.output - tokens if inside else usage.output
    # Summaries and encrypted reasoning are shorter than what was billed; only raw text says something.
    readable = all(block.kind == "raw" for _, block in unit.thoughts)
    if reasoning and tokens > 0 and readable:
        characters, total = known.reasoning_characters + reasoning, known.reasoning_tokens + tokens
        known = known._replace(reasoning_characters=characters, reasoning_tokens=total)
    if other and rest > 0:
        characters, total = known.other_characters + other, known.other_tokens + rest
        known = known._replace(other_characters=characters, other_tokens=total)
    return known


def characters_of(unit: ResponseUnit) -> tuple[int, int]:
    """(reasoning, everything else) of a response's output, in characters."""
    reasoning = other = 0
    for block in unit.blocks:
        kind = type(block)
        if kind is ThinkingBlock:
            if not block.is_hidden:  # type: ignore[union-attr]
                reasoning += len(block.thought)  # type: ignore[union-attr]
        elif kind is Text:
            other += len(block.text)  # type: ignore[union-attr]
        elif kind is ToolCall:
            other += len(block.name) + len(block.arguments)  # type: ignore[union-attr]
    return reasoning, other


def estimate_thinking_tokens(blocks: list[ThinkingBlock], count: Callable[[str], int] | None = None) -> int:
    """Tokens of the reasoning in ``blocks``: ``count`` where given, else characters / 4.

    Never raises: where ``count`` fails it falls back to characters / 3, which errs high, and warns.
    """
    text = "".join(block.thought for block in blocks)
    if not text:
        return 0
    if count is None:
        return round(len(text) / DEFAULT_RATIO) or 1
    try:
        return count(text)
    except Exception as error:  # a tokenizer is foreign code, and counting must never stop a turn
        warnings.warn(f"token count failed ({type(error).__name__}); using characters / 3", stacklevel=2)
        return -(-len(text) // 3)


def _ratio(characters: int, tokens: int) -> float:
    # A handful of tokens says nothing; an absurd ratio (summaries, wrong counts) must not steer compaction.
    if tokens < 50:
        return DEFAULT_RATIO
    return min(max(characters / tokens, 1.0), 8.0)
