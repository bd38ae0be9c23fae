"""Runs a gateway in this process: opens what is behind it, listens, reloads on SIGHUP, drains on SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import msgspec

from thinkback.errors import ThinkbackError
from thinkback.servers.gateway.config.reading import read_config
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.http.app import App
from thinkback.servers.gateway.http.backend import Behind
from thinkback.servers.gateway.http.listening import Listener
from thinkback.servers.gateway.running import peers
from thinkback.servers.gateway.running.places import read_text
from thinkback.servers.gateway.secrets.secret import read_key
from thinkback.servers.gateway.telemetry.logs import Log, Value
from thinkback.servers.gateway.telemetry.metrics import Metrics

Opened = Callable[[Config, Log, Metrics], Awaitable[Behind]]
NEEDS_RESTART = ("host", "port", "workers")


class Start(msgspec.Struct, frozen=True):
    """How a gateway is started: its file, what the command line lays over it, and who opens what is behind it."""

    file: str = ""
    changes: Mapping[str, Mapping[str, Any]] = {}
    opens: str = "thinkback.servers.gateway.running.wiring:open_behind"

    def config(self) -> Config:
        """The configuration as the file has it now. Raises ``RuleFileError``, ``NotFoundError``."""
        from thinkback.session.config import rulebook as user_rulebook

        rulebook = user_rulebook()
        if not self.file:
            return read_config("the command line", "", self.changes, rulebook)
        return read_config(self.file, read_text(self.file), self.changes, rulebook)

    def opener(self) -> Opened:
        """Who opens what is behind the server."""
        module, _, name = self.opens.partition(":")
        found: Opened = getattr(import_module(module), name)
        return found


class WorkerSlot(msgspec.Struct, frozen=True):
    """Which of several processes this is: the number of its slot, and the directory where all of them meet."""

    slot: int = 0
    meeting: str = ""


ALONE = WorkerSlot()


def run(start: Start, config: Config, sock: socket.socket, place: WorkerSlot, ready: Callable[[], object]) -> int:
    """Serve at ``sock`` until a signal ends it; returns the exit code. ``ready`` is called once it is listened at."""

    def opened() -> None:
        # What there is by now stays: the collector would look through all of it time and again.
        gc.freeze()
        ready()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(serve(start, config, sock, place, opened))


async def serve(
    start: Start,
    config: Config,
    sock: socket.socket,
    place: WorkerSlot = ALONE,
    ready: Callable[[], object] = lambda: None,
    stop: asyncio.Event | None = None,
) -> int:
    """As ``run``, on the loop that runs. ``stop`` ends it where there are no signals."""
    log = Log(config.logs)
    metrics = Metrics(str(place.slot) if place.meeting else "")
    behind = await start.opener()(config, log, metrics)
    try:
        running = _Running(start, config, behind, log, metrics)
        stopped, hurry = stop or asyncio.Event(), asyncio.Event()
        async with peers.meeting(place.meeting, place.slot, metrics.page):
            if place.meeting:
                running.app.measures = lambda: peers.all_pages(place.meeting)
            await running.listener.open(sock)
            _handle(running, stopped, hurry)
            ready()
            log.line("info", "listening", {"pid": os.getpid()})
            await stopped.wait()
            delay = running.config.server.drain_delay
            if delay:
                log.line("info", "leaving", {"open": running.app.open, "seconds": delay})
            await running.listener.leave(delay, hurry)
            log.line("info", "draining", {"open": running.app.open})
            await running.listener.drain(running.config.server.drain_timeout)
    finally:
        await behind.close()
    log.line("info", "ended", {"pid": os.getpid()})
    return 0


class _Running:
    """A gateway while it serves."""

    def __init__(self, start: Start, config: Config, behind: Behind, log: Log, metrics: Metrics) -> None:
        self.config, self._start, self._behind, self._log = config, start, behind, log
        self.app = App(behind, config, log=log, metrics=metrics)
        self.app.configure(behind, config, read_key(config.server.metrics_key, os.environ))
        self.listener = Listener(self.app, lambda: self.config.server, log)
        self._reloading: asyncio.Task[None] | None = None

    def reload(self) -> None:
        """Read the file again; one at a time, the last word counts."""
        before = self._reloading
        self._reloading = asyncio.get_running_loop().create_task(self._reload(before))

    async def _reload(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        try:
            config = self._start.config()
            key = read_key(config.server.metrics_key, os.environ)
            await self._behind.configure(config)
        except (ThinkbackError, OSError, UnicodeError) as error:
            said = error.message if isinstance(error, ThinkbackError) else type(error).__name__
            self._log.line("error", "not_reloaded", {"reason": said})
            return
        told = fixed(self.config, config)
        self.config = config
        self.app.configure(self._behind, config, key)
        self._log.configure(config.logs)
        self._log.line("info", "reloaded", told)


def fixed(old: Config, new: Config) -> dict[str, Value]:
    """What of a new configuration waits for a restart, for the log."""
    names = [f"server.{name}" for name in NEEDS_RESTART if getattr(old.server, name) != getattr(new.server, name)]
    names += ["store"] if old.store != new.store else []
    names += [name for name in ("secrets", "viewer") if getattr(old, name) != getattr(new, name)]
    return {"needs_restart": ", ".join(names)} if names else {}


def _handle(running: _Running, stop: asyncio.Event, hurry: asyncio.Event) -> None:
    """SIGTERM and Ctrl-C drain, a second one ends at once; SIGHUP reads the file again."""
    loop = asyncio.get_running_loop()

    def ended() -> None:
        if stop.is_set():
            hurry.set()
            running.app.stop()
        stop.set()

    with suppress(RuntimeError, ValueError, NotImplementedError):  # a loop outside the main thread hears no signals
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended)
        loop.add_signal_handler(signal.SIGHUP, running.reload)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop, where there is one."""
    if sys.platform == "win32":
        return None
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
