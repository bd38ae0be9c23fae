"""A content block under construction: the object it began with, and what the stream added to it.

Memory is the text itself: fragments are listed and joined once. The block's own object is the start object with its
string fields concatenated; members that nothing was added to stay the source text that they were.
"""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, CarrierKind, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.arguments import as_object
from thinkback.wire.sources import joined, members, string

# The field of each kind of block that people see grow.
_SHOWN = {"text": "text", "thinking": "thinking", "tool_use": "partial_json"}
# The members of the blocks that can be rebuilt from neutral fields.
_USUAL = {
    "text": {"type", "text"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": {"type", "id", "name", "input"},
}
# Opaque values come whole: a second one replaces the first.
_OPAQUE = frozenset({"signature", "encrypted_content", "data"})
_CARRIERS: tuple[tuple[str, CarrierKind], ...] = (("signature", "signature"), ("encrypted_content", "encrypted"))
_FRAGMENTS = frozenset({"text", "thinking", "partial_json", "signature", "citation"})


class Part:
    """One block to be; ``at`` is its index in the message, ``shown`` the field that is shown as it grows."""

    __slots__ = ("added", "at", "kind", "pieces", "response", "shown", "source", "start", "whole")

    def __init__(self, at: int, start: dict[str, Any], source: str, response: str) -> None:
        self.at = at
        self.start = start
        self.source = source
        self.response = response
        self.kind = str(start.get("type"))
        self.shown = _SHOWN.get(self.kind, "")
        self.pieces: list[str] = []
        self.added: dict[str, list[str]] = {}
        self.whole: dict[str, Any] = {}

    def opened(self) -> list[Delta]:
        """What the start object already shows."""
        if self.kind == "tool_use":
            return [ToolCallDelta(self.at, self._given("id"), self._given("name"), "", self.response)]
        text = self._given(self.shown)
        return [self.delta(text)] if text else []

    def delta(self, piece: str) -> Delta:
        """A piece of the field that is shown."""
        if self.kind == "text":
            return TextDelta(piece, self.at, self.response)
        if self.kind == "thinking":
            return ReasoningDelta(piece, self.at, self.response)
        return ToolCallDelta(self.at, "", "", piece, self.response)

    def add(self, field: str, value: str) -> list[Delta]:
        """A string member of a delta."""
        if field == self.shown:
            if value:
                self.pieces.append(value)
                return [self.delta(value)]
        elif field in _OPAQUE:
            if value or not self._opaque(field):
                self.whole[field] = value
        else:
            self.added.setdefault(field, []).append(value)
        return []

    def add_members(self, delta: dict[str, Any]) -> list[Delta]:
        """A delta of a type that is not listed. What a known kind of block has no place for belongs to the frame."""
        deltas: list[Delta] = []
        for field, value in delta.items():
            if field == "type" or value is None or (self.kind in _USUAL and field not in _FRAGMENTS):
                continue
            if field == "citation":
                given = self.whole.get("citations") or self.start.get("citations")
                self.whole["citations"] = [*(given if isinstance(given, list) else ()), value]
            elif isinstance(value, str):
                deltas += self.add(field, value)
            else:
                self.whole[field] = value
        return deltas

    def close(self) -> list[Delta]:
        """Nothing more is to come: a call without fragments has the input of its start object."""
        if self.kind != "tool_use" or self.pieces:
            return []
        given = self.start.get("input")
        if not given:
            return self.add(self.shown, "{}")
        return self.add(self.shown, given if isinstance(given, str) else members(self.source)["input"])

    def block(self) -> Block:
        """The block as far as it has come."""
        match self.kind:
            case "text":
                return Text(self._text("text"), wire=self._wire())
            case "thinking":
                thought, signature = self._text("thinking"), self._opaque("signature")
                return ThinkingBlock(
                    thought,
                    source_field="thinking",
                    signature=signature,
                    kind="raw" if thought else "none",
                    wire=self._wire(),
                )
            case "redacted_thinking" if data := self._opaque("data"):
                return ThinkingBlock(
                    "",
                    source_field="redacted_thinking",
                    kind="none",
                    carriers=(Carrier("redacted", data),),
                    wire=self._wire(),
                )
            case "tool_use":
                arguments = canonical.whole("".join(self.pieces))
                return ToolCall(self._given("id"), self._given("name"), arguments, wire=self._wire())
        opaque = tuple(Carrier(kind, value) for field, kind in _CARRIERS if (value := self._opaque(field)))
        wire = self._object()
        return Unknown(wire, opaque, text=summary_in(wire) if self.kind == "compaction" else "")

    def _given(self, field: str) -> str:
        value = self.start.get(field)
        return canonical.whole(value) if isinstance(value, str) else ""

    def _text(self, field: str) -> str:
        return canonical.whole(self._given(field) + "".join(self.pieces))

    def _opaque(self, field: str) -> str:
        value = self.whole.get(field, self.start.get(field))
        return canonical.whole(value) if isinstance(value, str) else ""

    def _wire(self) -> str:
        """Nothing where the block's own object can be rebuilt."""
        own = {**self.start, **self.whole}
        strings = {key for key, value in own.items() if isinstance(value, str)}
        if self.kind == "tool_use":
            strings |= {"input"} if isinstance(own.get("input"), dict) else set()
        elif self.pieces:
            strings.add(self.shown)
        usual = _USUAL[self.kind]
        return "" if strings == usual >= own.keys() | self.added.keys() else self._object()

    def _object(self) -> str:
        """The block's own object as source text."""
        if not (self.pieces or self.added or self.whole):
            return self.source
        fields = members(self.source)
        added = {**self.added, self.shown: self.pieces} if self.pieces else self.added
        for field, pieces in added.items():
            if field == "partial_json":
                fields["input"] = as_object(canonical.whole("".join(pieces))).decode()
            else:
                fields[field] = string(canonical.whole(self._given(field) + "".join(pieces)))
        fields.update({field: canonical.source(value) for field, value in self.whole.items()})
        return joined(fields)


def summary_in(wire: str) -> str:
    """The readable summary of a compaction block; empty where it has none."""
    content = canonical.decode(wire).get("content")
    return content if isinstance(content, str) else ""
