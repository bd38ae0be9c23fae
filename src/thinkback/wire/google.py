"""What the dialects of one provider, Google, share: how its errors and counts stand in JSON."""

from __future__ import annotations

from typing import Any

from thinkback.model.commits import Failure
from thinkback.wire.values import count, words


def read_failure(status: int, body: Any) -> Failure:
    """The provider's own words from a parsed error body; those of a stream that is an array come in a list."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Failure(words(error), status)
    code, own = error.get("code"), count(error.get("code"))
    return Failure(
        message=words(error.get("message") or error),
        status=own if own is not None and status < 400 else status,
        type=words(error.get("status") or error.get("type") or ""),
        code=words("" if code is None else code),
    )
