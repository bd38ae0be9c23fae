"""Texts that stand where a host hides its reasoning, alone, again and again, or in front of what it does tell.

Promises: what is shown while it comes is what the block says in the end, at any cut; nothing is lost: what was taken
out of a thought stands in its ``opening``, or the block is a ``marker``. Must not: know hosts. Which of them says what
is known of no more than a few, and a router passes on what the host behind it says.
"""

from __future__ import annotations

import re

import msgspec

from thinkback.model.blocks import ThinkingBlock, carriers_of, content_slice
from thinkback.model.deltas import Delta, ReasoningDelta

_TEXTS = ("Thinking...", "Thinking…", "[REDACTED]", "[Some reasoning content is encrypted]")
_again = re.compile(rf"(?:(?:{'|'.join(map(re.escape, _TEXTS))})\s*)+")


def parted(text: str) -> tuple[str, str]:
    """The placeholders that ``text`` begins with, white space and all, and what follows them."""
    found = _again.match(text, len(text) - len(text.lstrip()))
    return (text[: found.end()], text[found.end() :]) if found else ("", text)


def marked(block: ThinkingBlock) -> ThinkingBlock:
    """``block`` with its placeholders apart from what was thought; a marker where it is nothing else.

    One that carries something has to go back: then it is reasoning that cannot be read.
    """
    placeholders, thought = parted(block.thought)
    if not placeholders:
        return block
    if not thought and not carriers_of(block):
        return msgspec.structs.replace(block, marker=True)
    kind = block.kind if thought else "none"
    length = len(placeholders)
    before = tuple((place, tags) for place, tags in block.inner if place < length)
    behind = tuple((place - length, tags) for place, tags in block.inner if place >= length)
    opening = content_slice(msgspec.structs.replace(block, thought=placeholders, closing="", inner=before))
    return msgspec.structs.replace(block, opening=opening, thought=thought, kind=kind, inner=behind)


class Placeholders:
    """Takes them out of what is shown, and holds back what may be the beginning of one until it is known.

    A beginning that another block follows was none: blocks come one behind the other.
    """

    def __init__(self) -> None:
        # The beginnings that are held, by index; the blocks that began with a placeholder, and those that have begun.
        self._held: dict[int, ReasoningDelta] = {}
        self._led: set[int] = set()
        self._past: set[int] = set()

    def without(self, deltas: list[Delta]) -> list[Delta]:
        """``deltas`` without the placeholders that thoughts begin with."""
        past = self._past
        if not self._held and {delta.index for delta in deltas if type(delta) is ReasoningDelta} <= past:
            return deltas
        shown: list[Delta] = []
        for delta in deltas:
            if isinstance(delta, ReasoningDelta) and delta.index not in past:
                if delta.index not in self._held:
                    shown += self.rest()
                shown += self._begin(delta)
            else:
                if self._held:
                    shown += self.rest()
                shown.append(delta)
        return shown

    def rest(self) -> list[Delta]:
        """What is held: it turned out to be no placeholder."""
        if not self._held:
            return []
        held, self._held = self._held, {}
        self._past.update(held)
        return list(held.values())

    def _begin(self, delta: ReasoningDelta) -> list[Delta]:
        index, held = delta.index, self._held.pop(delta.index, None)
        text = delta.text if held is None else held.text + delta.text
        placeholders, said = parted(text)
        if placeholders or index in self._led:
            self._led.add(index)
            said = said.lstrip()
        # White space is a thought's own where no placeholder follows.
        if not any(known.startswith(said.lstrip()) for known in _TEXTS):
            self._past.add(index)
            return [msgspec.structs.replace(delta, text=said)]
        if said:
            self._held[index] = msgspec.structs.replace(delta, text=said)
        return []
