"""Token estimates, calibrated by what the provider reported. Never raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TypeAlias

from thinkback.compile.units import ResponseUnit
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, carriers_of

# Characters per token before the first report; 3 is the conservative fallback where a tokenizer fails.
DEFAULT_RATIO = 4.0
FALLBACK_RATIO = 3.0
# A handful of tokens says nothing about a ratio.
ENOUGH_TOKENS = 50

# Characters of reasoning and of everything else in a response, and whether that reasoning is what was billed.
Size: TypeAlias = tuple[int, int, bool]
# Characters: stored, of reasoning among them, sent, of reasoning among those.
Sizes: TypeAlias = tuple[int, int, int, int]
# (characters of reasoning, its tokens, characters of everything else in the output, their tokens)
Report: TypeAlias = tuple[int, int, int, int]
NO_REPORT: Report = (0, 0, 0, 0)


class Tally:
    """Sums over rendered messages, in characters: what is stored and what is sent, with the reasoning in both.

    The rest are sums over the responses that the target's model was billed for: characters and tokens.
    """

    __slots__ = (
        "other_characters",
        "other_tokens",
        "raw",
        "raw_reasoning",
        "reasoning_characters",
        "reasoning_tokens",
        "sent",
        "sent_reasoning",
    )

    def __init__(self) -> None:
        self.raw = self.raw_reasoning = self.sent = self.sent_reasoning = 0
        self.reasoning_characters = self.reasoning_tokens = self.other_characters = self.other_tokens = 0

    def __add__(self, other: Tally) -> Tally:
        total = Tally()
        for name in Tally.__slots__:
            setattr(total, name, getattr(self, name) + getattr(other, name))
        return total

    def add(self, sizes: Sizes, report: Report) -> None:
        """Add one more message with what was reported for it."""
        raw, raw_reasoning, sent, sent_reasoning = sizes
        self.raw += raw
        self.raw_reasoning += raw_reasoning
        self.sent += sent
        self.sent_reasoning += sent_reasoning
        if report is not NO_REPORT:
            self.reasoning_characters += report[0]
            self.reasoning_tokens += report[1]
            self.other_characters += report[2]
            self.other_tokens += report[3]

    def reasoning(self, characters: int) -> float:
        """Tokens of ``characters`` of reasoning."""
        return characters / _ratio(self.reasoning_characters, self.reasoning_tokens)

    def other(self, characters: int) -> float:
        """Tokens of ``characters`` of text and calls."""
        return characters / _ratio(self.other_characters, self.other_tokens)

    @property
    def is_calibrated(self) -> bool:
        """Whether the provider reported enough to go by."""
        return max(self.reasoning_tokens, self.other_tokens) >= ENOUGH_TOKENS


def report_of(unit: ResponseUnit, size: Size, reasoning_tokens: str) -> Report:
    """What the provider's usage says of a response of ``size``.

    ``reasoning_tokens`` is the rule's word: whether they are ``inside`` the output count or ``added`` to it.
    """
    usage = unit.usage
    if usage is None or usage.output is None:
        return NO_REPORT
    reasoning, other, readable = size
    tokens = usage.reasoning or 0
    rest = usage.output if reasoning_tokens == "added" else usage.output - tokens
    # What is left for the text can be told only where the reasoning was counted, and it is known where.
    unclear = unit.thoughts and reasoning_tokens != "added" and (tokens <= 0 or reasoning_tokens == "unknown")
    if unclear or rest <= 0 or not other:
        other = rest = 0
    if tokens <= 0 or not reasoning or not readable:
        reasoning = tokens = 0
    return reasoning, tokens, other, rest


def size_of(unit: ResponseUnit) -> Size:
    """How much a response put out."""
    reasoning = other = 0
    readable = True
    for block in unit.blocks:
        if isinstance(block, Text):
            other += len(block.text)
        elif isinstance(block, ThinkingBlock):
            if not block.is_hidden:
                reasoning += len(block.thought) or weight_of(block)
            # Summaries and encrypted reasoning are shorter than what was billed; only raw text says something.
            readable = readable and block.kind == "raw" and block.thought != ""
        elif isinstance(block, ToolCall):
            other += len(block.name) + len(block.arguments)
    return reasoning, other, readable


def weight_of(block: ThinkingBlock) -> int:
    """Characters of one piece of reasoning: its text, or its carriers where it has none."""
    return len(block.thought) or sum(len(carrier.value) for carrier in carriers_of(block))


def estimate_thinking_tokens(blocks: Sequence[ThinkingBlock], count: Callable[[str], int] | None = None) -> int:
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
        return -(-len(text) // round(FALLBACK_RATIO))


def _ratio(characters: int, tokens: int) -> float:
    # An absurd ratio (summaries, wrong counts) must not steer compaction.
    if tokens < ENOUGH_TOKENS:
        return DEFAULT_RATIO
    return min(max(characters / tokens, 1.0), 8.0)
