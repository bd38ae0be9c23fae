"""Single JSON values as this package wants them, whatever a host has put in their place."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical


def plain(value: object) -> str:
    """A string as it is; nothing for any other value."""
    return value if isinstance(value, str) else ""


def words(value: object) -> str:
    """A string as it is, any other value as JSON."""
    return value if isinstance(value, str) else canonical.source(value)


def members_of(value: object) -> dict[str, Any]:
    """An object as it is; one without members for any other value."""
    return value if isinstance(value, dict) else {}


def source_of(fields: dict[str, Any]) -> str:
    """An object as JSON; nothing where it has no members."""
    return canonical.source(fields) if fields else ""


def count(value: object) -> int | None:
    """A whole number, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
