"""Tool calls under construction: streamed in fragments, in parallel, with and without index or id."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import CUSTOM_CALL, Carrier, ToolCall
from thinkback.model.deltas import ToolCallDelta
from thinkback.wire.block_accumulator import Arrival, join
from thinkback.wire.openai_chat.merge import Merged


class CallPart:
    """A tool call under construction. Its block has ``wire`` only where the object holds more than the usual keys."""

    __slots__ = ("arguments", "at", "extra", "field", "function", "id", "name", "type")

    def __init__(self) -> None:
        self.at = -1
        self.id = ""
        self.name = ""
        self.type = "function"
        self.arguments: list[str] = []
        self.function = Merged()
        self.extra = Merged()
        self.field = "tool_calls"

    def block(self) -> ToolCall:
        name, arguments, wire, field = self.name, join(self.arguments), "", self.field
        function, extra = self.function.value(), self.extra.value()
        custom = extra.get("custom")
        if self.type != "function" and isinstance(custom, dict):
            name, arguments = str(custom.get("name", "")), str(custom.get("input", ""))
            wire = canonical.source({"id": self.id, "type": self.type, **extra})
            field = CUSTOM_CALL if self.type == "custom" else field
        elif extra or function or self.type != "function":
            function = {"name": name, "arguments": arguments, **function}
            wire = canonical.source({"id": self.id, "type": self.type, "function": function, **extra})
        return ToolCall(self.id, name, arguments, source_field=field, carriers=_signature(extra), wire=wire)


def _signature(extra: dict[str, Any]) -> tuple[Carrier, ...]:
    """Gemini's signature on a call; it goes back inside the call's own object."""
    content = extra.get("extra_content")
    google = content.get("google") if isinstance(content, dict) else None
    value = google.get("thought_signature") if isinstance(google, dict) else None
    return (Carrier("thought_signature", value),) if isinstance(value, str) and value else ()


class Calls:
    """The calls of one message."""

    __slots__ = ("_arrival", "_by_id", "_by_index", "_last")

    def __init__(self, arrival: Arrival) -> None:
        self._arrival = arrival
        self._by_index: dict[int, CallPart] = {}
        self._by_id: dict[str, CallPart] = {}
        self._last: CallPart | None = None

    def add(
        self,
        index: int | None,
        id: str | None,
        name: str | None,
        arguments: str | None,
        complete: bool = False,
    ) -> CallPart:
        """Take a fragment of a call, or a ``complete`` one."""
        part = None if complete else self._find(index, id, name, arguments)
        if part is None:
            part = CallPart()
            self._arrival.open(part)
        self._last = self._arrival.current = part
        if index is not None:
            self._by_index[index] = part
        self._grow(part, id or "", name or "", arguments or "")
        return part

    def add_object(self, call: dict[str, Any], complete: bool = False) -> None:
        """The same for a call, or a fragment, with anything in it."""
        known = call.get("function")
        function = dict(known) if isinstance(known, dict) else {}
        index, id = call.get("index"), call.get("id")
        name, arguments = function.pop("name", None), function.pop("arguments", None)
        if arguments is not None and not isinstance(arguments, str):
            arguments = canonical.source(arguments)
        part = self.add(
            index if isinstance(index, int) else None,
            id if isinstance(id, str) else None,
            name if isinstance(name, str) else None,
            arguments,
            complete,
        )
        part.type = str(call.get("type") or part.type)
        part.function.add(function)
        rest = {key: value for key, value in call.items() if key not in ("index", "id", "type")}
        if isinstance(known, dict):
            del rest["function"]
        part.extra.add(rest)

    def add_found(self, id: str, name: str, arguments: str, field: str) -> None:
        """A call found whole inside other text, once however often it stands there."""
        if id not in self._by_id:
            self.add(None, id, name, arguments, complete=True).field = field

    def _grow(self, part: CallPart, id: str, name: str, arguments: str) -> None:
        id = "" if part.id else id
        if id:
            part.id = id
            self._by_id[id] = part
        if name == part.name:
            name = ""
        part.name += name
        if arguments:
            part.arguments.append(arguments)
        elif not id and not name:
            return
        arrival = self._arrival
        arrival.deltas.append(ToolCallDelta(part.at, id, name, arguments, arrival.response))

    def _find(self, index: int | None, id: str | None, name: str | None, arguments: str | None) -> CallPart | None:
        """The call a fragment belongs to; gateways are known to use one index for several calls, or none at all.

        A new id is a new call; so is another name, unless no argument came yet (then the name comes in pieces), and
        so is the same name with arguments once those that came are whole.
        """
        by_id = self._by_id.get(id) if id else self._last
        part = by_id if index is None else self._by_index.get(index)
        if part is None or (id and part.id and id != part.id):
            return None
        if not name or not part.name:
            return part
        if name != part.name:
            return None if part.arguments or index is None else part
        return None if arguments and not id and _is_whole(part.arguments) else part


def _is_whole(arguments: list[str]) -> bool:
    """Whether the fragments are one JSON object."""
    text = "".join(arguments)
    if not text.rstrip().endswith("}"):
        return False
    try:
        canonical.decode(text, dict[str, Any])
    except msgspec.DecodeError:
        return False
    return True
