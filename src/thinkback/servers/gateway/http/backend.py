"""What is behind the server: keys, the engine and the stores, as one thing that requests are handed to."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from thinkback.proxy.events import Route
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.incoming import Incoming, Sink
from thinkback.servers.gateway.own import Own
from thinkback.wire.front import Listed


class Health(NamedTuple):
    """``ready``: requests are served. ``parts`` says of each part ``ok`` or what is wrong, without secrets."""

    ready: bool
    parts: Mapping[str, str]


class Behind(Protocol):
    """What the server needs."""

    async def admit(self, secret: str, address: str) -> Grant:
        """The grant of the key that was presented from ``address``; ``""`` is none. Raises ``Refused``."""
        ...

    async def admit_own(self, own: Own | None, address: str) -> Grant:
        """The grant of who shows a credential of its own, and no key. Raises ``Refused``."""
        ...

    def own_place(self, front: str) -> Route | None:
        """Where a client's own credential goes that is shown at ``front``; ``""`` where nothing tells that."""
        ...

    def entered(self, grant: Grant) -> AbstractAsyncContextManager[None]:
        """One request of ``grant`` while it is read and answered. Raises ``Refused`` where it is one too many."""
        ...

    async def respond(self, incoming: Incoming, sink: Sink) -> None:
        """Answer one request. An error that is raised before the sink was started is told by the server."""
        ...

    def models(self, grant: Grant, front: str, asked: str = "") -> list[Listed]:
        """What may be asked for with ``grant`` at ``front``; of one that is ``asked`` for, that one or nothing."""
        ...

    async def health(self) -> Health:
        """Whether requests can be served, and what of it is out of order."""
        ...

    async def configure(self, config: Config) -> None:
        """Serve requests that come from now on by ``config``. Raises ``ThinkbackError`` and changes nothing then."""
        ...

    async def close(self) -> None:
        """Close what is open, after what is being stored."""
        ...
