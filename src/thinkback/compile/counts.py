"""Token estimates, anchored at what the provider reported. Never raises."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Sequence

import msgspec

from thinkback.compile.units import ResponseUnit
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, Unknown, carriers_of
from thinkback.model.commits import Message, Tool, Usage

# Bytes of UTF-8 per token before anything is reported: 0.25 tokens a letter of English, 0.5 one of Cyrillic, 0.75 one
# of Chinese, Japanese or Korean. 3 is the conservative fallback where a tokenizer fails.
DEFAULT_RATIO = 4.0
MOST_BYTES = 32
"""No tokenizer puts more text than this into its tokens on average: a count that says so is none."""
FALLBACK_RATIO = 3.0
# A handful of tokens says nothing about a ratio.
ENOUGH_TOKENS = 50
# An image, a page or two of a document: most providers count by size in pixels, which nobody here knows.
MEDIA_TOKENS = 1_500


# No text has so many letters a token that its size is overestimated by more than this.
LEAST_SHARE = 3
# Tokens that a provider adds to what it is sent: its own words about tools, those of servers that it asks for tools.
MOST_UNSEEN = 50_000


class Size(msgspec.Struct, frozen=True, gc=False):
    """The weights of what a response put out: reasoning, and everything else.

    ``readable``: that reasoning is what was billed.
    """

    reasoning: int
    other: int
    readable: bool


class Amount(msgspec.Struct, gc=False):
    """A size to be counted: weights of what nobody counted, and tokens that the provider reported."""

    other: float = 0
    reasoning: float = 0
    other_tokens: float = 0
    reasoning_tokens: float = 0

    def add(self, more: Amount) -> None:
        """Add what ``more`` has."""
        self.other += more.other
        self.reasoning += more.reasoning
        self.other_tokens += more.other_tokens
        self.reasoning_tokens += more.reasoning_tokens

    @property
    def thought(self) -> float:
        """Tokens of reasoning."""
        return self.reasoning / DEFAULT_RATIO + self.reasoning_tokens

    @property
    def tokens(self) -> float:
        """Tokens of it all."""
        return (self.other + self.reasoning) / DEFAULT_RATIO + self.reasoning_tokens + self.other_tokens


class Sent(msgspec.Struct, frozen=True, gc=False):
    """A response in its place: ``raw`` is what is stored of it, ``sent`` what goes out and is counted."""

    raw: Amount
    sent: Amount


class Report(msgspec.Struct, frozen=True, gc=False):
    """What the provider counted of a response: tokens of reasoning and of everything else, ``None`` for what nobody
    can tell.
    """

    reasoning: float | None
    other: float | None


class Counted(msgspec.Struct, frozen=True, gc=False):
    """A request that the provider counted: its ``input`` with what was cached, and what it was estimated at.

    ``seq`` is that of its response.
    """

    seq: int
    input: int
    estimate: float

    def grown(self, estimate: float) -> float:
        """The tokens of a request that is estimated at ``estimate``.

        What was taken away is as much too small or too large an estimate as the request was, which is then known.
        """
        if estimate >= self.estimate:
            return self.input + estimate - self.estimate
        share = min(max(self.input / self.estimate, 1 / LEAST_SHARE), LEAST_SHARE)
        return max(self.input - (self.estimate - estimate) * share, estimate / LEAST_SHARE)


class Tally(msgspec.Struct):
    """Sums over rendered messages. ``counted`` is the last request that the provider counted and whose record has no
    estimate; ``estimate`` then is of what stands before its response as it would go now.
    """

    raw: Amount = msgspec.field(default_factory=Amount)
    sent: Amount = msgspec.field(default_factory=Amount)
    counted: Counted | None = None

    def copy(self) -> Tally:
        """A twin that may be changed."""
        return Tally(copy.copy(self.raw), copy.copy(self.sent), self.counted)

    def size(self, counted: Counted | None, beside: float, added: int = 0) -> float:
        """The next request's tokens: those of the last request that was ``counted``, and by how much this one is
        estimated to be larger. ``beside`` are those of what stands beside its messages, ``added`` those that a provider
        is known to add to it, which its own count has.
        """
        estimate, own = self.sent.tokens, self.counted
        if counted is not None and (own is None or own.seq < counted.seq):
            return counted.grown(estimate + beside)
        return own.grown(estimate) if own is not None else estimate + beside + added


class Calibration:
    """The characters per token of what providers reported, for texts that are sent to nobody in particular."""

    def __init__(self) -> None:
        self._characters = self._tokens = 0.0
        self._thought_characters = self._thought_tokens = 0.0

    def add(self, size: Size, report: Report | None) -> None:
        """Take in what was reported of a response of ``size``, if anything was."""
        if report is not None and report.other and size.other:
            self._characters += size.other
            self._tokens += report.other
        if report is not None and report.reasoning and size.reasoning and size.readable:
            self._thought_characters += size.reasoning
            self._thought_tokens += report.reasoning

    def reasoning(self, weight: float) -> float:
        """Tokens of reasoning of that weight."""
        return weight / _ratio(self._thought_characters, self._thought_tokens)

    def other(self, weight: float) -> float:
        """Tokens of text and calls of that weight."""
        return weight / _ratio(self._characters, self._tokens)

    @property
    def is_calibrated(self) -> bool:
        """True if the providers reported enough to go by."""
        return max(self._tokens, self._thought_tokens) >= ENOUGH_TOKENS


def counted_request(unit: ResponseUnit, usage: Usage, estimate: float) -> Counted | None:
    """What the provider counted of the request for a response, cached tokens included; ``None`` where it did not.

    Where the provider ran tools it made several calls, each with the conversation: the last one's input is the size.
    A number far below the ``estimate`` leaves something out (a host's cache), and one far above it cannot be: a token
    is a byte at least. Neither is a measure.
    """
    input = usage.last_input
    if input is None and not any(type(block) is Unknown for block in unit.blocks):
        input = usage.whole_input()
    if not input or input * LEAST_SHARE < estimate or input > estimate * DEFAULT_RATIO + MOST_UNSEEN:
        return None
    return Counted(unit.seq, input, estimate)


def report_of(unit: ResponseUnit, size: Size, reasoning_tokens: str) -> Report | None:
    """What the provider's usage says of a response of ``size``, if it says anything.

    ``reasoning_tokens`` is the rule's word: whether they are ``inside`` the output count or ``added`` to it. Where
    reasoning was not counted, it is what of the output the visible text leaves.
    """
    usage = unit.usage
    if usage is None or usage.output is None:
        return None
    added = reasoning_tokens == "added" or "reasoning_beside_output" in usage.counted
    tokens = usage.reasoning or None
    if tokens is not None and not _may_be(tokens, unit):
        tokens = None
    if added:
        return Report(tokens, usage.output or None)
    if not unit.thoughts and not tokens:
        return Report(None, usage.output or None)
    if tokens is None:
        left = usage.output - size.other / DEFAULT_RATIO
        return Report(left, size.other / DEFAULT_RATIO) if left > 0 and _may_be(left, unit) else None
    rest = usage.output - tokens
    return Report(tokens, rest if rest > 0 and reasoning_tokens == "inside" else None)


def _may_be(tokens: float, unit: ResponseUnit) -> bool:
    """True if the reasoning of a response can have so few tokens: its text is all of it, or a summary."""
    return tokens * MOST_BYTES >= sum(
        weigh(block.thought) for block in unit.blocks if type(block) is ThinkingBlock and not block.is_hidden
    )


def size_of(unit: ResponseUnit) -> Size:
    """How much a response put out."""
    reasoning = other = 0
    readable = True
    for block in unit.blocks:
        if type(block) is Text:
            other += weigh(block.text)
        elif type(block) is ThinkingBlock:
            if not block.is_hidden:
                reasoning += weight_of(block)
            # Summaries and encrypted reasoning are shorter than what was billed; only raw text says something.
            readable = readable and block.kind == "raw" and block.thought != ""
        elif type(block) is ToolCall:
            other += weigh(block.name) + weigh(block.arguments)
    return Size(reasoning, other, readable)


def stored_amount(size: Size, report: Report | None) -> Amount:
    """A response whole, as its provider counted it where it did."""
    reasoning = report.reasoning if report is not None else None
    other = report.other if report is not None else None
    return Amount(
        size.other if other is None else 0, size.reasoning if reasoning is None else 0, other or 0, reasoning or 0
    )


def sent_amount(size: Size, report: Report | None, other: int, native: int, told: int) -> Amount:
    """What goes of a response of ``size``: weights of ``other``, of reasoning as it was made, and as text.

    What goes whole has as many tokens as it had when it was made. A summary that goes as text is no more than it says.
    """
    amount = Amount()
    if report is not None and report.other is not None and other == size.other:
        amount.other_tokens = report.other
    else:
        amount.other = other
    if size.readable:
        native, told = native + told, 0
    if report is not None and report.reasoning is not None and size.reasoning:
        amount.reasoning_tokens = report.reasoning * min(native / size.reasoning, 1)
        amount.reasoning = told
    else:
        amount.reasoning = native + told
    return amount


def weigh(text: str) -> int:
    """The weight of a text: its bytes in UTF-8, of which ``DEFAULT_RATIO`` are a token."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def weigh_message(message: Message) -> int:
    """The weight of a message with what is attached to it."""
    weight = weigh(message.text)
    for part in message.parts:
        if type(part) is Media:
            weight += _weigh_media(part)
        elif type(part) is Unknown:
            weight += min(len(part.wire), MEDIA_TOKENS * 4)
    return weight


def weigh_tools(tools: Iterable[Tool]) -> int:
    """The weight of tools as they are offered."""
    return sum(len(tool.wire) or sum(map(weigh, (tool.name, tool.description, tool.parameters))) for tool in tools)


def weight_of(block: ThinkingBlock) -> int:
    """The weight of one piece of reasoning: its text, or its carriers where it has none."""
    return weigh(block.thought) or sum(len(carrier.value) for carrier in carriers_of(block))


def _weigh_media(media: Media) -> int:
    if media.media_type.startswith("text/") and media.data:
        return len(media.data) * 3 // 4
    return MEDIA_TOKENS * 4


def estimate_thinking_tokens(blocks: Sequence[ThinkingBlock], count: Callable[[str], int] | None = None) -> int:
    """Tokens of the reasoning in ``blocks``: ``count`` where given, else characters / 4.

    Never raises: where ``count`` fails it falls back to characters / 3, which errs high, and warns.
    """
    text = "".join(block.thought for block in blocks)
    if not text:
        return 0
    if count is None:
        return round(weigh(text) / DEFAULT_RATIO) or 1
    try:
        return count(text)
    except Exception as error:  # a tokenizer is foreign code, and counting must never stop a turn
        warnings.warn(f"token count failed ({type(error).__name__}); using characters / 3", stacklevel=2)
        return -(-len(text) // round(FALLBACK_RATIO))


def _ratio(characters: float, tokens: float) -> float:
    # An absurd ratio (summaries, wrong counts) must not steer compaction.
    if tokens < ENOUGH_TOKENS:
        return DEFAULT_RATIO
    return min(max(characters / tokens, 1.0), 8.0)
