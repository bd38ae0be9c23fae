"""Times as people say them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias

from thinkback.errors import SettingError

Time: TypeAlias = datetime | date | str | int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SPANS = {"h": 3_600, "d": 86_400, "w": 604_800}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def microseconds(time: Time | None) -> int | None:
    """Microseconds UTC of a ``datetime`` or ``date``, ISO 8601 text (UTC where neither names a zone), or as given.

    Raises ``SettingError`` for text that is not a time.
    """
    if time is None or isinstance(time, int):
        return time
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        raise SettingError(
            f"{time!r} is not a time",
            details={"time": time},
            next_actions=("say it as 2026-07-01 or 2026-07-01T12:30:00Z",),
        ) from None
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    # Exact, where a float of seconds is not.
    return (zoned - _EPOCH) // _MICROSECOND


def moment(time: Time | None, now: int) -> int | None:
    """The same, or a time before ``now``: ``12h``, ``30d``, ``2w``."""
    found = re.fullmatch(r"([0-9]{1,6})([hdw])", time) if isinstance(time, str) else None
    return now - int(found[1]) * _SPANS[found[2]] * 1_000_000 if found is not None else microseconds(time)


def ago(time: int, now: int) -> str:
    """How long before ``now`` (both microseconds UTC) something was, in its largest unit: ``5 min``, ``3 d``."""
    seconds = max(now - time, 0) // 1_000_000
    return next((f"{seconds // size} {unit}" for size, unit in _UNITS if seconds >= size), "now")
