"""Token counts that a client did not ask for: the gateway does, and takes their chunk out of the stream again."""

from __future__ import annotations

import re

# A chunk with counts and no choice: it is there for them alone.
_NO_CHOICE = re.compile(rb'"choices"\s*:\s*\[\s*\]')


def without_counts(events: bytes) -> bytes:
    """Whole events of a stream without those that only count tokens."""
    if b'"usage"' not in events or _NO_CHOICE.search(events) is None:
        return events
    end = b"\r\n\r\n" if b"\r\n\r\n" in events else b"\n\n"
    kept = [event for event in events.split(end) if not (b'"usage"' in event and _NO_CHOICE.search(event))]
    return end.join(kept)
