"""JSON source text in pieces: the members of a value as they were written, and objects made of such members.

Nested values go on as they came and are never re-encoded, unless only the tolerant decoder can read them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from thinkback.model import canonical

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def members(source: bytes | str) -> dict[str, str]:
    """The source text of each member of the object ``source``."""
    try:
        return {key: bytes(value).decode() for key, value in _members(_bytes(source)).items()}
    except _UNREADABLE:
        return {key: canonical.source(value) for key, value in canonical.decode_lenient(source).items()}


def items(source: bytes | str) -> list[str]:
    """The source text of each item of the list ``source``."""
    try:
        return [bytes(item).decode() for item in _items(_bytes(source))]
    except _UNREADABLE:
        return [canonical.source(item) for item in canonical.decode_lenient(source)]


def joined(fields: Mapping[str, str]) -> str:
    """The object that has these members."""
    return "{" + ",".join(f"{string(key)}:{value}" for key, value in fields.items()) + "}"


def string(text: str) -> str:
    """The source text of a string."""
    return canonical.string(text).decode()


def _bytes(source: bytes | str) -> bytes:
    return canonical.raw(source) if isinstance(source, str) else source
