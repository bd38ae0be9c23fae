"""``python -m thinkback.cli.gateway_viewer``: the viewer of a gateway, started by it with its order on standard input
(``running.beside``).

Here the two servers meet: the gateway's keys, logs and listener, and the viewer's pages. Promises: no commit is
written (what is: the index of words where a search finds it behind, and a tenant's log where there is none yet);
rules, settings, profiles and keys of whoever runs the gateway are not read, and only its prices show.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import msgspec
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from thinkback.errors import StoreError, ThinkbackError
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.access.audit import Audit
from thinkback.servers.gateway.access.keys import Access, digest_of
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.http.listening import Listener
from thinkback.servers.gateway.http.origins import Origins
from thinkback.servers.gateway.running.beside import ViewerOrder
from thinkback.servers.gateway.running.places import office_of, state_place
from thinkback.servers.gateway.storing.tenants import TenantLogs
from thinkback.servers.gateway.telemetry.logs import Log
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.sign_in import Guest, SignIn
from thinkback.session.store import SessionStore
from thinkback.stores.gateway_state.state import GatewayState

_FRESH = 10.0
"""Seconds for which the names of keys are taken as they were read."""
_THREADS = 4
"""Connections to the database for keys, and for the log of each tenant."""


class ViewKeys:
    """Keys that have the right ``view``, as guests of the viewer."""

    def __init__(self, access: Access, audit: Audit) -> None:
        self._access, self._audit = access, audit

    async def admit(self, secret: str, address: str) -> Guest:
        """Whoever shows ``secret``. Raises ``Refused``."""
        grant = await self._access.admit(secret, address)
        if not grant.view:
            self._audit.refused("may_not_view", address, key=grant.key)
        _check_right(grant)
        self._audit.note("viewer.signed_in", key=grant.key, tenant=grant.tenant, **{"from": address})
        return Guest(grant.tenant, digest_of(secret), grant.key)

    async def again(self, guest: Guest) -> None:
        """Raise ``Refused`` where the key of ``guest`` does not hold any more."""
        _check_right(await self._access.again(guest.proof))

    def too_many(self, address: str) -> None:
        """Leave a line of a sign-in that was refused unseen."""
        self._audit.refused("too_many_attempts", address)

    def looked(self, guest: Guest, session: str) -> None:
        """Leave a line of a session that somebody looks at."""
        self._audit.note("viewer.read", key=guest.key, tenant=guest.tenant, session=session[:200])


class KeyNames:
    """Names the sessions of a tenant for pages: by the name of the key that begins theirs, where it has one."""

    def __init__(self, office: GatewayState, tenant: str) -> None:
        self._office, self._tenant = office, tenant
        self._names: dict[str, str] = {}
        self._due = 0.0

    def __call__(self, session: str) -> str:
        """The session ``key-3d9b7c803009/...`` as ``ada/...``."""
        key, slash, rest = session.partition("/")
        if not slash or not key.startswith("key-"):
            return session
        if time.monotonic() >= self._due:
            with suppress(StoreError):  # they are called as before, or by their keys
                rows = self._office.keys.list()
                self._names = {row.id: row.name for row in rows if row.tenant == self._tenant and row.name}
            self._due = time.monotonic() + _FRESH
        return f"{self._names.get(key, key)}/{rest}"


def _check_right(grant: Grant) -> None:
    if not grant.view:
        raise Refused(403, "may_not_view", "this key does not have the right to view: ask the gateway's operator")


class Served:
    """``app`` as the gateway's listener serves one."""

    def __init__(self, app: Callable[[Callable[[], bool]], ASGIApp]) -> None:
        self._draining = False
        self._app = app(lambda: self._draining)

    def leave(self) -> None:
        """Nobody asks it whether it is ready."""

    def drain(self) -> None:
        """Streams end; what else is open goes on."""
        self._draining = True

    def stop(self) -> None:
        """There is nothing to be told."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless its connection found something wrong with its head."""
        refused: Refused | None = scope.get("state", {}).get("refused")
        if refused is not None:
            await PlainTextResponse(refused.message, refused.status)(scope, receive, send)
            return
        await self._app(scope, receive, send)


@contextmanager
def opened(config: Config) -> Iterator[Callable[[Callable[[], bool]], SignIn]]:
    """The viewer of the gateway so configured, made with what says that its server ends. Raises ``ThinkbackError``."""
    store = msgspec.structs.replace(config.store, connections=min(_THREADS, config.store.connections))
    logs = TenantLogs(state_place(config.store), store)
    office = office_of(config)
    executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="thinkback-office")
    audit = Audit(config.logs.audit or None)
    origins = Origins(config.viewer.server)

    def check(headers: Headers) -> None:
        # a page of another origin may not even read
        origins.check(headers.raw, headers, "POST")

    def made(is_over: Callable[[], bool]) -> SignIn:
        def room(tenant: str) -> ASGIApp:
            log = SessionStore(logs.of(tenant), True, {}, {}, tenant)
            return application(log, is_over, signs_out=True, called=KeyNames(office, tenant))

        return SignIn(ViewKeys(Access(office, executor, audit=audit), audit), room, check)

    try:
        yield made
    finally:
        executor.shutdown()
        logs.close()
        office.close()
        audit.close()


async def serve(config: Config, sock: socket.socket, stop: asyncio.Event) -> None:
    """Serve at ``sock`` until ``stop``."""
    log = Log(config.logs)
    with opened(config) as made:
        listener = Listener(Served(made), lambda: config.server, log)
        await listener.open(sock)
        log.line("info", "viewer_listening", {"pid": os.getpid()})
        await stop.wait()
        await listener.drain(1.0)


def main() -> int:
    """Serve as ordered in a line of standard input, until that ends; returns the exit code."""
    line = sys.stdin.buffer.readline()
    if not line:  # the gateway has ended already
        return 0
    order = msgspec.json.decode(line, type=ViewerOrder)
    sock = socket.socket(fileno=order.fd)
    sock.setblocking(False)

    async def run() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.set)

        def look() -> None:
            if not os.read(0, 1):
                loop.remove_reader(0)
                stop.set()

        loop.add_reader(0, look)
        await serve(order.config, sock, stop)

    try:
        asyncio.run(run())
    except ThinkbackError as error:
        print(f"thinkback: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
