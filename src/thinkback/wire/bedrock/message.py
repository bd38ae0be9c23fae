"""A Converse message under construction: content blocks whole, or in deltas told apart by their index.

Memory is the text itself: each part keeps a list of fragments and joins it once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, ThinkingBlock, ToolCall, Unknown
from thinkback.model.deltas import ReasoningDelta, ToolCallDelta
from thinkback.model.think_tags import Where
from thinkback.wire.arguments import as_object
from thinkback.wire.bedrock import events, media
from thinkback.wire.bedrock.text import TextChannel, TextContent
from thinkback.wire.block_accumulator import Arrival, join
from thinkback.wire.pieces import joined, joined_base64
from thinkback.wire.values import plain

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


_Open = TextContent | ReasoningPart | RedactedPart | CallPart | OtherPart


class MessageBuilder:
    """Give it events or whole content blocks, ``take`` what to show, ``close`` it, then ask for ``blocks``."""

    def __init__(self, response: str = "", tags: Where = "start") -> None:
        self._arrival = Arrival(response)
        self.take = self._arrival.take
        self.parts = self._arrival.parts
        self._text = TextChannel(self._arrival, tags)
        self._open: dict[int, _Open] = {}
        self._reasons = False

    def add(self, index: int, delta: events.Delta) -> None:
        """One streamed delta with known keys."""
        if delta.text is not None:
            self._add_text(index, delta.text)
        if delta.reasoningContent is not None:
            self._add_reasoning(index, delta.reasoningContent)
        if delta.toolUse is not None:
            self._add_input(index, delta.toolUse.input)

    def start(self, index: int, start: dict[str, Any]) -> None:
        """A content block begins; those of text and reasoning begin with their first delta."""
        self._text.end()
        for kind, value in start.items():
            if kind == "toolUse" and isinstance(value, dict):
                extra = dict(value)
                id, name = extra.pop("toolUseId", ""), extra.pop("name", "")
                self._open[index] = self._call(plain(id), plain(name), extra)
            else:
                self._open[index] = self._other(kind, value)

    def add_object(self, index: int, delta: dict[str, Any]) -> None:
        """One streamed delta with anything in it."""
        for kind, value in delta.items():
            if kind == "text" and isinstance(value, str):
                self._add_text(index, value)
            elif kind == "reasoningContent" and (known := _known_reasoning(value)) is not None:
                self._add_reasoning(index, known)
            elif kind == "toolUse" and isinstance(value, dict) and value.keys() <= {"input"}:
                given = value.get("input", "")
                self._add_input(index, given if isinstance(given, str) else canonical.source(given))
            elif kind == "citation":
                self._text.add_cited(self._text_at(index), value)
            else:
                part = self._open.get(index)
                if isinstance(part, OtherPart) and part.kind == kind:
                    part.pieces.append({"content": value} if isinstance(value, list) else value)
                else:
                    self._open[index] = self._other(kind, value)

    def stop(self, index: int) -> None:
        """A content block is complete."""
        self._text.end()
        self._open.pop(index, None)

    def add_block(self, block: Any, source: str, input: str = "") -> None:
        """A whole content block; ``source`` is its JSON, ``input`` that of the call in it."""
        self._text.end()
        kind, value = next(iter(block.items())) if isinstance(block, dict) and len(block) == 1 else ("", None)
        if kind == "text" and isinstance(value, str):
            self._text.add(self._text.begin(), value, self._reasons)
        elif kind == "reasoningContent" and isinstance(value, dict) and self._add_whole_reasoning(value, source):
            return
        elif kind == "toolUse" and isinstance(value, dict):
            extra = {key: item for key, item in value.items() if key not in ("toolUseId", "name", "input")}
            call = self._call(plain(value.get("toolUseId")), plain(value.get("name")), extra)
            self._grow_call(call, input or canonical.source(value.get("input", {})))
        elif kind == "citationsContent" and (text := _cited(value)) is not None:
            self._text.add_whole(text, source)
        else:
            self._other(kind, value, source)

    def close(self) -> None:
        """The message has ended: release what was held back."""
        self._text.end()

    def blocks(self) -> tuple[Block, ...]:
        """The blocks as far as they have come, in order of arrival."""
        return tuple(part.block() for part in self._arrival.parts)

    def _text_at(self, index: int) -> TextContent:
        part = self._open.get(index)
        if not isinstance(part, TextContent):
            part = self._open[index] = self._text.begin()
        return part

    def _add_text(self, index: int, text: str) -> None:
        self._text.add(self._text_at(index), text, self._reasons)

    def _add_reasoning(self, index: int, delta: events.ReasoningDelta) -> None:
        part = self._open.get(index)
        if delta.redactedContent is not None:
            if not isinstance(part, RedactedPart):
                part = self._open[index] = self._redacted()
            part.pieces.append(delta.redactedContent)
        if delta.text is None and delta.signature is None:
            return
        if not isinstance(part, ReasoningPart):
            part = self._open[index] = self._reasoning()
        if delta.text:
            self._think(part, delta.text)
        if delta.signature:
            part.signature = delta.signature

    def _add_whole_reasoning(self, value: dict[str, Any], source: str) -> bool:
        """Whether ``value`` is reasoning as it is known, and was taken."""
        readable, redacted = value.get("reasoningText"), value.get("redactedContent")
        if isinstance(redacted, str) and len(value) == 1:
            self._redacted().pieces.append(redacted)
            return True
        text = readable.get("text") if isinstance(readable, dict) else None
        if not isinstance(text, str):
            return False
        part = self._reasoning()
        signature = readable.get("signature") if isinstance(readable, dict) else None
        part.signature = plain(signature)
        usual = {"text", "signature"} if part.signature else {"text"}
        if len(value) > 1 or set(readable or ()) != usual:
            part.wire = source
        if text:
            self._think(part, text)
        return True

    def _think(self, part: ReasoningPart, text: str) -> None:
        part.pieces.append(text)
        arrival = self._arrival
        arrival.deltas.append(ReasoningDelta(text, part.at, arrival.response))

    def _add_input(self, index: int, fragment: str) -> None:
        part = self._open.get(index)
        if not isinstance(part, CallPart):
            part = self._open[index] = self._call("", "", {})
        self._grow_call(part, fragment)

    def _grow_call(self, part: CallPart, fragment: str) -> None:
        part.pieces.append(fragment)
        if fragment and part.is_client_side:
            arrival = self._arrival
            arrival.deltas.append(ToolCallDelta(part.at, arguments=fragment, response=arrival.response))

    def _reasoning(self) -> ReasoningPart:
        self._text.end()
        self._reasons = True
        part = ReasoningPart()
        self._arrival.open(part)
        return part

    def _redacted(self) -> RedactedPart:
        self._text.end()
        self._reasons = True
        part = RedactedPart()
        self._arrival.open(part)
        return part

    def _call(self, id: str, name: str, extra: dict[str, Any]) -> CallPart:
        self._text.end()
        part = CallPart(id, name, extra)
        self._arrival.open(part)
        if part.is_client_side and (id or name):
            self._arrival.deltas.append(ToolCallDelta(part.at, id, name, response=self._arrival.response))
        return part

    def _other(self, kind: str, value: Any, source: str = "") -> OtherPart:
        self._text.end()
        part = OtherPart(kind, source)
        part.pieces.append({"content": value} if isinstance(value, list) and not source else value)
        self._arrival.open(part)
        return part


def _known_reasoning(value: Any) -> events.ReasoningDelta | None:
    try:
        return canonical.convert(value, events.ReasoningDelta)
    except msgspec.ValidationError:
        return None


def _cited(value: Any) -> str | None:
    """The text of a content block with citations."""
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list):
        return None
    texts = [part.get("text") if isinstance(part, dict) else None for part in content]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if len(found) == len(texts) else None
