"""Where opaque values stand in responses and their events, and where a stream of those ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from thinkback.wire.framing import last_event
from thinkback.wire.splicing import spliced

# A key with a text that is not empty; most events have none.
MARKED = re.compile(rb'"(?:encrypted_content|signature)"\s*:\s*"[^"]')
_OPAQUE = frozenset({b"encrypted_content", b"signature"})
# What holds them: an item that begins or is done, or the output of a response, by itself or in its last event.
_HOLDERS = frozenset({(b"item",), (b"output", b""), (b"response", b"output", b"")})
_LAST = (b"response.completed", b"response.incomplete", b"response.failed")
_ANY = b"|".join(map(re.escape, _LAST))
_ENDS = (
    re.compile(rb'"type"\s*:\s*"(?:%b)' % _ANY),
    re.compile(rb"event:(?<![^\r\n]event:) ?(?:%b)" % _ANY),
)


def rewrite(payload: bytes, change: Callable[[str], str]) -> bytes:
    """An event or a response with ``change(value)`` for each opaque value in it, all else as it came."""
    if MARKED.search(payload) is None:
        return payload
    return spliced(payload, _is_opaque, change)


def ends(piece: bytes) -> int:
    """Where the event that closes a response begins in a piece of a stream, -1 where it does not."""
    return last_event(piece, *_ENDS) if any(name in piece for name in _LAST) else -1


def _is_opaque(path: Sequence[bytes]) -> bool:
    return 1 < len(path) < 5 and path[-1] in _OPAQUE and tuple(path[:-1]) in _HOLDERS
