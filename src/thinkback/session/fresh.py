"""Fresh ids, and whom a warning should point at."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parent.parent)


def new_id() -> str:
    """A fresh random id. The system is asked for many at once: a program that makes several a request waits less."""
    try:
        return _ids.pop()
    except IndexError:
        drawn = os.urandom(_BYTES * _AT_ONCE).hex()
        made = [drawn[at : at + 2 * _BYTES] for at in range(0, len(drawn), 2 * _BYTES)]
        _ids.extend(made[1:])
        return made[0]


_BYTES, _AT_ONCE = 12, 64
_ids: list[str] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.clear)


def outside() -> int:
    """The ``stacklevel`` that makes a warning of the caller point at the first code outside this package and the
    event loop."""
    asyncio = sys.modules.get("asyncio")
    inside = (_PACKAGE, str(Path(asyncio.__file__ or "").parent)) if asyncio is not None else (_PACKAGE,)
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        level, frame = level + 1, frame.f_back
    return level
