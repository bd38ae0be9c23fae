"""A request as the server hands it over, and where its response goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import msgspec

from thinkback.proxy.report import Report
from thinkback.proxy.request_view import Client, Received
from thinkback.servers.gateway.grant import OPEN, Grant
from thinkback.servers.gateway.own import Own
from thinkback.stores.gateway_state.records import Use
from thinkback.wire.writing import Problem


class Incoming(NamedTuple):
    """One request for a response: as an exchange takes it, whose it is, and the name it has in logs.

    ``own`` is the client's own credential for a provider.
    """

    request: Received
    grant: Grant
    id: str
    own: Own | None = None

    @classmethod
    def of(
        cls,
        front: str,
        body: bytes,
        headers: Mapping[str, str],
        grant: Grant,
        id: str,
        model: str = "",
        streams: bool | None = None,
        counts_only: bool = False,
        own: Own | None = None,
    ) -> Incoming:
        """A request with the key ``grant``; ``Received`` says what the rest is."""
        is_open = grant.key == OPEN.key
        client = Client(grant.tenant, grant.key, grant.recording, limited="*" not in grant.models, alone=is_open)
        return cls(Received(front, body, headers, client, model, streams, counts_only), grant, id, own)


class Notes(msgspec.Struct):
    """What is known of a request, for its line in the log, its measures and its span.

    ``report`` is that of its exchange; the driver of that writes it, before the last byte goes out and at the end.
    ``degraded`` names a part that was out of order. ``guessed`` counts for budgets where nobody has said the tokens.
    ``phases`` are seconds by name: ``body``, ``recognise``, ``sign_in``, ``first_byte``, ``stream``, ``store``, and
    ``wait`` and ``retries`` of attempts that were for nothing.
    """

    report: Report = Report()
    degraded: str = ""
    guessed: Use | None = None
    phases: dict[str, float] = msgspec.field(default_factory=dict)


class Sink(Protocol):
    """Where a response goes. Writing waits while the client is slow; ``ClientGone`` is raised when it has left.

    ``respond`` runs in a task of its own, which is cancelled when the client leaves, does not read for too long, or
    the gateway ends. ``stop`` then says what a client that still reads is to be told, behind what it has; it is
    ``None`` where nobody reads any more.
    """

    @property
    def notes(self) -> Notes:
        """Where facts of this request go."""
        ...

    @property
    def stop(self) -> Problem | None:
        """What is to be told, once the task was cancelled."""
        ...

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
