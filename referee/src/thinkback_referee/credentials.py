"""Keys: any will do but the bad one, and none of them is kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

BAD_KEY = "bad-key"
_SECRET_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-amz-security-token",
        "cookie",
    }
)
_SECRET_QUERY = re.compile(r"(?<=[?&])key=[^&]*")


def bearer(headers: Mapping[str, str]) -> str:
    """The token of an ``Authorization: Bearer`` header; empty when there is none."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def accepted(key: str) -> bool:
    """Whether a key opens the door."""
    return key not in ("", BAD_KEY)


def account_of(key: str) -> str:
    """A name for the owner of a key, from which the key cannot be read."""
    return hashlib.sha256(f"account:{key}".encode()).hexdigest()[:16]


def without_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers but those that carry keys."""
    return {name: value for name, value in headers.items() if name not in _SECRET_HEADERS}


def clean_path(path: str) -> str:
    """The path with the value of a ``key`` in its query blotted out."""
    return _SECRET_QUERY.sub("key=…", path)
