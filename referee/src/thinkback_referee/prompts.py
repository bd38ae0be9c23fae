"""Cache hits by comparing prompts word by word: a prefix that a client changed shows up as a smaller hit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

# A server that runs for days must not keep everything it ever saw.
_KEPT = 32


class Prompts:
    """The latest prompts of each model, as lists of words."""

    def __init__(self) -> None:
        self._earlier: dict[tuple[str, str], deque[Sequence[str]]] = {}

    def hit(self, host: str, model: str, words: Sequence[str]) -> int:
        """How many leading words an earlier prompt to the model shares with this one, which is noted."""
        earlier = self._earlier.setdefault((host, model), deque(maxlen=_KEPT))
        found = cache_hit(words, earlier)
        earlier.append(words)
        return found


def cache_hit(prompt: Sequence[str], earlier: Iterable[Sequence[str]]) -> int:
    """The length of the longest prefix that the prompt shares with an earlier one."""
    return max((_shared(prompt, other) for other in earlier), default=0)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    for count, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return count
    return length
