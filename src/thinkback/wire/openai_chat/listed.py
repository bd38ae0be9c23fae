"""Reasoning as a part of a content list: ``{"type": "reasoning", "summary": [{"type", "text", ...}]}`` (Databricks), or
``{"type": "thinking", "thinking": TEXT}`` with a text or a list of text parts (Mistral's models behind other hosts).

Each part is a block that keeps its wire object; in a stream neighbouring parts are fragments of one.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from thinkback.model import canonical
from thinkback.model.blocks import Carrier, ThinkingBlock
from thinkback.wire.block_accumulator import Arrival, join
from thinkback.wire.openai_chat.blocks import joined_signature
from thinkback.wire.placeholders import marked


def is_reasoning(part: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a content part is reasoning that can be read."""
    if not isinstance(part, dict) or part.get("type") not in ("reasoning", "thinking"):
        return False
    said = part.get("summary" if part["type"] == "reasoning" else "thinking")
    if part["type"] == "thinking" and isinstance(said, str):
        return True
    return isinstance(said, list) and all(isinstance(item, dict) for item in said)


def add(part: dict[str, Any], arrival: Arrival, complete: bool) -> None:
    """A part, or the next fragment of the one that grows."""
    growing = arrival.current
    if part["type"] == "thinking":
        if complete or not isinstance(growing, ThinkingPart):
            growing = ThinkingPart(part["thinking"])
            arrival.open(growing)
        growing.add(part, arrival)
        return
    if complete or not isinstance(growing, ListedPart):
        growing = ListedPart()
        arrival.open(growing)
    growing.add(part, arrival, complete)


class ThinkingPart:
    """One part under construction: its text in fragments, as a text or as one text part, and its other fields."""

    __slots__ = ("at", "is_list", "others", "rest", "signature", "texts")

    def __init__(self, said: Any) -> None:
        self.at = -1
        self.is_list = isinstance(said, list)
        self.rest: dict[str, Any] = {}
        self.texts: list[str] = []
        self.others: list[Any] = []
        self.signature = ""

    def add(self, part: dict[str, Any], arrival: Arrival) -> None:
        said = part["thinking"]
        for item in said if isinstance(said, list) else [{"type": "text", "text": said}]:
            if isinstance(item.get("text"), str):
                self.texts.append(item["text"])
                if item["text"]:
                    arrival.show_reasoning(self, item["text"])
            else:
                self.others.append(item)
        self.rest.update((key, value) for key, value in part.items() if key not in ("signature", "thinking"))
        if isinstance(part.get("signature"), str):
            self.signature = joined_signature(self.signature, part["signature"])

    def block(self) -> ThinkingBlock:
        thought = join(self.texts)
        said = [*([{"type": "text", "text": thought}] if self.texts else []), *self.others] if self.is_list else thought
        signed = {"signature": self.signature} if self.signature else {}
        wire = canonical.source({**self.rest, "thinking": said, **signed})
        return marked(ThinkingBlock(thought, source_field="content", signature=self.signature, wire=wire))


class ListedPart:
    """One part under construction: the fields of each summary item, and its text in fragments."""

    __slots__ = ("at", "items", "rest", "texts")

    def __init__(self) -> None:
        self.at = -1
        self.rest: dict[str, Any] = {}
        self.items: list[dict[str, Any]] = []
        self.texts: list[list[str]] = []

    def add(self, part: dict[str, Any], arrival: Arrival, complete: bool) -> None:
        self.rest.update(part)
        for item in part["summary"]:
            if complete or not self.items:
                self.items.append({})
                self.texts.append([])
            known, texts = self.items[-1], self.texts[-1]
            for key, value in item.items():
                if key == "text" and isinstance(value, str):
                    texts.append(value)
                    if value:
                        arrival.show_reasoning(self, value)
                elif key == "signature" and isinstance(value, str):
                    known[key] = joined_signature(str(known.get(key) or ""), value)
                else:
                    known[key] = value

    def block(self) -> ThinkingBlock:
        items = [
            {**known, "text": join(texts)} if texts else known
            for known, texts in zip(self.items, self.texts, strict=True)
        ]
        signed = [item["signature"] for item in items if isinstance(item.get("signature"), str) and item["signature"]]
        return marked(
            ThinkingBlock(
                join([text for texts in self.texts for text in texts]),
                source_field="content",
                signature=signed[0] if signed else "",
                kind="summary",
                carriers=tuple(Carrier("signature", value) for value in signed[1:]),
                wire=canonical.source({**self.rest, "summary": items}),
            )
        )
