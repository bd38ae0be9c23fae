"""HTTP headers: which may pass the gateway, and which never do."""

from __future__ import annotations

import re
from collections.abc import Iterable

from thinkback.turn.credentials import CREDENTIALS

HOP_BY_HOP = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Between two hops: what each connection has of its own."""

BODILY = frozenset({"accept-encoding", "content-encoding", "content-md5", "content-digest"})
"""About the bytes of this connection's body, which the gateway has unpacked."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def is_name(text: str) -> bool:
    """Whether ``text`` can be the name of a header."""
    return _NAME.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Whether ``text`` can be the value of a header: no line break, no control character."""
    return _VALUE.fullmatch(text) is not None


def passed_on(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers of a client, in lower case, that what is behind the server may see.

    Credentials and what is between two hops are left out, and what ``Connection`` names with them. One that comes
    several times is joined by commas.
    """
    kept: dict[str, str] = {}
    named: set[str] = set()
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip()
        if name == "connection":
            named.update(word.strip().lower() for word in value.split(","))
        if name in HOP_BY_HOP or name in CREDENTIALS or name in BODILY:
            continue
        kept[name] = f"{kept[name]}, {value}" if name in kept else value
    for name in named & kept.keys():
        del kept[name]
    return kept
