"""Ids of calls that came from elsewhere, for providers that take only some."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable


def fitting(alphabet: str, prefix: str) -> Callable[[str], str]:
    """What makes an id fit: up to 64 characters of ``alphabet`` (as in a regular expression) stay as they are.

    Any other id becomes ``prefix`` and a part of its hash: the same for the same id, always.
    """
    fits = re.compile(rf"[{alphabet}]{{1,64}}").fullmatch

    def call_id(id: str) -> str:
        return id if fits(id) else prefix + digest(id).hex()[:32]

    return call_id


def digest(id: str) -> bytes:
    """A hash of any id."""
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()
