"""The referee's HTTP: reads requests, carries out the actions of a reply, and shuts down without leaving anything open.

The only module here that touches sockets and threads. HTTP/1.1 with keep-alive; bodies come with a length or in
chunks, streams leave in chunks, so that a cut is visible to the client as a broken body.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self, assert_never, cast

from .jsons import compact
from .transmission import Action, Cut, Wait, Write, body_length

_LONGEST_BODY = 256 * 1024 * 1024
_JOIN_SECONDS = 5.0
_NO_BODY = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class Incoming:
    """One HTTP request; header names are lower-case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """A status, headers, and how the body is sent. ``ended`` is told when no more is written: whether that was all."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    chunked: bool = False
    ended: Callable[[bool], None] | None = None

    @classmethod
    def json(cls, status: int, body: object, headers: Mapping[str, str] | None = None) -> Self:
        """A reply with a JSON body."""
        data = compact(body).encode()
        return cls(status, {"content-type": "application/json", **(headers or {})}, [Write(data)])

    @classmethod
    def stream(cls, actions: list[Action], content_type: str) -> Self:
        """A reply with a body that comes event by event."""
        headers = {"content-type": content_type, "cache-control": "no-cache"}
        return cls(200, headers, actions, chunked=True)


Respond = Callable[[Incoming], Reply]


class Connections:
    """A listening socket, the thread that accepts, and one thread per connection."""

    def __init__(self, address: tuple[str, int], respond: Respond) -> None:
        self._server = _Server(address, respond)
        # Polling is how often shutdown is noticed.
        self._acceptor = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="referee-acceptor", daemon=True
        )
        self._acceptor.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def close(self) -> None:
        """Stop accepting, break every connection, join every thread."""
        self._server.stopping.set()
        self._server.shutdown()
        self._acceptor.join()
        self._server.drop_connections()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], respond: Respond) -> None:
        self.respond = respond
        self.stopping = threading.Event()
        self._workers: dict[threading.Thread, socket.socket] = {}
        self._workers_lock = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer looks its own name up here, which may ask a name server; the address is all that is needed.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        connection = cast(socket.socket, request)
        thread = threading.Thread(
            target=self._serve_connection, args=(connection, client_address), name="referee-connection", daemon=True
        )
        with self._workers_lock:
            self._workers[thread] = connection
        thread.start()

    def drop_connections(self) -> None:
        """Wake every worker by shutting its socket down, and wait until it has closed it."""
        with self._workers_lock:
            workers = dict(self._workers)
        for connection in workers.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in workers:
            thread.join(_JOIN_SECONDS)

    def _serve_connection(self, connection: socket.socket, client_address: object) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                self.finish_request(connection, client_address)
        finally:
            self.shutdown_request(connection)
            with self._workers_lock:
                self._workers.pop(threading.current_thread(), None)


class _BadRequest(Exception):
    """A body that HTTP itself does not allow."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()

    def log_message(self, format: str, *args: object) -> None:
        return

    def _handle(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = self._read_body(headers)
        except (_BadRequest, ValueError) as error:
            self.close_connection = True
            reply = Reply.json(400, {"error": {"message": f"bad request body: {error}", "type": "bad_request"}})
        else:
            reply = self.server.respond(Incoming(self.command, self.path, headers, body))
        whole = False
        try:
            whole = self._send(reply)
        finally:
            if reply.ended is not None:
                reply.ended(whole)

    def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(iter(self._read_chunk, b""))
        return self._read_exactly(int(headers.get("content-length", "0")))

    def _read_chunk(self) -> bytes:
        size = int(self.rfile.readline(1024).split(b";")[0], 16)
        data = self._read_exactly(size)
        # The empty chunk is followed by trailers up to an empty line, every other one by a line end.
        while self.rfile.readline(65536).strip() and not size:
            pass
        return data

    def _read_exactly(self, count: int) -> bytes:
        if not 0 <= count <= _LONGEST_BODY:
            raise _BadRequest("too long")
        data = self.rfile.read(count)
        if len(data) < count:
            raise ConnectionResetError("the client went away")
        return data

    def _send(self, reply: Reply) -> bool:
        """Whether all of it was written."""
        cut = any(isinstance(action, Cut) for action in reply.actions)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.chunked:
            self.send_header("transfer-encoding", "chunked")
        elif reply.status not in _NO_BODY:
            # One more than will come: that is what makes a cut visible.
            self.send_header("content-length", str(body_length(reply.actions) + cut))
        self.end_headers()
        return reply.status in _NO_BODY or self._carry_out(reply)

    def _carry_out(self, reply: Reply) -> bool:
        for action in reply.actions:
            match action:
                case Write(data):
                    self._write(data, reply.chunked)
                case Wait(seconds):
                    if self.server.stopping.wait(seconds):
                        self.close_connection = True
                        return False
                case Cut():
                    self.close_connection = True
                    return False
                case _:
                    assert_never(action)
        if reply.chunked:
            self.wfile.write(b"0\r\n\r\n")
        return True

    def _write(self, data: bytes, chunked: bool) -> None:
        if data:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
