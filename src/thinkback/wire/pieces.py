"""Values of items that this version does not know, which came in pieces: put together as they would have come whole."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from itertools import chain
from typing import Any


def joined(pieces: Sequence[Any], base64: frozenset[str] = frozenset(), name: str = "") -> Any:
    """The value that came in ``pieces``: texts and lists end to end, objects key by key, else the last piece.

    ``base64`` names the keys whose texts are binary data; ``name`` is the key that the pieces stood under.
    """
    if len(pieces) == 1:
        return pieces[0]
    if all(isinstance(piece, str) for piece in pieces):
        return joined_base64(pieces) if name in base64 else "".join(pieces)
    if all(isinstance(piece, list) for piece in pieces):
        return list(chain.from_iterable(pieces))
    if not all(isinstance(piece, dict) for piece in pieces):
        return pieces[-1]
    found: dict[str, list[Any]] = {}
    for piece in pieces:
        for key, value in piece.items():
            found.setdefault(key, []).append(value)
    return {key: joined(values, base64, key) for key, values in found.items()}


def joined_base64(pieces: Sequence[str]) -> str:
    """Binary data in base64 that came in ``pieces``, each encoded for itself.

    A single piece stays as it came, to the byte, and so do all of them if one cannot be decoded.
    """
    whole = "".join(pieces)
    if all(len(piece) % 4 == 0 and not piece.endswith("=") for piece in pieces[:-1]):
        return whole
    try:
        data = b"".join(binascii.a2b_base64(piece, strict_mode=True) for piece in pieces)
    except ValueError:
        return whole
    return binascii.b2a_base64(data, newline=False).decode()
