"""Keys that go along as they are: in a header, as a bearer token, or in the query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import SupportsBytes
from urllib.parse import quote

from thinkback.errors import IN_A_PROGRAM, CredentialError
from thinkback.model.rule import Endpoint
from thinkback.turn.credentials import Credentials

# A key of this kind for Bedrock is a signed URL that expires within hours.
_SHORT_LIVED_PREFIX = "bedrock-api-key-"


class Static:
    """The same credentials on every request."""

    waits = False

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def prepare(self) -> None:
        """Nothing is to be found."""

    def __call__(self, url: str, headers: Mapping[str, str], body: SupportsBytes) -> Credentials:
        """What they are."""
        return self._credentials


def fits_header(value: str) -> bool:
    """Whether HTTP can carry ``value`` in a header."""
    return value.isascii() and (value.isprintable() or not value)


def expires(endpoint: Endpoint, key: str) -> bool:
    """Whether ``key`` is a token that will be replaced by another, so that it says nothing about the account."""
    auth = endpoint.auth
    if auth.expires or auth.scheme == "google" or key.startswith(auth.expiring):
        return True
    return auth.scheme == "sigv4" and key.startswith(_SHORT_LIVED_PREFIX)


def key_missing(endpoint: Endpoint) -> CredentialError:
    """The error for an endpoint that cannot do without a key."""
    names = " or ".join(endpoint.auth.env) or "a key"
    return CredentialError(
        f"{endpoint.id} needs a key",
        details={"endpoint": endpoint.id, "variables": list(endpoint.auth.env)},
        next_actions=(
            f"set {names} in the environment",
            f"or keep it on this machine: thinkback keys set {endpoint.id}",
            f"{IN_A_PROGRAM} api_key=",
        ),
    )


def _bearer(endpoint: Endpoint, key: str) -> Credentials:
    return Credentials({endpoint.auth.header: f"Bearer {_checked(endpoint, key)}"}, secrets=frozenset({key}))


def _header(endpoint: Endpoint, key: str) -> Credentials:
    return Credentials({endpoint.auth.header: _checked(endpoint, key)}, secrets=frozenset({key}))


def _query(endpoint: Endpoint, key: str) -> Credentials:
    quoted = quote(key, safe="")
    return Credentials({}, f"{quote(endpoint.auth.query, safe='')}={quoted}", frozenset({key, quoted}))


# Where each scheme puts a key. AWS and Google take tokens in place of what their libraries would make.
CARRIERS: Mapping[str, Callable[[Endpoint, str], Credentials]] = MappingProxyType(
    {"bearer": _bearer, "header": _header, "query": _query, "sigv4": _bearer, "google": _bearer, "azure": _header}
)


def _checked(endpoint: Endpoint, key: str) -> str:
    if not fits_header(key):
        raise CredentialError(
            f"the key for {endpoint.id} contains characters that HTTP cannot carry",
            next_actions=("check that the whole key and nothing else was copied",),
        )
    return key
