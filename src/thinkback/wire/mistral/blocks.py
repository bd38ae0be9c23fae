"""Accumulators: the parts of a message under construction, in the order in which they began.

Memory is the text itself: each part keeps a list of fragments and joins it once. ``wire_object`` is the inverse: the
provider's object for a block.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, Unknown
from thinkback.model.deltas import ToolCallDelta
from thinkback.wire.block_accumulator import Arrival, join

Inner: TypeAlias = list[str] | dict[str, Any]


class TextPart:
    """Visible text under construction. ``wire`` is set where more than the text stood there."""

    __slots__ = ("at", "fragments", "wire")

    def __init__(self) -> None:
        self.at = -1
        self.fragments: list[str] = []
        self.wire = ""

    def add(self, text: str, arrival: Arrival) -> None:
        """A piece of the text."""
        self.fragments.append(text)
        arrival.show_text(self, text)

    def block(self) -> Text:
        return Text(join(self.fragments), wire=self.wire)


class ThinkPart:
    """A thinking chunk under construction: runs of text, and whatever else stands among them.

    ``rest`` are its other fields; of ``closed`` the last word counts, because every streamed chunk says it.
    """

    __slots__ = ("at", "inner", "rest", "run", "signature")

    def __init__(self) -> None:
        self.at = -1
        self.inner: list[Inner] = []
        self.run: list[str] | None = None
        self.rest: dict[str, Any] = {}
        self.signature = ""

    def add(self, text: str, arrival: Arrival) -> None:
        """A piece of the text; an empty one is a run all the same."""
        if self.run is None:
            self.run = []
            self.inner.append(self.run)
        self.run.append(text)
        if text:
            arrival.show_reasoning(self, text)

    def add_other(self, chunk: dict[str, Any], arrival: Arrival) -> None:
        """A chunk inside this one with more than text; whatever comes next begins a run of its own."""
        self.inner.append(chunk)
        self.run = None
        if text := _text_of(chunk):
            arrival.show_reasoning(self, text)

    def sign(self, signature: str | None) -> None:
        """One that comes again is one; one that comes in pieces is joined."""
        new, old = signature or "", self.signature
        self.signature = new if new.startswith(old) else old if old.startswith(new) else old + new
        self.rest["signature"] = self.signature or signature

    def takes(self, says: bool, signature: object) -> bool:
        """Whether a streamed chunk goes on with this one: once it is signed, further text is another's."""
        return not (self.signature and says and signature != self.signature)

    def block(self) -> ThinkingBlock:
        thought = join([_inner_text(inner) for inner in self.inner])
        inner = [{"type": "text", "text": join(i)} if isinstance(i, list) else i for i in self.inner]
        whole = {"type": "thinking", "thinking": inner, **self.rest}
        block = ThinkingBlock(thought, source_field="thinking", signature=self.signature)
        if whole == _thinking(block):
            return block
        return ThinkingBlock(thought, source_field="thinking", signature=self.signature, wire=canonical.source(whole))


class CallPart:
    """A tool call under construction. ``extra`` is what stands in it beside id, name and arguments."""

    __slots__ = ("arguments", "at", "extra", "function", "id", "name")

    def __init__(self) -> None:
        self.at = -1
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.function: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}

    def add(self, id: str, name: str, arguments: str, arrival: Arrival) -> None:
        """A piece of the call; id and name come whole."""
        id, name = "" if self.id else id, "" if self.name else name
        self.id, self.name = self.id or id, self.name or name
        self.arguments.append(arguments)
        if id or name or arguments:
            arrival.deltas.append(ToolCallDelta(self.at, id, name, arguments, arrival.response))

    def block(self) -> ToolCall:
        arguments = join(self.arguments)
        wire = ""
        if self.extra or self.function:
            function = {"name": self.name, "arguments": arguments, **self.function}
            wire = canonical.source({"id": self.id, "function": function, **self.extra})
        return ToolCall(self.id, self.name, arguments, wire=wire)


class UnknownPart:
    """A chunk of another kind."""

    __slots__ = ("at", "wire")

    def __init__(self, chunk: Any) -> None:
        self.at = -1
        self.wire = canonical.source(chunk)

    def block(self) -> Unknown:
        return Unknown(self.wire)


def wire_object(block: Block) -> Any:
    """The provider's own object for ``block``: a content chunk or a tool call."""
    match block:
        case Text(wire=""):
            return {"type": "text", "text": block.text}
        case ThinkingBlock(wire=""):
            return _thinking(block)
        case ToolCall(wire=""):
            return {"id": block.id, "function": {"name": block.name, "arguments": block.arguments}}
        case _:
            return canonical.decode(block.wire)


def _thinking(block: ThinkingBlock) -> dict[str, Any]:
    """A complete thinking chunk as Mistral gives it."""
    signed = {"signature": block.signature} if block.signature else {}
    inner = [{"type": "text", "text": block.thought}]
    return {"type": "thinking", "thinking": inner, "closed": True, **signed}


def _inner_text(inner: Inner) -> str:
    return "".join(inner) if isinstance(inner, list) else _text_of(inner)


def _text_of(chunk: dict[str, Any]) -> str:
    text = chunk.get("text")
    return text if chunk.get("type") == "text" and isinstance(text, str) else ""
