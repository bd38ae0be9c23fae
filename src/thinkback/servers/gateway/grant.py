"""Who asks and what they may: the virtual key of a request, as every part of the gateway sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from thinkback.errors import SettingError
from thinkback.proxy.retention import Recording

PREFIX = "tb-"
"""How every key of a gateway begins."""
KEY_HEADER = "thinkback-key"
"""Where a key stands beside a credential of the client's own."""
_TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_TAKEN = ("gateway", "secret")


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens that a key may use per ``period``; ``None`` is no limit. ``reasoning`` counts reasoning tokens alone."""

    period: Literal["day", "month", "total"] = "total"
    tokens: int | None = None
    reasoning: int | None = None


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Requests per minute and at once; ``None``: those of the configuration."""

    per_minute: int | None = None
    at_once: int | None = None


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """A virtual key without its secret. ``models`` are glob patterns of the names that a client may ask for.

    ``upstream`` is the only one that it leads to, empty where it leads to all, and ``account`` whose credential it is
    there, as that provider names it.

    ``settings`` are ``reasoning.*`` and other settings of requests with this key. ``expires`` is in microseconds UTC.
    ``view``: its holder may sign in to the viewer of the gateway, and sees the conversations of ``tenant`` there.
    """

    key: str
    tenant: str = "default"
    name: str = ""
    models: tuple[str, ...] = ("*",)
    recording: Recording = "full"
    settings: Mapping[str, object] = {}
    budget: Budget = Budget()
    limits: Limits = Limits()
    expires: int | None = None
    upstream: str = ""
    account: str = ""
    view: bool = False


OPEN = Grant("open", name="no key is asked for")
"""Who asks on a gateway that asks for no key (loopback alone)."""


def check_tenant(name: str) -> None:
    """Raise ``SettingError`` unless ``name`` can be a tenant's everywhere: on SQLite it names a file."""
    if _TENANT.fullmatch(name) is None or name in _TAKEN:
        raise SettingError(
            f"{name[:80]!r} cannot be the name of a tenant",
            details={"tenant": name[:80]},
            next_actions=(
                "a tenant is named with small letters, digits, - and _, at most 63 of them",
                *([f"{name} is the name of a file of the gateway's own"] if name in _TAKEN else []),
            ),
        )
