"""Whether a provider refuses what was added to a program's request: its words name a field or a value of ours. Pure.

Must not: take a word of everyday speech for the name of a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Any, TypeAlias

import msgspec

_Headers: TypeAlias = list[tuple[bytes, bytes]]
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


def added_names(given: bytes, sent: bytes, given_headers: _Headers, sent_headers: _Headers) -> Set[str]:
    """The members of ``sent``, a body, that ``given`` nowhere has; and the values of headers that were not given."""
    mine = set(_words(sent_headers)) - set(_words(given_headers)) if sent_headers != given_headers else set()
    if sent == given:
        return mine
    try:
        return mine | set(_names(msgspec.json.decode(sent))) - set(_names(msgspec.json.decode(given)))
    except _UNREADABLE:
        return mine


def named_in(names: Set[str], refusal: bytes) -> str:
    """The first of ``names`` that the document ``refusal`` names; empty where it names none."""
    try:
        texts = list(_texts(msgspec.json.decode(refusal)))
    except _UNREADABLE:
        texts = [refusal.decode("utf-8", "replace")]
    return next((name for name in sorted(names) if any(_is_named(name, text) for text in texts)), "")


def _is_named(name: str, text: str) -> bool:
    """A name that may be a word must be all of the text, or stand in quotation marks."""
    if text == name:
        return True
    escaped = re.escape(name)
    is_word = name.isalpha() and name.islower()
    pattern = f"[\"'`]{escaped}[\"'`]" if is_word else rf"(?<!\w){escaped}(?!\w)"
    return re.search(pattern, text) is not None


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)


def _words(headers: _Headers) -> Iterator[str]:
    """Their values, one by one; that of the length is none."""
    for name, value in headers:
        if name.lower() != b"content-length":
            yield from (word.strip() for word in value.decode("latin-1").split(",") if word.strip())
