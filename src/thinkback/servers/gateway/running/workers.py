"""Several processes that listen at one socket, and who watches over them.

Promises: a worker that dies is started again, later and later while it goes on dying; signals reach all; when the one
who watches dies, its workers drain. Must not: serve a request.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress

import msgspec

from thinkback.errors import ThinkbackError
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.http.listening import GRACE, LAST_BYTES
from thinkback.servers.gateway.running.server import Start, WorkerSlot
from thinkback.servers.gateway.telemetry.logs import Log

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
STEADY = 10.0
"""Seconds after which a worker that dies was well, so that the next one is started at once."""
READY = b"ready\n"


def next_pause(pause: float, lived: float) -> float:
    """Seconds before one that died after ``lived`` seconds is started again; ``pause`` was the one before."""
    return FIRST_PAUSE if lived >= STEADY else min(pause * 2, LONGEST_PAUSE)


class Order(msgspec.Struct, frozen=True):
    """What a worker is told on its command line."""

    start: Start
    place: WorkerSlot
    fd: int


def supervise(start: Start, config: Config, sock: socket.socket, ready: Callable[[], object]) -> int:
    """Run ``config.server.workers`` workers until a signal ends them; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="thinkback-") as meeting:
        return asyncio.run(_Watch(start, config, sock, meeting).run(ready))


class _Watch:
    """The workers by slot."""

    def __init__(self, start: Start, config: Config, sock: socket.socket, meeting: str) -> None:
        self._start, self._config, self._sock, self._meeting = start, config, sock, meeting
        self._log = Log(config.logs)
        self._workers: dict[int, Process] = {}
        self._stopping = asyncio.Event()
        self._never_ready: int | None = None
        self._waiting = config.server.workers
        self._reloads = 0
        self._ready: set[int] = set()

    async def run(self, ready: Callable[[], object]) -> int:
        """Until all have ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        await asyncio.gather(*(self._keep(slot, ready) for slot in range(self._config.server.workers)))
        return self._never_ready or 0

    async def _keep(self, slot: int, ready: Callable[[], object]) -> None:
        """Have a worker in ``slot`` for as long as the gateway runs."""
        pause = FIRST_PAUSE
        was_ready = False
        while not self._stopping.is_set():
            began = time.monotonic()
            if await self._starts(slot) and not was_ready:
                was_ready = True
                self._waiting -= 1
                if not self._waiting:
                    ready()
            code = await self._workers[slot].wait()
            self._ready.discard(slot)
            if self._stopping.is_set():
                return
            if not was_ready:
                # it never served: what keeps it from that keeps the next one from it, too
                self._never_ready = code if code > 0 else 1
                self._end()
                return
            pause = next_pause(pause, time.monotonic() - began)
            self._log.line("error", "worker_died", {"slot": slot, "code": code, "again_in": pause})
            await self._rest(pause)

    async def _starts(self, slot: int) -> bool:
        """Start a worker; whether it serves."""
        reloads = self._reloads
        worker = self._workers[slot] = await self._spawn(slot)
        if self._stopping.is_set():
            send_signal(worker, signal.SIGTERM)
        assert worker.stdout is not None
        if await worker.stdout.readline() != READY:
            return False
        self._ready.add(slot)
        if reloads != self._reloads:
            send_signal(worker, signal.SIGHUP)
        return True

    async def _spawn(self, slot: int) -> Process:
        order = Order(self._start, WorkerSlot(slot, self._meeting), self._sock.fileno())
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "thinkback.servers.gateway.running.worker",
            msgspec.json.encode(order).decode(),
            stdin=PIPE,
            stdout=PIPE,
            pass_fds=(self._sock.fileno(),),
        )

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    def _end(self) -> None:
        """Let all drain; asked again, end them."""
        if self._stopping.is_set():
            self._signal(signal.SIGKILL)
            return
        self._stopping.set()
        # while anybody has the socket the system takes connections, which nobody would answer once the workers ended
        self._sock.close()
        self._signal(signal.SIGTERM)
        server = self._config.server
        patience = server.drain_delay + server.drain_timeout + GRACE + 3 * LAST_BYTES
        asyncio.get_running_loop().call_later(patience, self._signal, signal.SIGKILL)

    def _reload(self) -> None:
        """Look at the file first, so that a bad one is told once."""
        try:
            self._config = self._start.config()
        except (ThinkbackError, OSError, UnicodeError) as error:
            said = error.message if isinstance(error, ThinkbackError) else type(error).__name__
            self._log.line("error", "not_reloaded", {"reason": said})
            return
        self._log.configure(self._config.logs)
        self._reloads += 1
        # one that is only starting knows no signals yet, and is told once it serves
        for slot in self._ready:
            send_signal(self._workers[slot], signal.SIGHUP)

    def _signal(self, number: int) -> None:
        for worker in self._workers.values():
            send_signal(worker, number)


def send_signal(worker: Process, number: int) -> None:
    """Send it to a worker that may have ended, which the loop hears of a moment later."""
    if worker.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(worker.pid, number)
