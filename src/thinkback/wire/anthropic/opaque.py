"""Where opaque values stand in messages and their events, and where a stream of those ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from thinkback.wire.framing import last_event
from thinkback.wire.splicing import spliced

# A key with a text that is not empty; most events have none.
MARKED = re.compile(rb'"(?:signature|data|encrypted_content)"\s*:\s*"[^"]')
CLOSING = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_OPAQUE = frozenset({b"signature", b"data", b"encrypted_content"})
# What holds them: the content of a message, whole or in its first event, a block that begins, or what is added to one.
_HOLDERS = frozenset({(b"content", b""), (b"message", b"content", b""), (b"content_block",), (b"delta",)})
_ENDS = (
    re.compile(rb'"type"\s*:\s*"message_stop"'),
    re.compile(rb"event:(?<![^\r\n]event:) ?message_stop"),
)


def rewrite(payload: bytes, change: Callable[[str], str]) -> bytes:
    """An event or a message with ``change(value)`` for each opaque value in it, all else as it came."""
    if MARKED.search(payload) is None:
        return payload
    return spliced(payload, _is_opaque, change)


def ends(piece: bytes) -> int:
    """Where the event ``message_stop`` begins in a piece of a stream, -1 where it does not."""
    return last_event(piece, *_ENDS) if b"message_stop" in piece else -1


def _is_opaque(path: Sequence[bytes]) -> bool:
    return 1 < len(path) < 5 and path[-1] in _OPAQUE and tuple(path[:-1]) in _HOLDERS
