"""From a provider's response, whole or streamed, to the one assistant message it says.

Written for the referee alone, so that what the ledger learns from a recording does not depend on the reader under
test. A response that reports an error says no message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from ..jsons import JsonObject, as_list, as_object, as_text

# Not str.splitlines: a line of a stream may hold U+2028, which is no line end here.
_LINE_END = re.compile(r"\r\n|\n|\r")
_TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal")


def message_of(response: Mapping[str, object] | str | bytes) -> Mapping[str, object] | None:
    """The assistant message of a completion, a bare message, or a body of server-sent events; None for errors."""
    if isinstance(response, bytes):
        response = response.decode("utf-8")
    if isinstance(response, str):
        return _merge(_events(response))
    if "error" in response:
        return None
    choices = as_list(response.get("choices"))
    return as_object(as_object(choices[0]).get("message")) if choices else response if "role" in response else None


def _events(stream: str) -> Iterator[Mapping[str, object]]:
    for line in _LINE_END.split(stream):
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data != "[DONE]":
            yield as_object(json.loads(data))


def _merge(events: Iterable[Mapping[str, object]]) -> JsonObject | None:
    message: JsonObject = {"role": "assistant"}
    calls: dict[object, dict[str, str]] = {}
    for event in events:
        if "error" in event:
            return None
        for choice in as_list(event.get("choices")):
            delta = as_object(as_object(choice).get("delta"))
            _append_text(message, delta)
            for call in as_list(delta.get("tool_calls")):
                _append_call(calls, as_object(call))
    if calls:
        message["tool_calls"] = [_whole_call(call) for call in calls.values()]
    return message


def _append_text(message: JsonObject, delta: Mapping[str, object]) -> None:
    for name in _TEXT_FIELDS:
        piece = delta.get(name)
        if isinstance(piece, str):
            _extend(message, name, piece)
        elif isinstance(piece, list):
            # Content chunks: keep them as chunks, for thinking and text alternate.
            earlier = message.get(name)
            chunks = list(as_list(earlier)) or ([{"type": "text", "text": earlier}] if earlier else [])
            message[name] = [*chunks, *piece]


def _extend(message: JsonObject, name: str, piece: str) -> None:
    earlier = message.get(name)
    if isinstance(earlier, list):
        message[name] = [*earlier, {"type": "text", "text": piece}] if piece else earlier
    else:
        message[name] = as_text(earlier) + piece


def _append_call(calls: dict[object, dict[str, str]], delta: Mapping[str, object]) -> None:
    call = calls.setdefault(delta.get("index", 0), {"id": "", "name": "", "arguments": ""})
    function = as_object(delta.get("function"))
    call["id"] = call["id"] or as_text(delta.get("id"))
    call["name"] += as_text(function.get("name"))
    call["arguments"] += as_text(function.get("arguments"))


def _whole_call(call: Mapping[str, str]) -> JsonObject:
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}
