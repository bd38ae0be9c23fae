"""Fresh ids, and whom a warning should point at."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parent.parent)


def new_id() -> str:
    """A fresh random id."""
    return secrets.token_hex(12)


def outside() -> int:
    """The ``stacklevel`` that makes a warning of the caller point at the first code outside this package and the
    event loop."""
    asyncio = sys.modules.get("asyncio")
    inside = (_PACKAGE, str(Path(asyncio.__file__ or "").parent)) if asyncio is not None else (_PACKAGE,)
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        level, frame = level + 1, frame.f_back
    return level
