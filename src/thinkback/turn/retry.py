"""When to send again, and after how long."""

from __future__ import annotations

import re
from collections.abc import Mapping

RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
OF_CREDENTIALS = frozenset({401, 402, 403, 407})
"""The answers to who is asking, and not to what is asked."""
_KEY_REFUSED = re.compile(r"API_KEY_INVALID|API key not valid|API key expired")
_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0
# A server that asks for more than this is better reported than waited for.
_LONGEST_RETRY_AFTER = 120.0


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status in RETRYABLE


def refuses_key(status: int, message: str) -> bool:
    """True if a provider does not take the credentials that it was shown; some say so with 400."""
    return status in OF_CREDENTIALS or (status == 400 and says_key_refused(message))


def says_key_refused(message: str) -> bool:
    """True if the words of an error are about the key that was shown, whatever its status."""
    return _KEY_REFUSED.search(message) is not None


def backoff(attempt: int, headers: Mapping[str, str], now: int, jitter: float) -> float | None:
    """Seconds before attempt ``attempt`` (1 is the first retry): the server's word, else doubling with jitter.

    ``None`` where the server asks for longer than is worth waiting. ``now`` is microseconds since 1970 UTC.
    """
    asked = asked_for(headers, now)
    if asked is not None:
        return asked if asked <= _LONGEST_RETRY_AFTER else None
    return float(min(_FIRST_SECONDS * 2 ** (attempt - 1), _LONGEST_SECONDS) * (0.5 + jitter / 2))


def asked_for(headers: Mapping[str, str], now: int) -> float | None:
    """The seconds that ``retry-after-ms`` or ``retry-after`` (seconds or a date, RFC 9110 10.2.3) ask for."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    # A date is rare, and reading one costs a large import.
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now / 1_000_000)
    except ValueError:
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value >= 0 else None
