"""Accumulators of dialects: the blocks of a message under construction, in the order in which they began.

Memory is the text itself: each part keeps a list of fragments and joins it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def join_thought(fragments: Sequence[str], inner: Sequence[tuple[int, str]]) -> tuple[str, tuple[tuple[int, str], ...]]:
    """The thought that came in ``fragments``, and the tags within it by the characters in front of each; ``inner`` has
    them by the fragments in front of them.
    """
    if not inner:
        return join(fragments), ()
    pieces: list[str] = []
    placed: list[tuple[int, str]] = []
    first = length = 0
    for count, tags in inner:
        pieces.append(join(fragments[first:count]))
        first, length = count, length + len(pieces[-1])
        placed.append((length, tags))
    return "".join((*pieces, join(fragments[first:]))), tuple(placed)
