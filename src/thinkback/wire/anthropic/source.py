"""JSON source text in pieces: the members of an object as they were written, and objects made of such members."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from thinkback.model import canonical

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def members(source: str) -> dict[str, str]:
    """The source text of each member of the object ``source``."""
    try:
        return {key: _text(value) for key, value in _members(canonical.raw(source)).items()}
    except _UNREADABLE:
        return {key: canonical.source(value) for key, value in canonical.decode(source).items()}


def items(source: str) -> list[str]:
    """The source text of each item of the list ``source``."""
    try:
        return [_text(item) for item in _items(canonical.raw(source))]
    except _UNREADABLE:
        return [canonical.source(item) for item in canonical.decode(source)]


def joined(fields: Mapping[str, str]) -> str:
    """The object that has these members."""
    return "{" + ",".join(f"{string(key)}:{value}" for key, value in fields.items()) + "}"


def string(text: str) -> str:
    """The source text of a string."""
    return canonical.string(text).decode()


def _text(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()
