"""Ids and encrypted content as each host makes them, derived from a digest so that they can be reproduced."""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable
from types import MappingProxyType

from ..streams import derived

_SHORT = 21


def response_id(style: str, digest: str) -> str:
    """The id of a response."""
    return _RESPONSE_IDS[style](digest)


def item_id(style: str, prefix: str, digest: str, index: int, copy: int = 0) -> str:
    """The id of an output item; ``copy`` tells the events apart where each has its own."""
    return _ITEM_IDS[style](prefix, digest, index, copy)


def call_id(style: str, digest: str, index: int) -> str:
    """What ties a call to its output."""
    seed = derived(digest, "call", index)
    if style == "xai":
        return f"call-{uuid.UUID(derived(digest, 'calls')[:32])}-{index}"
    return f"call_00_{seed[:20]}" if style == "uuid" else f"call_{seed[:24]}"


def ciphertext(cipher: str, digest: str, index: int, copy: int, thought: str) -> str:
    """Encrypted content: as long as its plain text asks for, and another one for every copy."""
    seed = derived(digest, "cipher", index, copy).encode()
    size = 96 + 16 * (len(thought.encode()) // 16)
    data = hashlib.shake_256(seed).digest(size)
    if cipher == "fernet":
        return base64.urlsafe_b64encode(b"\x80\x00\x00\x00\x00" + data).decode()
    return base64.b64encode(data).decode()


def _uuid(digest: str, *parts: object) -> str:
    return str(uuid.UUID(derived(digest, *parts)[:32]))


def _openai_item(prefix: str, digest: str, index: int, copy: int) -> str:
    # The items of a response share the first half of their ids with it.
    return f"{prefix}_{digest[:18]}{derived(digest, prefix, index)[:32]}"


def _xai_item(prefix: str, digest: str, index: int, copy: int) -> str:
    number = f"_{index}" if prefix == "fc" else ""
    return f"{prefix}_{_uuid(digest, 'response')}{number}"


def _rotating_item(prefix: str, digest: str, index: int, copy: int) -> str:
    return base64.b64encode(hashlib.shake_256(derived(digest, prefix, index, copy).encode()).digest(96)).decode()


_ITEM_IDS: MappingProxyType[str, Callable[[str, str, int, int], str]] = MappingProxyType(
    {
        "openai": _openai_item,
        "xai": _xai_item,
        "rotating": _rotating_item,
        "temporary": lambda prefix, digest, index, copy: f"{prefix}_tmp_{derived(digest, prefix, index)[:11]}",
        "uuid": lambda prefix, digest, index, copy: _uuid(digest, prefix, index),
        "short": lambda prefix, digest, index, copy: f"{prefix}_{derived(digest, prefix, index)[:_SHORT]}",
    }
)
_RESPONSE_IDS: MappingProxyType[str, Callable[[str], str]] = MappingProxyType(
    {
        "openai": lambda digest: f"resp_{digest[:50]}",
        "xai": lambda digest: _uuid(digest, "response"),
        "rotating": lambda digest: f"resp_{digest[:50]}",
        "temporary": lambda digest: f"gen-1767225600-{digest[:20]}",
        "uuid": lambda digest: _uuid(digest, "response"),
        "short": lambda digest: f"resp_{digest[:48]}",
    }
)
