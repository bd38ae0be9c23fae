"""Texts of a JSON document replaced where they stand, with every other byte as it came.

Promises: a key counts by its place, not by its name alone; any bytes are taken, and those that are no JSON at least
do not raise. Time and memory are linear in the document, however deep it is. Must not: know what a text means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from thinkback.model import canonical

# Strings as they are written, those that are keys with their colon; what gives JSON its levels; a string without end.
_TOKENS = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?|[{}\[\]"]', re.DOTALL)
_OPENS, _QUOTE = b"{[", 0x22


def spliced(document: bytes, is_meant: Callable[[Sequence[bytes]], bool], change: Callable[[str], str]) -> bytes:
    """``document`` with ``change(text)`` for each text that is not empty and whose path ``is_meant``.

    A path has the key at each level as its bytes stand on the wire, and nothing (``b""``) for an item of a list.
    """
    path: list[bytes] = []
    pieces: list[bytes] = []
    done = 0
    for token in _TOKENS.finditer(document):
        source, colon = token.groups()
        if colon:
            path[-1:] = (source[1:-1],)
        elif source:
            if is_meant(path):
                pieces += (document[done : token.start()], _changed(source, change))
                done = token.end()
        elif (mark := document[token.start()]) in _OPENS:
            path.append(b"")
        elif mark == _QUOTE:
            break
        elif path:
            path.pop()
    return b"".join((*pieces, document[done:])) if pieces else document


def _changed(source: bytes, change: Callable[[str], str]) -> bytes:
    """The source text of what ``change`` makes of a string; the same bytes where that is the same or it is none."""
    try:
        text = canonical.decode(source, str)
    except msgspec.DecodeError:
        return source
    changed = change(text) if text else text
    return source if changed == text else canonical.string(changed)
