"""Accumulators: the parts of a message under construction, in the order in which they began.

Memory is the text itself: each part keeps a list of fragments and joins it once.
"""

from __future__ import annotations

from thinkback.model.blocks import Carrier, Text, ThinkingBlock, Unknown
from thinkback.wire.block_accumulator import join, join_thought
from thinkback.wire.placeholders import marked


class TextPart:
    """Visible text under construction; a ``closing`` tag makes it reasoning."""

    __slots__ = ("at", "closing", "field", "parts", "wire")

    def __init__(self, field: str = "content") -> None:
        self.at = -1
        self.field = field
        self.parts: list[str] = []
        self.closing: str | None = None
        self.wire = ""

    def block(self) -> Text | ThinkingBlock:
        text = join(self.parts)
        if self.closing is not None:
            return ThinkingBlock(text, source_field="content", closing=self.closing)
        return Text(text, source_field=self.field, wire=self.wire)


class ThoughtPart:
    """Reasoning from a message field, or from tags inside ``content`` when ``opening`` is set.

    ``opaque`` is an encrypted value that the host ties to it.
    """

    __slots__ = ("at", "closing", "field", "hidden", "inner", "opaque", "opening", "parts")

    def __init__(self, field: str, opening: str = "") -> None:
        self.at = -1
        self.field = field
        self.opening = opening
        self.closing = ""
        self.parts: list[str] = []
        self.inner: list[tuple[int, str]] = []
        self.hidden = False
        self.opaque = ""

    def text(self) -> str:
        return join(self.parts)

    def block(self) -> ThinkingBlock:
        thought, inner = join_thought(self.parts, self.inner)
        return marked(
            ThinkingBlock(
                thought,
                is_hidden=self.hidden,
                source_field=self.field,
                kind="none" if self.opaque and not thought else "raw",
                opening=self.opening,
                closing=self.closing,
                carriers=(Carrier("encrypted", self.opaque),) if self.opaque else (),
                inner=inner,
            )
        )


class UnknownPart:
    """A part of a content list that is no text."""

    __slots__ = ("at", "wire")

    def __init__(self, wire: str) -> None:
        self.at = -1
        self.wire = wire

    def block(self) -> Unknown:
        return Unknown(self.wire)


def joined_signature(old: str, new: str) -> str:
    """A signature that comes again is one; one that comes in pieces is joined."""
    return new if new.startswith(old) else old if old.startswith(new) else old + new
