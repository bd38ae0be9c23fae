"""From where a request may come: the names that the gateway answers to, and the web pages that may ask it.

Promises: a page on the web that a person has open can neither read from a gateway on this machine nor make it ask a
provider (DNS rebinding, cross-site requests), unless its origin is configured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from thinkback.proxy.headers import is_name
from thinkback.proxy.problems import Refused
from thinkback.rules.urls import is_loopback
from thinkback.servers.gateway.config.checking import LOOPBACK_NAMES
from thinkback.servers.gateway.config.schema import Server
from thinkback.servers.gateway.http.answers import Answer

EXPOSED = (
    "idempotent-replayed, retry-after, thinkback-degraded, thinkback-failed-over, thinkback-left-out, "
    "thinkback-reattach, thinkback-response, thinkback-session, thinkback-system, thinkback-upstream, x-request-id"
)


class Origins:
    """What ``server`` says of hosts and origins."""

    def __init__(self, server: Server) -> None:
        names = {host.lower() for host in server.allowed_hosts}
        if is_loopback(server.host):
            host = server.host.lower()
            names.update(LOOPBACK_NAMES, {f"[{host}]" if ":" in host else host})
        self._any = not names or "*" in names
        self._names = names
        self._origins = frozenset(origin.lower().rstrip("/") for origin in server.cors_origins)

    def check(self, raw: Iterable[tuple[bytes, bytes]], headers: Mapping[str, str], method: str) -> None:
        """Raises ``Refused`` for a host that this is not, and for a request from a page that may not ask."""
        if sum(name == b"host" for name, _ in raw) > 1:
            raise Refused(400, "bad_host", "there are two Host headers")
        host = headers.get("host", "").lower()
        if not self._any and not self._is_ours(host):
            raise Refused(403, "unknown_host", "this Host is not allowed; allowed_hosts lists the allowed ones")
        origin = headers.get("origin", "")
        if method not in ("GET", "HEAD") and origin and not self.allows(origin) and not _same(origin, host):
            raise Refused(403, "foreign_origin", "this origin is not allowed; cors_origins lists the allowed ones")

    def allows(self, origin: str) -> bool:
        """Whether pages of ``origin`` are configured."""
        return origin.lower() in self._origins

    def headers(self, origin: str) -> list[tuple[bytes, bytes]]:
        """What a response says to a browser: nothing, unless the origin is configured."""
        if not self._origins:
            return []
        vary = (b"vary", b"origin")
        if not self.allows(origin):
            return [vary]
        return [
            vary,
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", EXPOSED.encode()),
        ]

    def preflight(self, headers: Mapping[str, str], methods: Iterable[str]) -> Answer:
        """The answer to OPTIONS on a path that has ``methods``. A preflight of another origin did not get here."""
        allowed = ", ".join((*methods, "OPTIONS"))
        if "access-control-request-method" not in headers or "origin" not in headers:
            return Answer(204, {"allow": allowed}, b"")
        names = [name.strip() for name in headers.get("access-control-request-headers", "").split(",")]
        return Answer(
            204,
            {
                "access-control-allow-methods": allowed,
                "access-control-allow-headers": ", ".join(filter(is_name, names)),
                "access-control-max-age": "600",
            },
            b"",
        )

    def _is_ours(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        return host in self._names or (bool(colon) and port.isdecimal() and name in self._names)


def _same(origin: str, host: str) -> bool:
    """Whether a page of ``origin`` was served by this very host."""
    return origin.partition("://")[2].lower() == host
