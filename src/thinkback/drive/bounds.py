"""How much of a tool's output the model gets: bounded by tokens, cut in the middle, with a note of what is missing."""

from __future__ import annotations

from thinkback.compile.counts import DEFAULT_RATIO

# What one call may cost of the context unless a person says otherwise.
OUTPUT_TOKENS = 8_000


def characters(tokens: int) -> int:
    """How many characters ``tokens`` are by the project's estimate."""
    return int(tokens * DEFAULT_RATIO)


def bounded(text: str, tokens: int) -> str:
    """``text``, or its beginning and its end where it is longer than ``tokens``. Cuts between lines where it can."""
    limit = characters(tokens)
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[len(text) - limit // 2 :]
    # A cut line is worse than a missing one, unless the lines are long.
    head = head[: head.rfind("\n") + 1] if "\n" in head[limit // 4 :] else head
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail[: limit // 4] else tail
    return f"{head.rstrip()}\n{left_out(len(text) - len(head) - len(tail))}\n{tail}"


def left_out(count: int) -> str:
    """The note that stands for ``count`` characters."""
    return f"[... {count:,} characters left out, about {round(count / DEFAULT_RATIO):,} tokens ...]"
