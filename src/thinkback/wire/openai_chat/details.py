"""``reasoning_details``: entries merged from their fragments by type, index and id.

Opaque values are never cut, joined with strangers or re-encoded: what cannot be a further piece of an entry begins
a new one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Carrier, ThinkingBlock, ThoughtKind
from thinkback.wire.block_accumulator import Arrival, join
from thinkback.wire.openai_chat.blocks import joined_signature
from thinkback.wire.placeholders import marked

_KIND_OF_ENTRY: dict[str, ThoughtKind] = {"reasoning.summary": "summary", "reasoning.encrypted": "none"}
_GROWING = ("arguments", "result")


class Entries:
    """The entries of one message."""

    __slots__ = ("_arrival", "_known", "all")

    def __init__(self, arrival: Arrival) -> None:
        self._arrival = arrival
        self._known: dict[str, list[EntryPart]] = {}
        self.all: list[EntryPart] = []

    def add(self, entry: dict[str, Any], complete: bool = False) -> tuple[EntryPart, str]:
        """Merge one fragment, or take a ``complete`` entry; returns its part and the readable text it adds."""
        same = self._known.setdefault(f"{entry.get('type')} {entry.get('index')}", [])
        if not complete:
            for part in reversed(same):
                if part.takes(entry):
                    return part, part.add(entry)
        part = EntryPart(entry)
        same.append(part)
        self.all.append(part)
        self._arrival.open(part)
        return part, "".join(part.fragments)

    def text(self) -> str:
        """The readable text of all entries."""
        return "".join(part.text() for part in self.all)


class EntryPart:
    """One entry under construction. ``is_silent``: a string field says what it says, its text stays in ``wire``.

    Some hosts send the text so far in every fragment instead of the next piece; as long as each fragment begins
    with the one before, that is what is happening.
    """

    __slots__ = ("_cumulative", "_key", "_last", "at", "entry", "fragments", "is_silent")

    def __init__(self, entry: dict[str, Any]) -> None:
        self.at = -1
        self.entry = dict(entry)
        self.is_silent = False
        self._key = "summary" if entry.get("type") == "reasoning.summary" else "text"
        first = entry.get(self._key)
        self._last = first if isinstance(first, str) else ""
        self._cumulative: bool | None = None
        self.fragments: list[str] = [self._last] if isinstance(first, str) else []

    def takes(self, entry: dict[str, Any]) -> bool:
        """Whether ``entry`` is a further fragment of this one; type and index are equal already."""
        mine, theirs = self.entry.get("id"), entry.get("id")
        if mine != theirs and mine is not None and theirs is not None:
            return False
        if entry.get("data") and self.entry.get("data"):
            return bool(entry["data"] == self.entry["data"])
        signed = self.entry.get("signature")
        return not (signed and entry.get(self._key) and entry.get("signature") != signed)

    def add(self, entry: dict[str, Any]) -> str:
        """Merge a fragment; returns the text it adds."""
        added = ""
        for key, value in entry.items():
            old = self.entry.get(key)
            if key == self._key and isinstance(value, str):
                added = self._add_text(value)
            elif key == "signature" and isinstance(value, str) and isinstance(old, str):
                self.entry[key] = joined_signature(old, value)
            elif key in _GROWING and isinstance(value, str) and isinstance(old, str):
                self.entry[key] = old + value
            elif value not in (None, "") or key not in self.entry:
                self.entry[key] = value
        return added

    def _add_text(self, value: str) -> str:
        last = self._last
        if not value or (self._cumulative and value == last):
            return ""
        grows = self._cumulative is not False and bool(last) and len(value) > len(last) and value.startswith(last)
        if last:
            self._cumulative = grows
        self._last = value
        added = value[len(last) :] if grows else value
        self.fragments.append(added)
        return added

    def text(self) -> str:
        return join(self.fragments)

    def block(self) -> ThinkingBlock:
        thought = self.text()
        data, signature = self.entry.get("data"), self.entry.get("signature")
        entry = {**self.entry, self._key: thought} if self.fragments else self.entry
        carriers = (Carrier("encrypted", data),) if isinstance(data, str) and data else ()
        signature = signature if isinstance(signature, str) else ""
        block = marked(
            ThinkingBlock(
                thought,
                source_field="reasoning_details",
                signature=signature,
                kind=_KIND_OF_ENTRY.get(str(entry.get("type")), "raw"),
                carriers=carriers,
                wire=canonical.source(entry),
            )
        )
        return msgspec.structs.replace(block, thought="", opening="", kind="none") if self.is_silent else block
