"""A request's address and head as bytes. Pure; no error repeats an address or a header: either may hold a key."""

from __future__ import annotations

import functools
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from thinkback.errors import NetworkError

_PORTS = {"http": 80, "https": 443}
_OURS = frozenset({"connection", "content-length", "transfer-encoding"})


class Address(NamedTuple):
    """Where connections go. ``authority`` is what a Host header says; ``basic`` the credentials of the address."""

    scheme: str
    host: str
    port: int
    authority: str
    basic: str = ""

    def __repr__(self) -> str:
        return f"<Address {self.scheme}://{self.authority}>"


@functools.lru_cache(512)
def parse(url: str) -> tuple[Address, str]:
    """The address of ``url``, and its path with query, as they are written. Raises ``NetworkError``, for good."""
    try:
        if not url.isascii() or not url.isprintable() or " " in url:
            raise ValueError
        parts = urlsplit(url)
        default, host = _PORTS[parts.scheme], parts.hostname
        if not host:
            raise ValueError
        port = parts.port or default
    except (ValueError, KeyError):
        raise _malformed() from None
    named = f"[{host}]" if ":" in host else host
    authority = named if port == default else f"{named}:{port}"
    target = url[len(parts.scheme) + 3 + len(parts.netloc) :].partition("#")[0]
    basic = _basic(parts.username, parts.password)
    return Address(parts.scheme, host, port, authority, basic), target if target[:1] == "/" else f"/{target}"


def _basic(user: str | None, password: str | None) -> str:
    """The value of a header for the user and password of an address; empty where there are none."""
    if user is None and password is None:
        return ""
    return "Basic " + b64encode(f"{unquote(user or '')}:{unquote(password or '')}".encode()).decode()


def head(address: Address, target: str, headers: Mapping[str, str], length: int | None, way: Address | None) -> bytes:
    """The head of a POST with ``length`` bytes, or of a GET, to ``address`` or to a proxy on the ``way`` to it.

    Raises ``NetworkError``, for good, for a header that HTTP cannot carry.
    """
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    names = {name.lower() for name in headers}
    if names & _OURS:
        lines = [f"{name}: {value}\r\n" for name, value in headers.items() if name.lower() not in _OURS]
    if "host" not in names:
        lines.insert(0, f"host: {address.authority}\r\n")
    if address.basic and "authorization" not in names:
        lines.append(f"authorization: {address.basic}\r\n")
    if way is not None and address.scheme == "http":
        target = f"http://{address.authority}{target}"
        if way.basic:
            lines.append(f"proxy-authorization: {way.basic}\r\n")
    text = "".join(lines)
    if not text.isascii() or text.count("\n") != len(lines) or text.count("\r") != len(lines) or "\0" in text:
        raise _malformed()
    if length is None:
        return f"GET {target} HTTP/1.1\r\n{text}\r\n".encode("ascii")
    return f"POST {target} HTTP/1.1\r\n{text}content-length: {length}\r\n\r\n".encode("ascii")


def _malformed() -> NetworkError:
    return NetworkError(
        "the request cannot be sent: its URL or a header is malformed",
        details={"phase": "network", "permanent": True},
    )
