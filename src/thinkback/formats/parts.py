"""Pieces that histories of several programs share: times, counts, messages, results, blocks; read leniently.

Promises: a value of another type than expected is read as one that is not there, and never raises.
"""

from __future__ import annotations

import codecs
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from thinkback.formats.history import Notes, Source, aside
from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Message, Usage
from thinkback.wire.values import count, members_of, plain

_decoder = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,\[\]]*")
_MARGIN = 16
"""Characters before the end of what is read of a text in which a fault may be that it goes on."""
_DEEPEST = 64
"""Levels of a value that is read."""
_LONGEST = 256 * 1024 * 1024
"""Characters of an object in a document."""
_MEMBERS = re.compile(rb'"(\w+)" *: *("[^"\\]*")?')
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LINES = 200
_LAST = 253_402_300_800
_IN_MILLISECONDS, _IN_MICROSECONDS = 10**11, 10**14


def records(lines: Iterable[bytes], notes: Notes, *, once: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines with their numbers, from 1 on; what is none is noted. A line that comes in several
    pieces is too long. ``once``: a line with a time that stands there again, byte for byte, is left out.
    """
    seen: set[int] = set()
    for number, line in _whole(lines, notes):
        value = value_of(line)
        if value is None and isinstance(value := nearly(line), dict):
            notes.add("a line that is not quite JSON", number)
        if not isinstance(value, dict):
            notes.add("a damaged line", number)
        elif once and hash(line) in seen and "timestamp" in value:
            notes.add("a line that is there twice", number)
        else:
            seen.update((hash(line),) if once else ())
            yield number, value


def _whole(lines: Iterable[bytes], notes: Notes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty and came in one piece, with their numbers."""
    number, line = 1, b""
    is_long = False
    for piece in lines:
        if line:  # it goes on
            is_long = True
        line = piece
        if piece.endswith(b"\n"):
            if is_long:
                notes.add("a line that is too long", number)
            elif line.strip():
                yield number, line
            number, line, is_long = number + 1, b"", False
    if is_long:
        notes.add("a line that is too long", number)
    elif line.strip():
        yield number, line


def value_of(data: bytes | str) -> Any:
    """The value of JSON; ``None`` where it is none, or is nested more deeply than anything that a program means."""
    try:
        value = canonical.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return None
    opened = data.count("[") + data.count("{") if isinstance(data, str) else data.count(b"[") + data.count(b"{")
    return value if opened <= _DEEPEST or not _is_deep(value) else None


def nearly(data: bytes | str) -> Any:
    """The value of what would be JSON without bytes that are no UTF-8, which become a mark, and numbers that are none
    (``NaN``), which become ``None``; ``None`` for anything else.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_float=_finite, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return None if _is_deep(value) else value


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def objects(source: Source, notes: Notes, *, once: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines with their numbers, or those of a document, counted."""
    rest = iter(source.lines)
    first = next((line for line in rest if line.strip()), b"")
    every = itertools.chain((first,), rest)
    is_whole = source.name.endswith(".json") and not isinstance(value_of(first), dict)
    if is_whole or first.lstrip().startswith(b"[") or first.strip() == b"{":
        return enumerate(documents(every, notes), 1)
    return records(every, notes, once=once)


def documents(pieces: Iterable[bytes], notes: Notes) -> Iterator[dict[str, Any]]:
    """The objects of JSON documents, those in a list one by one; of one that is damaged those that are whole.

    Holds no more than an object and a piece.
    """
    text = _Pieces(pieces)
    while text.go_on():
        value = text.value()
        if isinstance(value, dict):
            yield value
        else:
            notes.add("a damaged document" if value is None else "an item that is no object")


class _Pieces:
    """A text that comes in pieces, and the place in it where the next value begins."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._pieces = map(decode, pieces)
        self._text, self._at = "", 0

    def go_on(self) -> bool:
        """Whether there is a further value."""
        while True:
            self._at = _BETWEEN.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return True
            if not self._more():
                return False

    def value(self) -> Any:
        """The next value; ``None`` for one that is damaged, of which nothing is read up to the next line."""
        while True:
            try:
                _, end = _decoder.raw_decode(self._text, self._at)
            except RecursionError:
                break
            except json.JSONDecodeError as error:
                is_whole = error.pos < len(self._text) - _MARGIN and not error.msg.startswith("Unterminated string")
                if is_whole or not self._more():
                    break
            else:
                data, self._at = self._text[self._at : end], end
                value = value_of(data)
                return nearly(data) if value is None else value
        self._pass_by()
        return None

    def _more(self) -> bool:
        """Twice as much from here on; ``False`` where nothing follows, or this is too much already."""
        found = [self._text[self._at :]]
        size = wanted = len(found[0])
        while size <= wanted < _LONGEST and (piece := next(self._pieces, "")):
            found.append(piece)
            size += len(piece)
        self._text, self._at = "".join(found), 0
        return size > wanted

    def _pass_by(self) -> None:
        while (end := self._text.find("\n", self._at)) < 0:
            self._text, self._at = next(self._pieces, ""), 0
            if not self._text:
                return
        self._at = end


def object_of(value: object) -> dict[str, Any]:
    """An object, also one that a column holds as JSON; an empty one for any other value."""
    return members_of(value_of(value) if isinstance(value, str) else value)


def first_records(head: bytes) -> list[dict[str, Any]]:
    """The objects of JSON lines that begin with ``head``; of a first line that is longer its members alone, as far as
    they can be seen.
    """
    lines = head.split(b"\n", _LINES)
    found = [value for line in lines[:_LINES] if isinstance(value := value_of(line), dict)]
    if not found and head.lstrip().startswith(b"{"):
        found = [{name.decode("utf-8", "replace"): plain(value_of(text)) for name, text in _MEMBERS.findall(lines[0])}]
    return found


def id_in(name: str) -> str:
    """The id that a file is called by, where it is a UUID."""
    found = _UUID.findall(name.replace("\\", "/").rpartition("/")[2])
    return str(found[-1]) if found else ""


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
    """A whole number from 0 that a log can hold, if it is one."""
    found = count(value)
    return found if found is not None and 0 <= found < 2**53 else None


def claimed_count(value: object) -> Any:
    """A number as it was claimed, of which ``Usage`` names what cannot be a count; ``None`` for what is no number."""
    return value if type(value) in (int, float) else number(value)


def counts(raw: object, counted: Any = (), **names: str) -> Usage | None:
    """Token counts of an object whose members are called ``names``; ``None`` when there are none."""
    given = members_of(raw)
    found: dict[str, Any] = {field: given.get(name) for field, name in names.items()}
    if not any(isinstance(value, int | float) for value in found.values()):
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
    spoken = [Draft("user", message_of(parts))] if parts else []
    return (*spoken, *others)


def message_of(parts: Sequence[Text | Media]) -> Message:
    """What a person says in ``parts``: a text alone is no part."""
    is_text = len(parts) == 1 and isinstance(parts[0], Text)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return Message(text, () if is_text else tuple(parts))


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
