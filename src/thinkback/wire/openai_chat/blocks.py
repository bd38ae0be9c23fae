"""Accumulators: fragments of a stream until they are blocks.

Memory is the text itself: each accumulator keeps a list of fragments and joins it once.
"""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Text, ThinkingBlock, ThoughtKind, ToolCall

# Texts that stand where a host hides its reasoning; stored as markers, never replayed.
PLACEHOLDERS = frozenset(
    {
        "Thinking...",
        "Thinking…",
        "[REDACTED]",
        "[Some reasoning content is encrypted]",
    }
)
_KIND_OF_ENTRY: dict[str, ThoughtKind] = {"reasoning.summary": "summary", "reasoning.encrypted": "none"}


class TextPart:
    """Visible text under construction; ``reclassify`` turns it into reasoning."""

    def __init__(self, field: str = "content") -> None:
        self.field = field
        self.parts: list[str] = []
        self.closing: str | None = None

    def block(self) -> Text | ThinkingBlock | None:
        text = "".join(self.parts)
        if self.closing is not None:
            return ThinkingBlock(text, source_field="content", closing=self.closing)
        return Text(text, source_field=self.field) if text else None


class ThoughtPart:
    """Reasoning from a message field, or from tags inside ``content`` when ``opening`` is set."""

    def __init__(self, field: str, opening: str = "") -> None:
        self.field = field
        self.opening = opening
        self.closing = ""
        self.parts: list[str] = []
        self.hidden = False

    def text(self) -> str:
        return "".join(self.parts)

    def block(self) -> ThinkingBlock | None:
        thought = self.text()
        if not thought and not self.opening and not self.closing:
            return None
        return ThinkingBlock(
            thought,
            is_hidden=self.hidden,
            source_field=self.field,
            marker=thought.strip() in PLACEHOLDERS,
            opening=self.opening,
            closing=self.closing,
        )


class EntryPart:
    """One ``reasoning_details`` entry, merged from its fragments.

    Some hosts send the text so far in every fragment instead of the next piece; as long as each fragment begins
    with the one before, that is what is happening.
    """

    def __init__(self, entry: dict[str, Any], wire: str = "") -> None:
        self.entry = dict(entry)
        self.wire = wire
        self.key = "summary" if entry.get("type") == "reasoning.summary" else "text"
        first = entry.get(self.key)
        self.fragments: list[str] = [first] if isinstance(first, str) else []
        self.cumulative = True
        self.hidden = False

    def takes(self, entry: dict[str, Any]) -> bool:
        """Whether ``entry`` is a further fragment of this one: same type and index, ids equal or missing."""
        mine, theirs = self.entry.get("id"), entry.get("id")
        return (
            self.entry.get("type") == entry.get("type")
            and self.entry.get("index") == entry.get("index")
            and (mine == theirs or mine is None or theirs is None)
        )

    def add(self, entry: dict[str, Any]) -> str:
        """Merge a fragment; returns the text it adds."""
        added = ""
        for key, value in entry.items():
            old = self.entry.get(key)
            if key == self.key and isinstance(value, str):
                added = self._add_text(value)
            elif old is None:
                self.entry[key] = value
            elif key in ("data", "signature") and isinstance(value, str) and value != old:
                self.entry[key] = old + value
        return added

    def _add_text(self, value: str) -> str:
        if not value:
            return ""
        last = self.fragments[-1] if self.fragments else ""
        grown = bool(last) and len(value) > len(last) and value.startswith(last)
        self.fragments.append(value)
        if len(self.fragments) > 1 and not grown:
            self.cumulative = False
        return value[len(last) :] if self.cumulative and grown else value

    def text(self) -> str:
        if self.cumulative and len(self.fragments) > 1:
            return self.fragments[-1]
        return "".join(self.fragments)

    def block(self) -> ThinkingBlock:
        thought = self.text()
        data, signature = self.entry.get("data"), self.entry.get("signature")
        if self.fragments:
            self.entry[self.key] = thought
        return ThinkingBlock(
            thought,
            is_hidden=self.hidden,
            source_field="reasoning_details",
            signature=signature if isinstance(signature, str) else "",
            kind=_KIND_OF_ENTRY.get(str(self.entry.get("type")), "raw"),
            marker=thought.strip() in PLACEHOLDERS,
            carriers=(Carrier("encrypted", data),) if isinstance(data, str) and data else (),
            wire=self.wire or canonical.encode(self.entry).decode(),
        )


class CallPart:
    """A tool call under construction. ``wire`` is kept only where the object holds more than the usual keys."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.type = "function"
        self.arguments: list[str] = []
        self.extra: dict[str, Any] = {}
        self.wire = ""
        self.field = "tool_calls"

    def block(self) -> ToolCall:
        arguments = "".join(self.arguments)
        wire = self.wire
        if not wire and (self.extra or self.type != "function"):
            function = {"name": self.name, "arguments": arguments}
            body = {"id": self.id, "type": self.type, "function": function, **self.extra}
            wire = canonical.encode(body).decode()
        return ToolCall(self.id, self.name, arguments, source_field=self.field, wire=wire)
