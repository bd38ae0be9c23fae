"""A request as the server hands it over, and where its response goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol, TypeAlias

from thinkback.gateway.grant import Grant

Front: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
"""The dialect that a client speaks."""


class Incoming(NamedTuple):
    """One request for a response.

    ``model`` and ``streams`` are what the address says, where it does (Gemini), else ``""`` and ``None``: then the
    body does. ``headers`` are those of the client, in lower case, without credentials and what is between two hops.
    """

    front: Front
    body: bytes
    headers: Mapping[str, str]
    grant: Grant
    id: str
    model: str = ""
    streams: bool | None = None
    counts_only: bool = False


class Sink(Protocol):
    """Where a response goes. Writing waits while the client is slow; ``ClientGone`` is raised when it has left."""

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Status and headers; once."""
        ...

    async def write(self, data: bytes) -> None:
        """A piece of the body."""
        ...

    async def end(self, data: bytes = b"") -> None:
        """The last piece."""
        ...


class ClientGone(Exception):
    """The client closed its connection; nobody reads what would still be written."""
