"""Where opaque values stand in chat completions, and where a stream of their chunks ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from thinkback.wire.splicing import spliced

# A key with a text that is not empty; most chunks have none.
MARKED = re.compile(rb'"(?:signature|data|thought_signature|reasoning_opaque)"\s*:\s*"[^"]')
CLOSING = b"data: [DONE]\n\n"
_DEEPEST = 9
_ANYWHERE = frozenset({b"thought_signature", b"reasoning_opaque"})
_HOLDERS = {
    b"reasoning_details": frozenset({b"signature", b"data"}),
    b"thinking_blocks": frozenset({b"signature", b"data"}),
    b"content": frozenset({b"signature"}),
}
_DONE = re.compile(rb"data:(?<![^\r\n]data:) ?\[DONE\](?=[\r\n]|\Z)")


def rewrite(payload: bytes, change: Callable[[str], str]) -> bytes:
    """A chunk or a completion with ``change(value)`` for each opaque value of the message, all else as it came."""
    if MARKED.search(payload) is None:
        return payload
    return spliced(payload, _is_opaque, change)


def ends(piece: bytes) -> int:
    """Where ``data: [DONE]`` begins in a piece of a stream, -1 where it does not."""
    if b"[DONE]" not in piece:
        return -1
    found = _DONE.search(piece)
    return -1 if found is None else found.start()


def _is_opaque(path: Sequence[bytes]) -> bool:
    if not 4 <= len(path) <= _DEEPEST or path[0] != b"choices" or path[2] not in (b"message", b"delta"):
        return False
    if path[-1] in _ANYWHERE:
        return b"arguments" not in path
    return path[-1] in _HOLDERS.get(path[3], ())
