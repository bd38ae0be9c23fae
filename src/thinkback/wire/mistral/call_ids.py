"""Call ids as Mistral takes them: nine letters and digits."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from thinkback.wire.call_ids import digest

_FITS = re.compile(r"[a-zA-Z0-9]{9}").fullmatch
_ALPHABET = string.digits + string.ascii_letters


def call_id(id: str) -> str:
    """``id`` where it fits, else one made of its hash: the same for the same id, always."""
    if _FITS(id):
        return id
    number = int.from_bytes(digest(id)[:12], "big")
    digits = []
    for _ in range(9):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def call_ids(ids: Sequence[str]) -> list[str]:
    """Fitting ids for the calls of one response, or for their results in the order of the calls.

    Calls that share an id (hosts that give none) are told apart by their place.
    """
    seen: dict[str, int] = {}
    fitting = []
    for id in ids:
        before = seen[id] = seen.get(id, -1) + 1
        fitting.append(call_id(f"{id} {before}" if before else id))
    return fitting
