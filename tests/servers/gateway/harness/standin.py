"""A stand-in for what is behind the server: it answers as a request asks it to, and says what became of it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from thinkback.errors import SettingError, StoreError
from thinkback.proxy.problems import Refused
from thinkback.proxy.report import Report
from thinkback.servers.gateway.access.keys import missing, unknown
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.grant import OPEN, Grant
from thinkback.servers.gateway.http.backend import Health
from thinkback.servers.gateway.incoming import ClientGone, Incoming, Sink
from thinkback.servers.gateway.telemetry.logs import Log
from thinkback.servers.gateway.telemetry.metrics import Metrics
from thinkback.wire.front import Listed
from thinkback.wire.registry import front

KEY = "tb-stand-in"
EVENT = b'data: {"n": 1}\n\n'
PIECE = EVENT * 4096
OPENED: list[Standin] = []
"""Those of this process, the last one last."""


class Standin:
    """Does what stands in the body under ``do``, with its arguments beside it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.incoming: list[Incoming] = []
        self.ended: list[str] = []
        self.written = 0
        self.changed = threading.Condition()
        self.release = threading.Event()
        self.health_now = Health(True, {"store": "ok"})
        self.closed = False

    async def admit(self, secret: str, address: str) -> Grant:
        """One key is known; without keys everybody comes in."""
        if self.config.server.no_auth:
            return OPEN
        if not secret:
            raise missing()
        if secret != KEY:
            raise unknown(secret)
        return Grant("key-1", name="test")

    @asynccontextmanager
    async def entered(self, grant: Grant) -> AsyncIterator[None]:
        yield

    async def respond(self, incoming: Incoming, sink: Sink) -> None:
        """Do what the body says."""
        self.incoming.append(incoming)
        self._tell()
        try:
            body = json.loads(incoming.request.body)
            await getattr(self, f"do_{body.get('do', 'echo')}")(incoming, sink, body)
        except ClientGone:
            self._end("gone")
            raise
        except asyncio.CancelledError:
            if sink.stop is not None and getattr(sink, "started", False):
                await sink.end(b"data: " + front(incoming.request.front).write_error(sink.stop) + b"\n\n")
                self._end("stopped")
                return
            self._end("cancelled")
            raise
        except Exception:
            self._end("failed")
            raise
        else:
            self._end("whole")

    async def do_echo(self, incoming: Incoming, sink: Sink, body: Any) -> None:
        """What was asked, as a document."""
        asked = incoming.request
        said = {"model": asked.model, "streams": asked.streams, "headers": dict(asked.headers)}
        sink.notes.report = Report(upstream="deepseek/deepseek-v4-pro", reasoning_tokens=7)
        await sink.start(200, {"content-type": "application/json", "thinkback-reattach": "not-needed"})
        await sink.end(json.dumps({**said, "front": asked.front, "counts_only": asked.counts_only}).encode())

    async def do_stream(self, incoming: Incoming, sink: Sink, body: Any) -> None:
        """Some events."""
        await sink.start(200, {"content-type": "text/event-stream"})
        for n in range(body.get("events", 2)):
            await sink.write(b'data: {"n": %d}\n\n' % n)
        await sink.end()

    async def do_headers(self, incoming: Incoming, sink: Sink, body: Any) -> None:
        """Headers that are not of this world, with a length of their own."""
        await sink.start(200, {"thinkback-left-out": "a\x04b\r\nx: y\u2603", "content-length": "2"})
        await sink.end(b"{}")

    async def do_wait(self, incoming: Incoming, sink: Sink, body: Any) -> None:
        """One event, another one when it is let go on."""
        await sink.start(200, {"content-type": "text/event-stream"})
        await sink.write(b'data: {"n": 0}\n\n')
        await asyncio.to_thread(self.release.wait, 20)
        await sink.end(b'data: {"n": 1}\n\n')

    async def do_hang(self, incoming: Incoming, sink: Sink, body: Any) -> None:
        """Nothing, for ever."""
        if body.get("started"):
            await sink.start(200, {"content-type": "text/event-stream"})
            await sink.write(EVENT)
        await asyncio.Event().wait()

    async def do_flood(self, incoming: Incoming, sink: Sink, body: Any) -> None:
        """As much as the client takes."""
        await sink.start(200, {"content-type": "text/event-stream"})
        for _ in range(body["pieces"]):
            await sink.write(PIECE)
            self.written += len(PIECE)
        await sink.end()

    async def do_refuse(self, incoming: Incoming, sink: Sink, body: Any) -> None:
        """A refusal."""
        raise Refused(body["status"], "stand_in", "as asked", retry_after=body.get("retry_after"))

    async def do_break(self, incoming: Incoming, sink: Sink, body: Any) -> None:
        """A fault of the gateway's own, with a secret in its text."""
        if body.get("started"):
            await sink.start(200, {"content-type": "text/event-stream"})
            await sink.write(EVENT)
        raise StoreError("/home/me/secret.db is locked") if body.get("store") else KeyError("sk-secret")

    def models(self, grant: Grant, front: str, asked: str = "") -> list[Listed]:
        """Two models."""
        return [Listed("fast", "house"), Listed("deepseek/deepseek-v4-pro", "deepseek", 1_790_000_000, 1000, 100)]

    async def health(self) -> Health:
        """As a test says."""
        return self.health_now

    async def configure(self, config: Config) -> None:
        """Takes what it can."""
        if "refused" in config.models:
            raise SettingError("models.refused: is refused by the stand-in")
        self.config = config

    async def close(self) -> None:
        """Nothing is open."""
        self.closed = True
        self._tell()

    def _end(self, how: str) -> None:
        self.ended.append(how)
        self._tell()

    def _tell(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, holds: Any, seconds: float = 20.0) -> None:
        """Until ``holds()`` is true; a test that waits in vain fails."""
        with self.changed:
            assert self.changed.wait_for(holds, seconds), f"incoming {len(self.incoming)}, ended {self.ended}"


async def open_standin(config: Config, log: Log, metrics: Metrics) -> Standin:
    """As the server opens what is behind it."""
    if "unopened" in config.models:
        raise StoreError("the log cannot be opened")
    made = Standin(config)
    OPENED.append(made)
    return made
