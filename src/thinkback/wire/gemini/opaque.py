"""Where opaque values stand in ``GenerateContentResponse``, and where a stream of them ends.

Clients keep signatures as bytes and write them in base64 of either alphabet, so what takes a signature's place is
base64, too: ``armoured`` makes it so, ``bare`` undoes it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence

from thinkback.wire.splicing import spliced

MARKED = re.compile(rb'"thought(?:Signature|_signature)"\s*:\s*"[^"]')
_NAMES = ([b"thoughtSignature"], [b"thought_signature"])
_LAST = re.compile(rb'"finish(?:Reason|_reason)"\s*:\s*"')
_BEGINS = re.compile(rb"data:(?<![^\r\n]data:)")
_STANDARD = bytes.maketrans(b"-_", b"+/")


def rewrite(payload: bytes, change: Callable[[str], str]) -> bytes:
    """A response, or a list of them, with ``change(value)``, armoured, for each signature of a part."""
    if MARKED.search(payload) is None:
        return payload
    return spliced(payload, _is_opaque, lambda value: _changed(value, change))


def ends(piece: bytes) -> int:
    """Where the response with a ``finishReason`` begins in a piece of a stream, -1 where there is none.

    One that began in an earlier piece ends in this one from its start.
    """
    last = _LAST.search(piece)
    if last is None:
        return -1
    begins = [found.start() for found in _BEGINS.finditer(piece, 0, last.start())]
    return begins[-1] if begins else 0


def armoured(value: str) -> str:
    """``value`` as the base64 that a signature is."""
    return base64.b64encode(value.encode()).decode()


def bare(signature: str) -> str:
    """What was armoured; a signature of another make, as text or not, is as it came."""
    padded = signature.encode("utf-8", "surrogatepass").translate(_STANDARD)
    try:
        return binascii.a2b_base64(padded + b"=" * (-len(padded) % 4), strict_mode=True).decode()
    except ValueError:
        return signature


def _changed(value: str, change: Callable[[str], str]) -> str:
    changed = change(value)
    return value if changed == value else armoured(changed)


def _is_opaque(path: Sequence[bytes]) -> bool:
    at = len(path) - 6
    if path[-1:] not in _NAMES or at not in (0, 1):
        return False
    return path[at] == b"candidates" and path[at + 3] == b"parts" and path[:at] in ([], [b""])
