"""The reasoning of a message: string fields, ``reasoning_details``, and which of them is read.

Hosts say the same thought under several names. What speaks first leads; where a string and the details say the
same, piece by piece, the details lead, because they carry the opaque values. What only repeats is named, what
differs is kept hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from thinkback.wire.block_accumulator import Arrival, join
from thinkback.wire.openai_chat import kimi_calls
from thinkback.wire.openai_chat.blocks import ThoughtPart, joined_signature
from thinkback.wire.openai_chat.calls import Calls
from thinkback.wire.openai_chat.details import Entries, EntryPart

FIELD_ORDER = ("reasoning_content", "reasoning", "reasoning_text")
DETAILS = "reasoning_details"
OPAQUE, OPAQUE_OF = "reasoning_opaque", "reasoning_text"

_Lead: TypeAlias = Literal["", "string", "details", "both"]


class Reasoning:
    """The reasoning channel. ``only`` is the one field that is read; ``said`` is what was shown so far, in pieces.

    With ``leaks`` the markers of calls in it are held back until it is known what they are (``answered``, ``close``).
    """

    __slots__ = ("_arrival", "_beside", "_calls", "_entries", "_field", "_holder", "_lead", "_names", "_part", "said")

    def __init__(self, arrival: Arrival, calls: Calls, only: str = "", *, leaks: bool = False) -> None:
        self._arrival = arrival
        self._calls = calls
        self._names = (only,) if only else (*FIELD_ORDER, DETAILS)
        self._entries = Entries(arrival)
        self._holder = kimi_calls.Holder() if leaks else None
        self._lead: _Lead = ""
        self._field = ""
        self._part: ThoughtPart | None = None
        self._beside: dict[str, list[str]] = {}
        self.said: list[str] = []

    @property
    def came(self) -> bool:
        """Whether any field brought reasoning, readable or not."""
        return bool(self._lead or self._entries.all)

    @property
    def detailed(self) -> bool:
        """Whether any details came."""
        return bool(self._entries.all)

    def take(self, message: dict[str, Any], complete: bool) -> None:
        """Read, and take out, the reasoning fields of a message or delta with anything in it."""
        texts: list[tuple[str, str]] = []
        entries: list[dict[str, Any]] = []
        for name in self._names:
            value = message.get(name)
            if name == DETAILS:
                if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
                    entries = [entry for entry in value if isinstance(entry, dict)]
                    message[name] = [entry for entry in value if not isinstance(entry, dict)] or None
            elif (text := _text_of(value)) is not None:
                del message[name]
                texts += [(name, text)] if text else []
        if texts or entries:
            self.add(texts, entries, complete)

    def say(self, name: str, text: str) -> None:
        """A piece of one string field, and nothing else beside it."""
        if self._lead == "string" and name == self._field:
            self._speak(text)
        else:
            self.add([(name, text)], ())

    def add(self, texts: list[tuple[str, str]], entries: Sequence[dict[str, Any]], complete: bool = False) -> None:
        """The string fields and the details of one delta, or of a ``complete`` message."""
        added = [self._entries.add(entry, complete) for entry in entries]
        detailed = "".join(text for _, text in added)
        if texts and not self._field:
            self._field = texts[0][0]
        spoken = ""
        for name, text in texts:
            if name == self._field:
                spoken = text
            else:
                self._beside.setdefault(name, []).append(text)
        self._lead, before = _next_lead(self._lead, spoken, detailed), self._lead
        if self._lead == "string":
            if before == "both":
                self._part = ThoughtPart(self._field)
                self._part.parts = self._beside.pop(self._field)
                self._arrival.open(self._part)
            if spoken:
                self._speak(spoken)
            return
        if spoken:
            self._beside.setdefault(self._field, []).append(spoken)
        self._show(added)

    def add_opaque(self, value: str) -> None:
        """The encrypted value beside ``reasoning_text``; without text it is reasoning all the same."""
        parts = [part for part in self._arrival.parts if isinstance(part, ThoughtPart) and part.field == OPAQUE_OF]
        if not parts:
            parts = [ThoughtPart(OPAQUE_OF)]
            self._arrival.open(parts[0])
        parts[-1].opaque = joined_signature(parts[-1].opaque, value)

    def answered(self) -> None:
        """The message has an answer, or a call in its place: markers in its reasoning are a quotation, or a repeat."""
        held, self._holder = self._holder, None
        text = held.release() if held is not None else ""
        if text:
            self._append(text)

    def close(self, calls: bool) -> tuple[str, ...]:
        """Release what was held back, as ``calls`` if that may be; returns the names of the fields that only repeated
        a block.
        """
        if calls and self._holder is not None:
            for is_section, text in kimi_calls.split_sections(self._holder.release()):
                self._take_section(is_section, text)
        self.answered()
        leads = [part for part in self._arrival.parts if isinstance(part, ThoughtPart) and part.field == self._field]
        read = "".join(part.text() + part.closing for part in leads) if leads else self._entries.text()
        if leads:
            for entry in self._entries.all:
                entry.is_silent = bool(entry.fragments)
        repeats = []
        for name, fragments in self._beside.items():
            if join(fragments) == read:
                repeats.append(name)
                continue
            part = ThoughtPart(name)
            part.parts, part.hidden = fragments, True
            self._arrival.open(part)
        self._beside.clear()
        return tuple(repeats)

    def _show(self, added: list[tuple[EntryPart, str]]) -> None:
        for part, text in added:
            if text:
                self.said.append(text)
                self._arrival.show_reasoning(part, text)

    def _speak(self, text: str) -> None:
        shown = self._holder.feed(text) if self._holder is not None else text
        if shown:
            self._append(shown)

    def _append(self, text: str) -> None:
        arrival, part = self._arrival, self._part
        if part is None or arrival.current is not part:
            part = self._part = ThoughtPart(self._field)
            arrival.open(part)
        part.parts.append(text)
        self.said.append(text)
        arrival.show_reasoning(part, text)

    def _take_section(self, is_section: bool, text: str) -> None:
        calls = kimi_calls.parse_section(text) if is_section else []
        if not calls:
            self._append(text)
            return
        if self._part is None or self._arrival.current is not self._part:
            self._part = ThoughtPart(self._field)
            self._arrival.open(self._part)
        # The section's own text stays with the reasoning it stood in, so that the field can be given back whole.
        self._part.closing = text
        self._part = None
        for call in calls:
            self._calls.add_found(call.id, call.name, call.arguments, self._field)


def _next_lead(lead: _Lead, spoken: str, detailed: str) -> _Lead:
    """Who leads after a delta in which the string field and the details said this."""
    if lead in ("string", "details") or not (spoken or detailed):
        return lead
    if spoken == detailed:
        return "both"
    return "string" if spoken else "details"


def _text_of(value: object) -> str | None:
    """A field's text, also where it comes as a list of text parts; ``None`` when it is something else."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        return None
    found = [part.get("text") if isinstance(part, dict) else part for part in value]
    texts = [text for text in found if isinstance(text, str)]
    return "".join(texts) if len(texts) == len(found) else None
