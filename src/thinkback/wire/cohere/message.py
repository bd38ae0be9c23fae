"""A Cohere message under construction: whole, or in events told apart by their index."""

from __future__ import annotations

from typing import Any, Literal

from thinkback.model import canonical
from thinkback.model.blocks import Block
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from thinkback.wire.block_accumulator import Part
from thinkback.wire.cohere import events
from thinkback.wire.cohere.blocks import CallPart, OtherPart, TextPart
from thinkback.wire.values import plain

_ITEMS = frozenset({"text", "thinking"})
_READ = frozenset({"role", "content", "tool_plan", "tool_calls", "citations"})


class MessageBuilder:
    """Give it deltas or a whole message, ``take`` what to show, then ask for ``blocks``.

    Content items and calls have indexes of their own. ``content`` says whether the content was a plain string.
    """

    def __init__(self, response: str = "") -> None:
        self._response = response
        self.parts: list[Part] = []
        self._deltas: list[Delta] = []
        self._items: dict[int, TextPart | OtherPart] = {}
        self._calls: dict[int, CallPart] = {}
        self._plan: TextPart | None = None
        self._citations: list[Any] = []
        self._rest: dict[str, Any] = {}
        self.content: Literal["absent", "null", "text"] = "absent"

    def add(self, index: int, message: events.Message) -> None:
        """One streamed delta with known keys."""
        content = message.content
        if content is not None:
            if content.thinking is not None:
                self._add_text(index, "thinking", content.thinking)
            if content.text is not None:
                self._add_text(index, "text", content.text)
        if message.tool_calls is not None:
            self._grow_call(index, message.tool_calls.function.arguments)
        if message.tool_plan is not None:
            self._add_plan(message.tool_plan)

    def add_object(self, index: int, message: dict[str, Any], begins: bool = False) -> None:
        """One streamed delta with anything in it; ``begins`` says that it opens what it is about."""
        content, call, citation = message.get("content"), message.get("tool_calls"), message.get("citations")
        if isinstance(content, dict):
            self._add_item(index, content, begins)
        if isinstance(call, dict):
            self._add_call(index, call, begins)
        if isinstance(citation, dict):
            self._citations.append(citation)
        whole = {key: value for key, value in message.items() if key not in _READ or not isinstance(value, dict)}
        self.add_message(whole)

    def add_message(self, message: dict[str, Any]) -> None:
        """A whole message."""
        content, calls, plan = message.get("content"), message.get("tool_calls"), message.get("tool_plan")
        citations = message.get("citations")
        if isinstance(content, str):
            self.content = "text"
            self._show(self._open_text("text"), content)
        for item in content if isinstance(content, list) else ():
            self._add_whole_item(item)
        if isinstance(plan, str) and plan:
            self._add_plan(plan)
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._open_call(call)
        if isinstance(citations, list):
            self._citations += citations
        self._rest.update({key: value for key, value in message.items() if key not in _READ})

    def take(self) -> list[Delta]:
        """What there is to show since the last time."""
        deltas, self._deltas = self._deltas, []
        return deltas

    def blocks(self) -> tuple[Block, ...]:
        """The blocks as far as they have come, in order of arrival."""
        return tuple(part.block() for part in self.parts)

    @property
    def extra(self) -> dict[str, Any]:
        """Message fields that no block owns; citations point into the content by index and character."""
        return {**self._rest, **({"citations": self._citations} if self._citations else {})}

    def _open(self, part: Part) -> None:
        part.at = len(self.parts)
        self.parts.append(part)

    def _open_text(self, field: str) -> TextPart:
        part = TextPart(field)
        self._open(part)
        return part

    def _show(self, part: TextPart, text: str) -> None:
        if not text:
            return
        part.pieces.append(text)
        delta = TextDelta if part.field == "text" else ReasoningDelta
        self._deltas.append(delta(text, part.at, self._response))

    def _add_text(self, index: int, field: str, text: str) -> None:
        part = self._items.get(index)
        if isinstance(part, OtherPart):
            part.pieces.append({field: text})
            return
        if part is None or part.field != field:
            part = self._items[index] = self._open_text(field)
        self._show(part, text)

    def _add_plan(self, text: str) -> None:
        if self._plan is None:
            self._plan = self._open_text("tool_plan")
        self._show(self._plan, text)

    def _add_item(self, index: int, item: dict[str, Any], begins: bool) -> None:
        if begins:
            self._items.pop(index, None)
        part = self._items.get(index)
        texts = None if isinstance(part, OtherPart) else _texts(item)
        for field, text in (texts or {}).items():
            self._add_text(index, field, text)
        if isinstance(part, OtherPart):
            part.pieces.append(item)
        elif texts is None:
            other = self._items[index] = OtherPart(item)
            self._open(other)

    def _add_whole_item(self, item: Any) -> None:
        field = item.get("type") if isinstance(item, dict) else None
        text = item.get(field) if isinstance(field, str) and field in _ITEMS else None
        if not isinstance(field, str) or not isinstance(text, str):
            self._open(OtherPart(item))
            return
        part = self._open_text(field)
        if len(item) > 2:
            part.wire = canonical.source(item)
        self._show(part, text)

    def _add_call(self, index: int, call: dict[str, Any], begins: bool) -> None:
        function = call.get("function")
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if begins or index not in self._calls:
            self._calls[index] = self._open_call(call)
        elif isinstance(arguments, str):
            self._grow_call(index, arguments)

    def _open_call(self, call: dict[str, Any]) -> CallPart:
        function = call.get("function")
        known = function if isinstance(function, dict) else {}
        id, name, arguments = plain(call.get("id")), plain(known.get("name")), known.get("arguments")
        usual = call.keys() <= {"id", "type", "function"} and call.get("type", "function") == "function"
        usual = usual and known.keys() <= {"name", "arguments"} and known.keys() != set()
        part = CallPart(id, name, None if usual else call)
        self._open(part)
        self._deltas.append(ToolCallDelta(part.at, id, name, response=self._response))
        if arguments is not None:
            self._grow(part, arguments if isinstance(arguments, str) else canonical.source(arguments))
        return part

    def _grow_call(self, index: int, arguments: str) -> None:
        part = self._calls.get(index)
        if part is None:
            part = self._calls[index] = self._open_call({"function": {"arguments": ""}})
        self._grow(part, arguments)

    def _grow(self, part: CallPart, arguments: str) -> None:
        if arguments:
            part.pieces.append(arguments)
            self._deltas.append(ToolCallDelta(part.at, arguments=arguments, response=self._response))


def _texts(item: dict[str, Any]) -> dict[str, str] | None:
    """The pieces of text in a piece of a content item; ``None`` if it is one of another type."""
    kind = item.get("type")
    said = {key: value for key, value in item.items() if value is not None and key != "type"}
    if not said and kind is not None:
        return {kind: ""} if isinstance(kind, str) and kind in _ITEMS else None
    return said if all(key in _ITEMS and isinstance(value, str) for key, value in said.items()) else None
