"""Accumulators of dialects: the blocks of a message under construction, in the order in which they began.

Memory is the text itself: each part keeps a list of fragments and joins it once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from thinkback.model import canonical
from thinkback.model.blocks import Block
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta


class Part(Protocol):
    """One block to be; ``at`` is its index in the message."""

    at: int

    def block(self) -> Block:
        """The block as far as it has come."""
        ...


class Arrival:
    """The parts in order of arrival, the one that grows, and the deltas not yet taken."""

    __slots__ = ("current", "deltas", "parts", "response")

    def __init__(self, response: str = "") -> None:
        self.parts: list[Part] = []
        self.current: Part | None = None
        self.deltas: list[Delta] = []
        self.response = response

    def open(self, part: Part) -> None:
        """``part`` comes next and is the one that grows."""
        part.at = len(self.parts)
        self.parts.append(part)
        self.current = part

    def show_text(self, part: Part, text: str) -> None:
        self.deltas.append(TextDelta(text, part.at, self.response))

    def show_reasoning(self, part: Part, text: str) -> None:
        self.deltas.append(ReasoningDelta(text, part.at, self.response))

    def take(self) -> list[Delta]:
        """What there is to show since the last time."""
        deltas = self.deltas
        self.deltas = []
        return deltas


def join(fragments: Iterable[str]) -> str:
    """The text that came in ``fragments``, each surrogate pair cut in two as one character."""
    return canonical.whole("".join(fragments))
