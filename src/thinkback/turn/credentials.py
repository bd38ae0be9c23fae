"""What a request carries to show who sends it, and who makes that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, SupportsBytes

SHOWN = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
"""The headers in which clients of an API show a key, in lower case."""

CREDENTIALS = frozenset(
    {
        *SHOWN,
        "cookie",
        "ocp-apim-subscription-key",
        "proxy-authorization",
        "set-cookie",
        "thinkback-key",
        "x-amz-security-token",
        "x-auth-token",
    }
)
"""All headers that hold a credential: what a client shows to a gateway, or who sends a request to an upstream."""


class Credentials(NamedTuple):
    """Headers and a query that are added to a request; no ``repr`` shows them.

    ``secrets`` are the texts in them that must be shown nowhere; those that ``are_the_askers`` own stay in its
    responses, where "ollama" is mostly a word.
    """

    headers: Mapping[str, str]
    query: str = ""
    secrets: frozenset[str] = frozenset()
    are_the_askers: bool = False

    def __repr__(self) -> str:
        return f"<Credentials: {', '.join(self.headers) or 'no headers'}>"


class Authenticator(Protocol):
    """One way to authenticate requests to one place.

    ``waits``: a call may use the network (a token is fetched or refreshed), so it does not belong on an event loop.
    """

    @property
    def waits(self) -> bool: ...

    def prepare(self) -> None:
        """Find the credentials, so that nothing begins without them. Raises ``CredentialError``."""

    def __call__(self, url: str, headers: Mapping[str, str], body: SupportsBytes) -> Credentials:
        """The credentials for a POST, made now. Raises ``CredentialError``; ``NetworkError`` where that may pass."""
