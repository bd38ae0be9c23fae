"""Reasoning as a part of a content list (Databricks): ``{"type": "reasoning", "summary": [{"type", "text", ...}]}``.

Each part is a block that keeps its wire object; in a stream neighbouring parts are fragments of one.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from thinkback.model import canonical
from thinkback.model.blocks import Carrier, ThinkingBlock
from thinkback.wire.arrival import Arrival, join
from thinkback.wire.openai_chat.blocks import joined_signature


def is_reasoning(part: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a content part is reasoning that can be read."""
    if not isinstance(part, dict) or part.get("type") != "reasoning":
        return False
    summary = part.get("summary")
    return isinstance(summary, list) and all(isinstance(item, dict) for item in summary)


def add(part: dict[str, Any], arrival: Arrival, complete: bool) -> None:
    """A part, or the next fragment of the one that grows."""
    growing = arrival.current
    if complete or not isinstance(growing, ListedPart):
        growing = ListedPart()
        arrival.open(growing)
    growing.add(part, arrival, complete)


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
        return ThinkingBlock(
            join([text for texts in self.texts for text in texts]),
            source_field="content",
            signature=signed[0] if signed else "",
            kind="summary",
            carriers=tuple(Carrier("signature", value) for value in signed[1:]),
            wire=canonical.source({**self.rest, "summary": items}),
        )
