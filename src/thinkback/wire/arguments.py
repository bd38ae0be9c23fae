"""The arguments of a call where a dialect wants a JSON object and not text that may be one."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical


def is_cut(arguments: str) -> bool:
    """True for arguments that begin like a JSON object and are none: they broke off; no tool is to run with them."""
    if not arguments.lstrip().startswith("{"):
        return False
    try:
        canonical.decode(arguments, dict[str, Any])
    except msgspec.DecodeError:
        return True
    return False


def as_object(arguments: str) -> bytes:
    """``arguments`` as they came where they are a JSON object, blank ones as an empty one, other text inside one."""
    try:
        canonical.decode(arguments, dict[str, Any])
    except msgspec.DecodeError:
        return b'{"arguments":%b}' % canonical.string(arguments) if arguments.strip() else b"{}"
    return canonical.raw(arguments)
