"""A gateway that really listens, on a thread with a loop of its own, and clients that write what they like."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.servers.gateway.harness.standin import KEY, OPENED, Standin
from thinkback.servers.gateway.http.listening import bind
from thinkback.servers.gateway.running import server
from thinkback.servers.gateway.running.server import Start

STANDIN = "tests.servers.gateway.harness.standin:open_standin"


class Reply(NamedTuple):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Running:
    """The gateway under test."""

    def __init__(self, port: int, behind: Standin, drain: Callable[[], None]) -> None:
        self.port, self.behind, self.drain = port, behind, drain

    def ask(
        self,
        path: str,
        body: object = None,
        *,
        method: str = "",
        headers: Mapping[str, str] | None = None,
        key: str | None = KEY,
    ) -> Reply:
        """One request on a connection of its own. ``body`` is bytes, or becomes JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"content-type": "application/json"} if data is not None else {}
        sent |= {"authorization": f"Bearer {key}"} if key else {}
        sent |= headers or {}
        try:
            connection.request(method or ("GET" if data is None else "POST"), path, data, sent)
            response = connection.getresponse()
            return Reply(response.status, {n.lower(): v for n, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def chat(self, **body: object) -> Reply:
        """A request in the commonest dialect."""
        return self.ask("/v1/chat/completions", body)

    def connect(self) -> socket.socket:
        """A connection to write anything to."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def raw(self, data: bytes) -> bytes:
        """Everything that comes back for ``data`` until the connection is closed."""
        with self.connect() as connection:
            connection.sendall(data)
            return read_all(connection)

    def open_chat(self, **body: object) -> socket.socket:
        """A connection on which a request was written, and nothing read."""
        connection = self.connect()
        connection.sendall(request(json.dumps(body).encode()))
        return connection


def request(body: bytes, path: str = "/v1/chat/completions", **headers: str) -> bytes:
    """The bytes of a request."""
    sent = {"Host": "localhost", "Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **headers}
    lines = [f"POST {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in sent.items())]
    return "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body


def read_all(connection: socket.socket) -> bytes:
    """Until the other side ends it; a reset counts as that."""
    got = b""
    try:
        while data := connection.recv(65_536):
            got += data
    except ConnectionResetError:
        pass
    return got


def read_until(connection: socket.socket, mark: bytes) -> bytes:
    """Until ``mark`` has come."""
    got = bytearray()
    while mark not in got[-65_600:]:
        data = connection.recv(65_536)
        assert data, f"the connection ended with {bytes(got[-200:])!r}"
        got += data
    return bytes(got)


@contextmanager
def running(opens: str = STANDIN, **changes: Mapping[str, object]) -> Iterator[Running]:
    """A gateway by a configuration of ``changes``: table to key to value. ``opens``: who opens what is behind it."""
    quiet = {"logs": {"level": "error"}, **changes}
    start = Start(changes={**quiet, "server": {"port": 0, **changes.get("server", {})}}, opens=opens)
    config = start.config()
    sock = bind(config.server)
    ready = threading.Event()
    control: dict[str, Any] = {}

    async def main() -> None:
        control["loop"], control["stop"] = asyncio.get_running_loop(), asyncio.Event()
        await server.serve(start, config, sock, ready=ready.set, stop=control["stop"])

    port = sock.getsockname()[1]
    thread = threading.Thread(target=lambda: asyncio.Runner(loop_factory=server.loop_factory()).run(main()))
    thread.start()
    assert ready.wait(20)
    # where it is no stand-in, nobody asks the one that was never open
    behind = OPENED[-1] if opens == STANDIN else Standin(config)

    def drain() -> None:
        if thread.is_alive():
            control["loop"].call_soon_threadsafe(control["stop"].set)

    try:
        yield Running(port, behind, drain)
    finally:
        behind.release.set()
        drain()
        thread.join(20)
        assert not thread.is_alive()
