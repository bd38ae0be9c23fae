"""Who may read the measures: whoever is on this machine, and from elsewhere who has the key for it."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from typing import Any

from thinkback.proxy.problems import Refused

FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-real-ip")
"""Headers that a proxy sets: behind one, every client seems to be on this machine."""


def check_scraper(client: Any, headers: Mapping[str, str], key: str) -> None:
    """Raises ``Refused`` for who is neither near nor has ``key`` (``""``: there is none). ``client`` is ASGI's."""
    scheme, _, shown = headers.get("authorization", "").partition(" ")
    if key and scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), key.encode()):
        return
    if _is_near(client) and not any(name in headers for name in FORWARDED):
        return
    raise Refused(403, "forbidden", "metrics are served to loopback addresses, or with the key of server.metrics_key")


def _is_near(client: Any) -> bool:
    try:
        return bool(client) and ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False
