"""Pieces that histories of several programs share: times, counts, messages, results, blocks; read leniently.

Promises: a value of another type than expected is read as one that is not there, and never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from thinkback.formats.history import Notes, aside
from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Message, Usage
from thinkback.wire.values import count, members_of, plain

_decoder = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,]*")
_LAST = 253_402_300_800
_IN_MILLISECONDS, _IN_MICROSECONDS = 10**11, 10**14


def records(lines: Any, notes: Notes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines with their numbers, from 1 on; what is none is noted."""
    for number, line in enumerate(lines, 1):
        if line is None:
            notes.add("a line that is too long", number)
        elif line.strip():
            value = value_of(line)
            if isinstance(value, dict):
                yield number, value
            else:
                notes.add("a damaged line", number)


def value_of(data: bytes | str) -> Any:
    """The value of JSON; ``None`` where it is none."""
    try:
        return canonical.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return None


def documents(lines: Iterable[bytes | None], notes: Notes) -> Iterator[dict[str, Any]]:
    """The objects of a JSON document, a list or several of them; of one that breaks off those that are whole."""
    held = [line for line in lines if line is not None]
    data = b"".join(held)
    whole = value_of(data)
    values = [whole] if whole is not None else [value_of(line) for line in held]
    if not any(isinstance(value, dict | list) for value in values):
        values = [_salvaged(data.decode("utf-8", "replace"))]
        notes.add("a damaged document")
    for value in values:
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield each
            else:
                notes.add("an item that is no object")


def _salvaged(text: str) -> list[Any]:
    """The first items of a list that breaks off."""
    found: list[Any] = []
    at = text.find("[") + 1
    while at:
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found
        found.append(value)
        at = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]
    return found


def object_of(value: object) -> dict[str, Any]:
    """An object, also one that a column holds as JSON; an empty one for any other value."""
    return members_of(value_of(value) if isinstance(value, str) else value)


def first_records(head: bytes) -> list[dict[str, Any]]:
    """The first objects of JSON lines that begin with ``head``."""
    return [value for line in head.split(b"\n")[:20] if isinstance(value := value_of(line), dict)]


def microseconds(value: object) -> int:
    """A time as programs write it: ISO 8601, or a number of seconds, milliseconds or microseconds; 0 for none."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return 0
        return max(round(seconds * 1_000_000), 0)
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
        return 0
    scale = 1 if value >= _IN_MICROSECONDS else 1_000 if value >= _IN_MILLISECONDS else 1_000_000
    return round(value * scale) if value * scale < _LAST * 1_000_000 else 0


def items_of(value: object) -> list[Any]:
    """A list as it is; an empty one for any other value."""
    return value if isinstance(value, list) else []


def number(value: object) -> int | None:
    """A number of tokens that a log can hold, if it is one."""
    found = count(value)
    return found if found is not None and 0 <= found < 2**53 else None


def counts(raw: object, counted: Any = (), **names: str) -> Usage | None:
    """Token counts of an object whose members are called ``names``; ``None`` when there are none."""
    given = members_of(raw)
    found: dict[str, Any] = {field: number(given.get(name)) for field, name in names.items()}
    if all(value is None for value in found.values()):
        return None
    return Usage(**found, counted=counted, wire=canonical.source(given))


def text_of(content: object) -> str:
    """The text of a content: its own, or that of its parts."""
    if isinstance(content, str):
        return content
    texts = (text_of(part.get("text")) if isinstance(part, dict) else plain(part) for part in items_of(content))
    return "\n".join(text for text in texts if text)


def content_drafts(content: object, program: str) -> tuple[Draft, ...]:
    """A message of the user: what is text or media in it; anything else goes beside it, word for word."""
    if isinstance(content, str):
        return (Draft("user", Message(content)),)
    parts: list[Text | Media] = []
    others: list[Draft] = []
    for part in items_of(content):
        block = part_of(part)
        if block is not None:
            parts.append(block)
        else:
            others.append(aside(f"{program} part", "", part))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    plainly = len(parts) == 1 and isinstance(parts[0], Text)
    spoken = [Draft("user", Message(text, () if plainly else tuple(parts)))] if parts else []
    return (*spoken, *others)


def part_of(part: object) -> Text | Media | None:
    """A text, an image or a file, whatever dialect wrote it; ``None`` for anything else."""
    if isinstance(part, str):
        return Text(part)
    fields = members_of(part)
    if isinstance(fields.get("text"), str):
        return Text(fields["text"])
    source = members_of(fields.get("source") or fields.get("inlineData") or fields.get("inline_data")) or fields
    data = plain(source.get("data"))
    media_type = plain(source.get("media_type")) or plain(source.get("mimeType")) or plain(source.get("mime_type"))
    if data and media_type:
        return Media(media_type, data)
    image = fields.get("image_url")
    url = plain(members_of(image).get("url")) or plain(image)
    if url.startswith("data:") and ";base64," in url:
        kind, _, inside = url.removeprefix("data:").partition(";base64,")
        return Media(kind or "image/*", inside)
    return Media("image/*", url=url) if url else None


def result(id: object, content: object, name: object = "", *, is_error: bool = False) -> Draft:
    """What a tool gave back: text as it is, parts of texts joined, anything else as JSON."""
    parts = items_of(content)
    texts = [text_of(members_of(part).get("text")) for part in parts if isinstance(members_of(part).get("text"), str)]
    if isinstance(content, str):
        words = content
    elif content is None:
        words = ""
    else:
        words = "".join(texts) if len(texts) == len(parts) > 0 else canonical.source(content)
    return Draft("tool_result", ToolResult(plain(id), words, plain(name), is_error))


def thought(text: object, field: str, signature: object = "") -> ThinkingBlock:
    """Reasoning with its signature; without a text it is one whose text was withheld."""
    words = plain(text)
    return ThinkingBlock(words, source_field=field, signature=plain(signature), kind="raw" if words else "none")


def call(id: object, name: object, arguments: object) -> ToolCall:
    """A call; arguments that are no text are written as JSON."""
    words = arguments if isinstance(arguments, str) else canonical.source({} if arguments is None else arguments)
    return ToolCall(plain(id), plain(name), words)
