"""What all renderers share: pieces of text, server-sent events, a clock that stands still."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator

from .jsons import JsonObject, as_object, compact
from .script import Call, Step

# A fixed clock: the same request and seed give the same bytes.
CREATED = 1_767_225_600
_PIECE = re.compile(r"\s*\S+|\s+\Z")


def pieces(text: str) -> list[str]:
    """The text cut before the white space between words; joined again it is the same text."""
    return _PIECE.findall(text)


def slices(text: str, size: int = 8) -> list[str]:
    """The text in pieces of ``size`` characters, as arguments are streamed."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def sse(value: object, event: str = "") -> bytes:
    """One server-sent event with JSON data, named where the format names its events."""
    named = f"event: {event}\n" if event else ""
    return f"{named}data: {compact(value)}\n\n".encode()


def arguments_text(call: Call) -> str:
    """The arguments of a call as the string that goes on the wire."""
    return call.arguments if isinstance(call.arguments, str) else compact(call.arguments)


def arguments_object(call: Call) -> JsonObject:
    """The arguments of a call as an object; none at all are empty."""
    given = call.arguments
    return dict(as_object(json.loads(given or "{}"))) if isinstance(given, str) else dict(given)


def function_calls(calls: Iterable[tuple[str, str, str]]) -> list[JsonObject]:
    """Calls (id, name, arguments) as chat completions write them whole."""
    return [
        {"index": index, "id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (identifier, name, arguments) in enumerate(calls)
    ]


def call_deltas(calls: Iterable[tuple[str, str, str]], **beside: object) -> Iterator[JsonObject]:
    """The same calls as chat completions stream them, with what each delta has ``beside``."""
    for index, (identifier, name, arguments) in enumerate(calls):
        head = {"index": index, "id": identifier, "type": "function", "function": {"name": name, "arguments": ""}}
        yield {**beside, "tool_calls": [head]}
        for piece in slices(arguments):
            yield {**beside, "tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def count_words(*texts: str) -> int:
    """How many words there are in all texts: what the referee counts as tokens."""
    return sum(len(text.split()) for text in texts)


def words_said(step: Step) -> int:
    """How many words a step says beside its reasoning, its calls included."""
    return count_words(step.text, step.refusal, *(f"{call.name} {call.arguments}" for call in step.tool_calls))


def derived(digest: str, *parts: object) -> str:
    """64 hexadecimal digits that follow from a digest and what tells this value from its siblings."""
    return hashlib.sha256(":".join((digest, *map(str, parts))).encode()).hexdigest()
