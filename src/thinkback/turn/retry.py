"""When to send again, and after how long."""

from __future__ import annotations

RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0
# A server that asks for more than this is better reported than waited for.
_LONGEST_RETRY_AFTER = 120.0


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status in RETRYABLE


def backoff(attempt: int, retry_after: str, jitter: float) -> float:
    """Seconds before attempt ``attempt`` (1 is the first retry): the server's word, else doubling with jitter."""
    try:
        asked = float(retry_after)
    except ValueError:
        asked = -1.0
    if 0 <= asked <= _LONGEST_RETRY_AFTER:
        return asked
    return float(min(_FIRST_SECONDS * 2 ** (attempt - 1), _LONGEST_SECONDS) * (0.5 + jitter / 2))
