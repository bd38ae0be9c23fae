"""Readable thoughts that were minted, for formats that hand them out as plain text and take them back without a mark.

A message is recognised by keys that its persona makes of it: the ids of its calls, its text.
"""

from __future__ import annotations

from collections.abc import Iterable


class Thoughts:
    """What was thought with which message."""

    def __init__(self) -> None:
        self._by_key: dict[str, list[str]] = {}
        self._issued: dict[str, int] = {}

    def add(self, keys: Iterable[str], thought: str) -> None:
        """Note the thought of one message; an empty one is known to be empty."""
        for key in keys:
            self._by_key.setdefault(key, []).append(thought)
        self._issued[thought] = self._issued.get(thought, 0) + 1

    def of(self, keys: Iterable[str]) -> set[str]:
        """The thoughts of all messages that the keys fit; empty for a message that was never minted."""
        return {thought for key in keys for thought in self._by_key.get(key, ())}

    def issued(self, thought: str) -> int:
        """How many messages were minted with exactly this thought."""
        return self._issued.get(thought, 0)
