"""Base URLs: one spelling for each, and the patterns that recognise a host."""

from __future__ import annotations

import fnmatch
import functools
import ipaddress
import re
from urllib.parse import urlsplit

from thinkback.errors import SettingError

_DEFAULT_PORTS = {"http": 80, "https": 443}


def normalise_url(url: str) -> str:
    """``url`` in its one spelling: scheme and host in lower case, no default port, no trailing slash, no fragment.

    Raises ``SettingError`` for anything but an http or https URL, and for one that holds a user name or password:
    base URLs are written to the log, keys are not.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        # the parser's own words may repeat a password
        raise _refused("it is not a URL") from None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise _refused("it must begin with http:// or https:// and name a host", url=url.rpartition("@")[2])
    if "@" in parts.netloc:
        raise _refused("it must not hold a user name or password", "give the key as the endpoint's key")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    suffix = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{host}{suffix}{parts.path.rstrip('/')}{query}"


def server_of(url: str) -> str:
    """Who gets what is sent to ``url``: scheme, host and port in one spelling; empty for what is no base URL.

    Two names of one machine are two servers: what they lead to is not for us to say.
    """
    try:
        parts = urlsplit(normalise_url(url))
    except SettingError:
        return ""
    return f"{parts.scheme}://{parts.hostname}:{parts.port or _DEFAULT_PORTS[parts.scheme]}"


def host_of(url: str) -> str:
    """The host that ``url`` names, without its port; empty for what is no URL."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether who listens at ``host`` is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def split_address(url: str) -> tuple[str, str]:
    """``host[:port]`` and path of a normalised ``url``."""
    address = url.partition("://")[2].partition("?")[0]
    host, slash, path = address.partition("/")
    return host, slash + path


def host_matches(pattern: str, host: str, path: str) -> bool:
    """Whether ``pattern`` (``host[:port][/path]`` with globs) covers ``host`` and the beginning of ``path``."""
    name, _, rest = pattern.partition("/")
    if not fnmatch.fnmatchcase(host, name.lower()):
        return False
    return not rest or fnmatch.fnmatchcase(f"{path}/", f"/{rest}/*")


def literal_pattern(url: str) -> str:
    """The pattern that covers a normalised ``url`` and nothing beside it."""
    return re.sub(r"([*?[])", r"[\1]", "".join(split_address(url)))


@functools.cache
def literal_length(pattern: str) -> int:
    """How many characters of a glob stand for themselves: the measure of how closely it names a thing."""
    return len(re.sub(r"\[[^]]*\]|[*?]", "", pattern))


def _refused(reason: str, *actions: str, **details: str) -> SettingError:
    return SettingError(f"base URL: {reason}", details=details, next_actions=actions)
