"""Accumulators: the blocks of a message under construction, in the order in which they began.

Memory is the text itself: each part keeps a list of fragments and joins it once.
"""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Media, ThinkingBlock, ToolCall, Unknown
from thinkback.wire.arguments import as_object
from thinkback.wire.arrival import join
from thinkback.wire.bedrock import media
from thinkback.wire.pieces import joined, joined_base64

_BINARY = frozenset({"bytes"})


class ReasoningPart:
    """Readable reasoning with its signature, of which the last that came counts."""

    __slots__ = ("at", "pieces", "signature", "wire")

    def __init__(self) -> None:
        self.at = -1
        self.pieces: list[str] = []
        self.signature = ""
        self.wire = ""

    def block(self) -> ThinkingBlock:
        thought = join(self.pieces)
        return ThinkingBlock(
            thought,
            source_field="reasoningText",
            signature=self.signature,
            kind="raw" if thought else "none",
            wire=self.wire,
        )


class RedactedPart:
    """Reasoning that only its maker can read: binary data in base64."""

    __slots__ = ("at", "pieces")

    def __init__(self) -> None:
        self.at = -1
        self.pieces: list[str] = []

    def block(self) -> ThinkingBlock:
        carriers = (Carrier("redacted", joined_base64(self.pieces)),)
        return ThinkingBlock("", source_field="redactedContent", kind="none", carriers=carriers)


class CallPart:
    """A call of a client-side tool; ``extra`` is what its start holds beside id and name."""

    __slots__ = ("at", "extra", "id", "name", "pieces")

    def __init__(self, id: str = "", name: str = "", extra: dict[str, Any] | None = None) -> None:
        self.at = -1
        self.id = id
        self.name = name
        self.extra = extra or {}
        self.pieces: list[str] = []

    @property
    def is_client_side(self) -> bool:
        """Whether it is for the caller to run; what the provider runs itself has a ``type``."""
        return "type" not in self.extra

    def block(self) -> ToolCall | Unknown:
        arguments = join(self.pieces)
        wire = ""
        if self.extra:
            head = canonical.source({"toolUseId": self.id, "name": self.name, **self.extra})
            wire = f'{{"toolUse":{head[:-1]},"input":{as_object(arguments).decode()}}}}}'
        return ToolCall(self.id, self.name, arguments, wire=wire) if self.is_client_side else Unknown(wire)


class OtherPart:
    """Any other content block: its start and deltas, under their common key."""

    __slots__ = ("at", "kind", "pieces", "source")

    def __init__(self, kind: str, source: str = "") -> None:
        self.at = -1
        self.kind = kind
        self.pieces: list[Any] = []
        self.source = source

    def block(self) -> Media | Unknown:
        value = {self.kind: joined(self.pieces, _BINARY)}
        source = self.source or canonical.source(value)
        return media.read_part(value, source) if media.is_media(value) else Unknown(source)
