"""What all renderers share: pieces of text, server-sent events, a clock that stands still."""

from __future__ import annotations

import hashlib
import re

from .jsons import compact

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


def derived(digest: str, *parts: object) -> str:
    """64 hexadecimal digits that follow from a digest and what tells this value from its siblings."""
    return hashlib.sha256(":".join((digest, *map(str, parts))).encode()).hexdigest()
