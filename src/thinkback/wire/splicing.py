"""Texts of a JSON document replaced where they stand, with every other byte as it came.

Promises: a key counts by its place, not by its name alone; any bytes are taken, and those that are no JSON at least
do not raise. Time and memory are linear in the document, however deep it is. Must not: know what a text means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from thinkback.model import canonical

# Strings as they are written, and all that gives JSON its structure.
_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]', re.DOTALL)


def spliced(document: bytes, is_meant: Callable[[Sequence[bytes]], bool], change: Callable[[str], str]) -> bytes:
    """``document`` with ``change(text)`` for each text that is not empty and whose path ``is_meant``.

    A path has the key at each level as its bytes stand on the wire, and nothing (``b""``) for an item of a list.
    """
    path: list[bytes] = []
    is_object: list[bool] = []
    awaits_key = False
    pieces: list[bytes] = []
    done = 0
    for token in _TOKENS.finditer(document):
        at = token.start()
        mark = document[at : at + 1]
        if mark == b'"':
            if awaits_key:
                path[-1] = document[at + 1 : token.end() - 1]
            elif is_meant(path):
                pieces += (document[done:at], _changed(token[0], change))
                done = token.end()
        elif mark in b"{[":
            path.append(b"")
            is_object.append(mark == b"{")
            awaits_key = mark == b"{"
        elif mark in b"}]":
            awaits_key = False
            if path:
                path.pop()
                is_object.pop()
        else:
            awaits_key = mark == b"," and bool(is_object) and is_object[-1]
    return b"".join((*pieces, document[done:])) if pieces else document


def _changed(source: bytes, change: Callable[[str], str]) -> bytes:
    """The source text of what ``change`` makes of a string; the same bytes where that is the same or it is none."""
    try:
        text = canonical.decode(source, str)
    except msgspec.DecodeError:
        return source
    changed = change(text) if text else text
    return source if changed == text else canonical.string(changed)
