"""A request as the server hands it over, and where its response goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from thinkback.gateway.grant import Grant
from thinkback.model.blocks import Block
from thinkback.model.commits import Draft
from thinkback.stores.gateway_state.records import Use
from thinkback.wire.writing import Problem


class Incoming(NamedTuple):
    """One request for a response.

    ``front`` is the dialect that the client speaks. ``model`` and ``streams`` are what the address says, where it does
    (Gemini), else ``""`` and ``None``: then the body does. ``headers`` are those of the client, in lower case, without
    credentials and what is between two hops.
    """

    front: str
    body: bytes
    headers: Mapping[str, str]
    grant: Grant
    id: str
    model: str = ""
    streams: bool | None = None
    counts_only: bool = False


class Said(msgspec.Struct):
    """What was said, by reference, for spans where the configuration wants it there; it goes nowhere else."""

    asked: Sequence[Draft] = ()
    answered: Sequence[Block] = ()
    finish: str = ""


class Notes(msgspec.Struct):
    """What is known of a request, for its line in the log, its measures and its span. But for ``said``, names and
    numbers alone.

    The driver of its exchange writes them, before the last byte goes out and at the end. ``phases`` are seconds by name
    (``body``, ``recognise``, ``first_byte``, ``stream``, ``store``); tokens are ``None`` while nobody has said them:
    ``guessed`` counts for budgets then. ``failure`` is a kind of error, no text; ``reason`` says of an upstream that
    was not asked, or did not answer, why: for the operator, who knows its address.
    """

    model: str = ""
    served: str = ""
    upstream: str = ""
    session: str = ""
    response: str = ""
    reattach: str = ""
    degraded: str = ""
    failure: str = ""
    reason: str = ""
    attempts: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    guessed: Use | None = None
    phases: dict[str, float] = msgspec.field(default_factory=dict)
    said: Said = msgspec.field(default_factory=Said)


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
