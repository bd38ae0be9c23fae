"""Servers on loopback for what the referee does not play: TLS, proxies, silence."""

from __future__ import annotations

import contextlib
import select
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Asked:
    """One request; header names are in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[["Server", Asked], Iterable[bytes]]


class _Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Server:
    """Answers every request with the bytes that ``answer`` yields, one request per connection.

    ``hold`` keeps an answer from going on until the server closes: silence without a clock.
    """

    def __init__(self, answer: Answer, context: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.dropped = threading.Event()
        self._answer = answer
        self._context = context
        self._stopping = threading.Event()
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError):
                    outer._serve(self.request)

        self._server = _Threads(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def address(self) -> str:
        """``127.0.0.1:port``."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    @property
    def url(self) -> str:
        """Its address as a URL."""
        return f"{'https' if self._context else 'http'}://{self.address}"

    def hold(self) -> None:
        """Wait until the server closes."""
        self._stopping.wait()

    def _serve(self, connection: socket.socket) -> None:
        if self._context is not None:
            connection = self._context.wrap_socket(connection, server_side=True)
        with connection, connection.makefile("rb") as reader:
            asked = _read(reader)
            if asked is None:
                return
            self.asked.append(asked)
            if asked.line.startswith("CONNECT "):
                _tunnel(asked.line.split()[1], connection)
                return
            try:
                for piece in self._answer(self, asked):
                    connection.sendall(piece)
            except OSError:
                self.dropped.set()


def _read(reader: Any) -> Asked | None:
    line = reader.readline().decode().strip()
    if not line:
        return None
    headers: dict[str, str] = {}
    while (header := reader.readline().decode().strip()) != "":
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    return Asked(line, headers, reader.read(int(headers.get("content-length", "0"))))


def _tunnel(target: str, client: socket.socket) -> None:
    """Carry bytes both ways until one side closes."""
    host, _, port = target.partition(":")
    with socket.create_connection((host, int(port))) as server:
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for _ in carried(client, server):
            pass


def carried(client: socket.socket, server: socket.socket) -> Iterator[bytes]:
    """Carry bytes both ways until one side closes; those of the server, once the client was given them."""
    while True:
        for ready in select.select([client, server], [], [])[0]:
            data = ready.recv(65536)
            if not data:
                return
            (server if ready is client else client).sendall(data)
            if ready is server:
                yield data


class Relay(socketserver.ThreadingTCPServer):
    """Takes connections on a port of its own, each with a ``handler`` in a thread."""

    daemon_threads = True

    def __init__(self, handler: type[socketserver.BaseRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.port: int = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self.shutdown()
        self.server_close()


def forward(server: Server, asked: Asked) -> Iterator[bytes]:
    """What an HTTP proxy does with a request that is no CONNECT."""
    method, url, version = asked.line.split()
    parts = urlsplit(url)
    named = {**asked.headers, "connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items() if not name.startswith("proxy-"))
    with socket.create_connection((parts.hostname or "", parts.port or 80)) as upstream:
        upstream.sendall(f"{method} {parts.path} {version}\r\n{head}\r\n".encode() + asked.body)
        while data := upstream.recv(65536):
            yield data


def head(status: int = 200, *, length: int | None = None, kind: str = "text/event-stream") -> bytes:
    """The head of a response that ends with its connection, or after ``length`` bytes."""
    size = f"content-length: {length}\r\n" if length is not None else ""
    return f"HTTP/1.1 {status} OK\r\ncontent-type: {kind}\r\n{size}connection: close\r\n\r\n".encode()


def says(*pieces: bytes, status: int = 200, kind: str = "text/event-stream") -> Answer:
    """The same response to every request."""
    return lambda server, asked: [head(status, length=sum(map(len, pieces)), kind=kind), *pieces]


def falls_silent(*pieces: bytes) -> Answer:
    """Some pieces, then nothing more."""

    def answer(server: Server, asked: Asked) -> Iterator[bytes]:
        yield from pieces
        server.hold()

    return answer


@dataclass(frozen=True)
class Authority:
    """A private certificate authority, and a server's context that it vouches for."""

    certificate: Path
    server: ssl.SSLContext


@contextmanager
def authority(place: Path) -> Iterator[Authority]:
    """Made with the openssl program, in ``place``."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=place, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    ca = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Private CA", *ca)
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (place / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
    openssl("x509", "-req", "-in", "server.csr", "-out", "server.pem", *signed)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "server.pem", place / "server.key")
    yield Authority(place / "ca.pem", context)
