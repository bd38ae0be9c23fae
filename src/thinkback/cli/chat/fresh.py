"""Names for new sessions."""

from __future__ import annotations

import secrets
import time


def name() -> str:
    """One that no session has yet, and that says when it began."""
    return time.strftime("chat-%Y%m%d-%H%M%S-", time.localtime()) + secrets.token_hex(2)
