"""What the dialects of one provider, Google, share: how its errors and counts stand in JSON."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.model.commits import Failure


def read_failure(status: int, body: Any) -> Failure:
    """The provider's own words from a parsed error body; those of a stream that is an array come in a list."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Failure(_text(error), status)
    code, own = error.get("code"), count(error.get("code"))
    return Failure(
        message=_text(error.get("message") or error),
        status=own if own is not None and status < 400 else status,
        type=_text(error.get("status") or error.get("type") or ""),
        code=_text("" if code is None else code),
    )


def count(value: object) -> int | None:
    """A number of tokens, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else canonical.source(value)
