"""A chat message under construction: each fragment goes to its part, and what to show comes out."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import ThinkingBlock, Unknown
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified, TextDelta, ToolCallDelta
from thinkback.wire.openai_chat import chunks, kimi_calls
from thinkback.wire.openai_chat.blocks import CallPart, EntryPart, TextPart, ThoughtPart
from thinkback.wire.think_tags import Piece, TagSplitter

Part: TypeAlias = TextPart | ThoughtPart | EntryPart | CallPart | Unknown


class MessageBuilder:
    """The message under construction: routes each fragment to its part and says what to show."""

    def __init__(self, fields: tuple[str, ...], response: str = "") -> None:
        self._fields = fields
        self._response = response
        self._parts: list[Part] = []
        self._entries: list[EntryPart] = []
        self._calls: list[CallPart] = []
        self._current: Part | None = None
        self._tags = TagSplitter()
        self._sections = kimi_calls.SectionSplitter()
        self._beside: dict[str, list[str]] = {}
        self._thought_field = ""
        self.content: Any = "absent"
        self.extra: dict[str, Any] = {}

    def add(self, delta: chunks.ChatDelta, deltas: list[Delta]) -> None:
        """One streamed delta with known keys."""
        details = [canonical.decode(bytes(raw)) for raw in delta.reasoning_details or ()]
        texts = [(name, text) for name in self._fields if (text := getattr(delta, name, None))]
        if details or texts:
            self._add_reasoning(texts, details, deltas)
        if delta.content is not None:
            self._add_content(delta.content, deltas)
        if delta.tool_calls:
            for call in delta.tool_calls:
                function = call.function or chunks.FunctionDelta()
                self._add_call(call.index, call.id, function.name, function.arguments, deltas).type = (
                    call.type or "function"
                )
        if delta.refusal:
            self._append_text(delta.refusal, deltas, "refusal")

    def add_generic(self, delta: dict[str, Any], deltas: list[Delta]) -> None:
        """One streamed delta or whole message with anything in it."""
        texts = [(name, text) for name in self._fields if isinstance(text := delta.get(name), str) and text]
        entries = delta.get("reasoning_details")
        details = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        if details or texts:
            self._add_reasoning(texts, details, deltas)
        content = delta.get("content")
        if isinstance(content, str):
            self._add_content(content, deltas)
        elif isinstance(content, list):
            self._add_content_list(content, deltas)
        elif "content" in delta and self.content == "absent":
            self.content = "null"
        for call in delta.get("tool_calls") or []:
            if isinstance(call, dict):
                self._add_generic_call(call, deltas)
        if isinstance(delta.get("refusal"), str) and delta["refusal"]:
            self._append_text(delta["refusal"], deltas, "refusal")
        known = chunks.KNOWN_MESSAGE_KEYS | set(self._fields)
        self.extra.update({key: value for key, value in delta.items() if key not in known and value is not None})
        if "reasoning_details" in delta and not details and not self._entries and delta["reasoning_details"] == []:
            self.extra["reasoning_details"] = []

    def add_message(self, message: dict[str, Any], deltas: list[Delta]) -> None:
        """A whole message: a delta whose fragments are complete."""
        self.add_generic(message, deltas)

    def close(self) -> list[Delta]:
        """Release what the splitters held back."""
        deltas: list[Delta] = []
        for piece in self._tags.close():
            self._take_piece(piece, deltas)
        for is_section, text in self._sections.close():
            self._take_section(is_section, text, deltas)
        return deltas

    def blocks(self) -> tuple[list[Any], tuple[str, ...]]:
        """The finished blocks, and the fields that only repeated them."""
        repeats = self._settle_repeats()
        built = [part if isinstance(part, Unknown) else part.block() for part in self._parts]
        blocks = [block for block in built if block is not None]
        return _hide_duplicates(blocks), repeats

    # -- reasoning -----------------------------------------------------------------------------------------------

    def _add_reasoning(self, texts: list[tuple[str, str]], details: list[dict[str, Any]], deltas: list[Delta]) -> None:
        shown = False
        for entry in details:
            shown = self._add_entry(entry, deltas) or shown
        for name, text in texts:
            if shown or (self._thought_field and name != self._thought_field):
                self._beside.setdefault(name, []).append(text)
                continue
            self._thought_field = name
            for is_section, piece in self._sections.feed(text):
                self._take_section(is_section, piece, deltas)
            shown = True

    def _add_entry(self, entry: dict[str, Any], deltas: list[Delta]) -> bool:
        """Merge one details entry; true when it brought readable text."""
        part = next((known for known in self._entries if known.takes(entry)), None)
        if part is None:
            part = EntryPart(entry)
            self._entries.append(part)
            self._open(part)
            text = "".join(part.fragments)
        else:
            text = part.add(entry)
        if text:
            deltas.append(ReasoningDelta(text, self._parts.index(part), self._response))
        return bool(text)

    def _take_section(self, is_section: bool, text: str, deltas: list[Delta]) -> None:
        calls = kimi_calls.parse_section(text) if is_section else []
        if not calls:
            self._append_thought(text, self._thought_field, deltas)
            return
        if not isinstance(self._current, ThoughtPart):
            self._open(ThoughtPart(self._thought_field))
        assert isinstance(self._current, ThoughtPart)
        # The section's own text stays with the reasoning it stood in, so that the field can be given back whole.
        self._current.closing += text
        for call in calls:
            part = self._add_call(None, call.id, call.name, call.arguments, deltas)
            part.field = self._thought_field
        self._current = None

    def _append_thought(self, text: str, field: str, deltas: list[Delta]) -> None:
        current = self._current
        if not isinstance(current, ThoughtPart) or current.field != field or current.closing:
            current = ThoughtPart(field)
            self._open(current)
        current.parts.append(text)
        deltas.append(ReasoningDelta(text, len(self._parts) - 1, self._response))

    def _settle_repeats(self) -> tuple[str, ...]:
        """Fields beside the chosen one: repeats are named, anything else is kept as a hidden block."""
        chosen = "".join(
            part.text()
            for part in self._parts
            if isinstance(part, EntryPart) or (isinstance(part, ThoughtPart) and part.field == self._thought_field)
        )
        repeats = []
        for name, fragments in self._beside.items():
            text = "".join(fragments)
            if text == chosen:
                repeats.append(name)
                continue
            part = ThoughtPart(name)
            part.parts, part.hidden = fragments, bool(self._thought_field)
            self._parts.insert(self._first_thought(), part)
            if not self._thought_field:
                # The string is what hosts mean to be read; the details say the same in another cut.
                for entry in self._entries:
                    entry.hidden = bool(entry.text())
        self._beside.clear()
        return tuple(repeats)

    def _first_thought(self) -> int:
        places = [at for at, part in enumerate(self._parts) if isinstance(part, (EntryPart, ThoughtPart))]
        return places[0] if places else 0

    # -- content -------------------------------------------------------------------------------------------------

    def _add_content(self, text: str, deltas: list[Delta]) -> None:
        self.content = "text"
        if not text:
            return
        for piece in self._tags.feed(text):
            self._take_piece(piece, deltas)

    def _add_content_list(self, parts: list[Any], deltas: list[Delta]) -> None:
        self.content = "text"
        for part in parts:
            if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
                self._add_content(part["text"], deltas)
            else:
                self._open(Unknown(canonical.encode(part).decode()))

    def _take_piece(self, piece: Piece, deltas: list[Delta]) -> None:
        match piece.kind:
            case "text":
                self._append_text(piece.text, deltas)
            case "open":
                self._open(ThoughtPart("content", opening=piece.text))
            case "reasoning":
                self._append_tagged(piece.text, deltas)
            case "close":
                self._tagged_part().closing = piece.text
                self._current = None
            case "lone_close":
                self._reclassify(piece.text, deltas)

    def _append_text(self, text: str, deltas: list[Delta], field: str = "content") -> None:
        current = self._current
        if not isinstance(current, TextPart) or current.field != field or current.closing is not None:
            current = TextPart(field)
            self._open(current)
        current.parts.append(text)
        deltas.append(TextDelta(text, len(self._parts) - 1, self._response))

    def _tagged_part(self) -> ThoughtPart:
        """The tagged block under way; another field may have spoken since it was opened."""
        for part in reversed(self._parts):
            if isinstance(part, ThoughtPart) and part.opening:
                return part
        raise AssertionError("a tag was closed that was never opened")

    def _append_tagged(self, text: str, deltas: list[Delta]) -> None:
        part = self._tagged_part()
        part.parts.append(text)
        deltas.append(ReasoningDelta(text, self._parts.index(part), self._response))

    def _reclassify(self, tag: str, deltas: list[Delta]) -> None:
        """A closing tag without an opening one: the visible text so far was reasoning.

        Where the host already separates reasoning into a field the tag is a slip of the model, and stays text.
        """
        texts = [part for part in self._parts if isinstance(part, TextPart) and part.field == "content"]
        if self._thought_field or self._entries:
            self._append_text(tag, deltas)
            return
        if not texts:
            texts = [TextPart()]
            self._open(texts[0])
        for part in texts:
            part.closing = ""
            deltas.append(Reclassified("".join(part.parts), self._parts.index(part), self._response))
        texts[-1].closing = tag
        self._current = None

    # -- tool calls ----------------------------------------------------------------------------------------------

    def _add_call(
        self, index: int | None, id: str | None, name: str | None, arguments: str | None, deltas: list[Delta]
    ) -> CallPart:
        part = self._find_call(index, id)
        if part is None:
            part = CallPart(index)
            self._calls.append(part)
            self._open(part)
        part.id = part.id or id or ""
        part.name = part.name or name or ""
        if arguments:
            part.arguments.append(arguments)
        deltas.append(ToolCallDelta(self._parts.index(part), id or "", name or "", arguments or "", self._response))
        self._current = part
        return part

    def _find_call(self, index: int | None, id: str | None) -> CallPart | None:
        """The call a fragment belongs to: by index; a new id under a used index is a new call (seen on gateways)."""
        if index is None:
            known = [part for part in self._calls if id and part.id == id]
            return known[-1] if known else (self._calls[-1] if self._calls and not id else None)
        known = [part for part in self._calls if part.index == index]
        if known and id and known[-1].id and known[-1].id != id:
            return None
        return known[-1] if known else None

    def _add_generic_call(self, call: dict[str, Any], deltas: list[Delta]) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = canonical.encode(arguments).decode()
        index = call.get("index")
        name = function.get("name")
        part = self._add_call(
            index if isinstance(index, int) else None,
            call["id"] if isinstance(call.get("id"), str) else None,
            name if isinstance(name, str) else None,
            arguments,
            deltas,
        )
        part.type = str(call.get("type") or part.type)
        part.extra.update({k: v for k, v in call.items() if k not in ("index", "id", "type", "function")})

    def _open(self, part: Part) -> None:
        self._parts.append(part)
        self._current = part


def _hide_duplicates(blocks: list[Any]) -> list[Any]:
    """Tags in ``content`` beside a reasoning field with the same text (llama.cpp ``deepseek-legacy``)."""
    field = "".join(b.thought for b in blocks if isinstance(b, ThinkingBlock) and b.source_field != "content").strip()

    def repeats(block: Any) -> bool:
        tagged = isinstance(block, ThinkingBlock) and block.source_field == "content"
        return tagged and bool(field) and block.thought.strip() == field

    return [msgspec.structs.replace(block, is_hidden=True) if repeats(block) else block for block in blocks]
