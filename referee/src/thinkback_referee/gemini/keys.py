"""How AI Studio's keys travel: in a header of their own, or in the query."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit


def studio_key(path: str, headers: Mapping[str, str]) -> str:
    """The key of a request; empty when there is none."""
    query = parse_qs(urlsplit(path).query).get("key", [""])
    return headers.get("x-goog-api-key", "") or query[0]
