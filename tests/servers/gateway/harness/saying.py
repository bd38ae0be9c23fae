"""What request bodies say apart from reasoning, in one form: so that two of them can be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.servers.gateway.harness.carried import MESSAGES, Json, is_peoples, messages_of

_IDS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id"})
_SNAKE = re.compile(r"_([a-z])")
# What a client may leave out of the things that it got: it means nothing to a model.
_DECORATION = frozenset({"status", "phase", "annotations", "logprobs", "citations", "caller", "index", "refusal"})


def parameters(dialect: str, body: Json) -> Json:
    """All but the messages, as the client may have written it in other ways."""
    key = MESSAGES.get(dialect, "messages")
    told = {name: _plain(value) for name, value in body.items() if name != key and value is not None}
    if isinstance(told.get("system"), str):
        told["system"] = [{"type": "text", "text": told["system"]}]
    if isinstance(told.get("systemInstruction"), dict):
        told["systemInstruction"].pop("role", None)
    return told


def holds(sent: object, said: object) -> bool:
    """Whether all of ``said`` stands in ``sent``; an object may have more members there."""
    if isinstance(said, Mapping) and isinstance(sent, Mapping):
        return all(key in sent and holds(sent[key], value) for key, value in said.items())
    return said == sent


def peoples(dialect: str, body: Json) -> list[Any]:
    """The messages, items and results that are not a model's; ids of calls are numbers."""
    ids = _Ids()
    return [ids.numbered(_message(each)) for each in messages_of(dialect, body) if is_peoples(each)]


def models(dialect: str, body: Json) -> list[Any]:
    """What the model said: texts without white space, calls, other items by their kind; ``|`` is somebody's turn."""
    ids = _Ids()
    told: list[Any] = []
    for message in messages_of(dialect, body):
        if is_peoples(message):
            told += ["|"] if told[-1:] != ["|"] else []
            continue
        for piece in _pieces(message):
            if isinstance(piece, str) and told and isinstance(told[-1], str) and told[-1] != "|":
                told[-1] += piece
            elif piece:
                told.append(ids.numbered(piece))
    return told


class _Ids:
    """Ids by the order in which they come."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def numbered(self, node: Any) -> Any:
        if isinstance(node, list | tuple):
            return [self.numbered(each) for each in node]
        if isinstance(node, dict):
            return {
                key: self._known.setdefault(value, len(self._known))
                if key in _IDS and isinstance(value, str)
                else self.numbered(value)
                for key, value in node.items()
            }
        return node


def _pieces(message: Json) -> Iterator[Any]:
    content = message.get("content", message.get("parts"))
    parts: list[Json] = [{"text": content}] if isinstance(content, str) else content or []
    for part in parts:
        call = part.get("functionCall", part.get("function_call"))
        if isinstance(part.get("text"), str):
            yield "".join(part["text"].split())
        elif part.get("type") == "tool_use":
            yield {"id": part["id"], "call": part["name"], "given": part["input"]}
        elif call is not None:
            yield {"call": call["name"], "given": call.get("args") or {}}
        else:
            yield {"part": part.get("type") or sorted(map(_camel, part))[0]}
    for call in message.get("tool_calls") or ():
        yield {"id": call["id"], "call": call["function"]["name"], "given": _given(call["function"]["arguments"])}
    if message.get("type") == "function_call":
        yield {"id": message["call_id"], "call": message["name"], "given": _given(message["arguments"])}
    elif "role" not in message:
        yield {"item": message.get("type")}


def _given(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def _message(message: Json) -> Any:
    plain = _plain(message)
    parts = plain.pop("parts", None)
    if parts is not None:  # Gemini needs no ids
        for part in parts:
            part.get("functionResponse", {}).pop("id", None)
        plain["content"] = parts
    if isinstance(plain.get("content"), str):
        plain["content"] = [{"text": plain["content"]}]
    for part in plain.get("content") or ():
        if part.get("type") in ("text", "input_text"):
            del part["type"]
    if plain.get("type") == "message":
        del plain["type"]
    return plain


def _plain(node: Any) -> Any:
    """Without nulls and what only decorates; members of Gemini's in its own case."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if isinstance(node, dict):
        return {
            _camel(key): _plain(value) for key, value in node.items() if value is not None and key not in _DECORATION
        }
    return node


def _camel(key: str) -> str:
    gemini = ("function_response", "function_call", "inline_data", "mime_type", "file_data", "file_uri")
    return _SNAKE.sub(lambda found: found[1].upper(), key) if key in gemini else key
