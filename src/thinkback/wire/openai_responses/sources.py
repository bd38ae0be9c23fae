"""Members of JSON values as source text, so that nested values go on as they came and are never re-encoded."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from thinkback.model import canonical

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])
_NOT_STRICT = (msgspec.DecodeError, UnicodeError)


def members(source: bytes | str) -> dict[str, str]:
    """The members of a JSON object; one that only the tolerant decoder reads is encoded again."""
    try:
        return {key: bytes(value).decode() for key, value in _members.decode(source).items()}
    except _NOT_STRICT:
        return {key: canonical.source(value) for key, value in canonical.decode(source).items()}


def elements(source: bytes | str) -> list[str]:
    """The elements of a JSON array, likewise."""
    try:
        return [bytes(value).decode() for value in _elements.decode(source)]
    except _NOT_STRICT:
        return [canonical.source(value) for value in canonical.decode(source)]


def joined(parts: Mapping[str, str]) -> bytes:
    """A JSON object of these members."""
    pieces = [b"%b:%b" % (canonical.string(key), canonical.raw(value)) for key, value in parts.items()]
    return b"{%b}" % b",".join(pieces)
