"""Token estimates, calibrated by what the provider reported. Never raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import msgspec

from thinkback.compile.units import ResponseUnit
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall, carriers_of

# Characters per token before the first report; 3 is the conservative fallback where a tokenizer fails.
DEFAULT_RATIO = 4.0
FALLBACK_RATIO = 3.0
# A handful of tokens says nothing about a ratio.
ENOUGH_TOKENS = 50


class Size(msgspec.Struct, frozen=True, gc=False):
    """How much a response put out, in characters: reasoning, and everything else.

    ``readable``: that reasoning is what was billed.
    """

    reasoning: int
    other: int
    readable: bool


class Sent(msgspec.Struct, frozen=True, gc=False):
    """Characters of a response: ``raw`` are stored and ``sent`` go out, with the reasoning in each."""

    raw: int
    raw_reasoning: int
    sent: int = 0
    sent_reasoning: int = 0


class Report(msgspec.Struct, frozen=True, gc=False):
    """What the provider counted: characters of reasoning and their tokens, the same of everything else."""

    reasoning: int
    reasoning_tokens: int
    other: int
    other_tokens: int


class Tally(msgspec.Struct):
    """Sums over rendered messages, in characters: what is stored and what is sent, with the reasoning in both.

    The rest are sums over the responses that the target's model was billed for: characters and tokens.
    """

    raw: int = 0
    raw_reasoning: int = 0
    sent: int = 0
    sent_reasoning: int = 0
    reasoning_characters: int = 0
    reasoning_tokens: int = 0
    other_characters: int = 0
    other_tokens: int = 0

    def add(self, sent: Sent) -> None:
        """Add one more response."""
        self.raw += sent.raw
        self.raw_reasoning += sent.raw_reasoning
        self.sent += sent.sent
        self.sent_reasoning += sent.sent_reasoning

    def calibrate(self, report: Report | None) -> None:
        """Take in what the provider counted for a response, if it did."""
        if report is None:
            return
        self.reasoning_characters += report.reasoning
        self.reasoning_tokens += report.reasoning_tokens
        self.other_characters += report.other
        self.other_tokens += report.other_tokens

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


def report_of(unit: ResponseUnit, size: Size, reasoning_tokens: str) -> Report | None:
    """What the provider's usage says of a response of ``size``, if it says anything.

    ``reasoning_tokens`` is the rule's word: whether they are ``inside`` the output count or ``added`` to it.
    """
    usage = unit.usage
    if usage is None or usage.output is None:
        return None
    reasoning, other = size.reasoning, size.other
    tokens = usage.reasoning or 0
    rest = usage.output if reasoning_tokens == "added" else usage.output - tokens
    # What is left for the text can be told only where the reasoning was counted, and it is known where.
    unclear = unit.thoughts and reasoning_tokens != "added" and (tokens <= 0 or reasoning_tokens == "unknown")
    if unclear or rest <= 0 or not other:
        other = rest = 0
    if tokens <= 0 or not reasoning or not size.readable:
        reasoning = tokens = 0
    return Report(reasoning, tokens, other, rest)


def size_of(unit: ResponseUnit) -> Size:
    """How much a response put out."""
    reasoning = other = 0
    readable = True
    for block in unit.blocks:
        if type(block) is Text:
            other += len(block.text)
        elif type(block) is ThinkingBlock:
            if not block.is_hidden:
                reasoning += len(block.thought) or weight_of(block)
            # Summaries and encrypted reasoning are shorter than what was billed; only raw text says something.
            readable = readable and block.kind == "raw" and block.thought != ""
        elif type(block) is ToolCall:
            other += len(block.name) + len(block.arguments)
    return Size(reasoning, other, readable)


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
