"""The process of the viewer beside a gateway: to read a long conversation delays no request, and takes no memory of it.

Promises: one that dies, or cannot be started, is started again, later and later, by the configuration that the gateway
was started with; it ends with the gateway, however that ends. Must not: know the viewer, which is a server of its own:
a program of the command line puts the two together.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

import msgspec

from thinkback.errors import MissingPackageError, install_hint
from thinkback.servers.gateway.config.schema import Config
from thinkback.servers.gateway.http.listening import GRACE, LAST_BYTES, address_of, bind
from thinkback.servers.gateway.running.workers import FIRST_PAUSE, next_pause
from thinkback.servers.gateway.telemetry.logs import Log, Value

PROGRAM = "thinkback.cli.gateway_viewer"
PACKAGES = ("jinja2", "markupsafe", "nh3", "pygments", "starlette")


class ViewerOrder(msgspec.Struct, frozen=True):
    """What the process is told on standard input; others see its command line, and the store may have a password.

    ``fd`` is the socket that it listens at. ``config`` has only what concerns a viewer.
    """

    config: Config
    fd: int


@contextmanager
def viewer(config: Config) -> Iterator[str]:
    """The address of the viewer that ``config`` names, which serves meanwhile; empty where it names none.

    Raises ``MissingPackageError``, and ``NetworkError`` where that address is taken.
    """
    if not config.viewer.listen:
        yield ""
        return
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise MissingPackageError(
            f"viewer.listen: the viewer needs packages that are not installed: {', '.join(missing)}",
            details={"package": missing[0], "extra": "viewer"},
            next_actions=(install_hint("viewer"),),
        )
    with bind(config.viewer.server, "viewer.listen") as sock:
        own = Config(server=config.server, store=config.store, logs=config.logs, viewer=config.viewer)
        beside = _Beside(ViewerOrder(own, sock.fileno()), Log(config.logs))
        keeping = threading.Thread(target=beside.keep)
        keeping.start()
        try:
            yield address_of(sock)
        finally:
            beside.end()
            keeping.join()


class _Beside:
    """The process: ``keep`` is for a thread, ``end`` for whoever serves."""

    def __init__(self, order: ViewerOrder, log: Log) -> None:
        self._order, self._log = order, log
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        """Have it run until it is to end."""
        pause = FIRST_PAUSE
        while not self._ending.is_set():
            began, told = time.monotonic(), self._ran()
            if self._ending.is_set():
                return
            pause = next_pause(pause, time.monotonic() - began)
            self._log.line("error", "viewer_died", {**told, "again_in": pause})
            self._ending.wait(pause)

    def _ran(self) -> dict[str, Value]:
        """Have it run until it ends, if it can be started; how it ended."""
        try:
            process = self._started()
        except OSError as error:  # no process or no memory is to be had at the moment
            return {"reason": error.strerror}
        return {"code": process.wait()} if process is not None else {}

    def _started(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._ending.is_set():
                return None
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
            # what is pressed at the terminal reaches the gateway alone, which says what becomes of it
            self._process = process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM],
                bufsize=0,
                stdin=subprocess.PIPE,
                pass_fds=(self._order.fd,),
                start_new_session=True,
            )
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # it has died already, and is waited for
                process.stdin.write(msgspec.json.encode(self._order) + b"\n")
            return process

    def end(self) -> None:
        """Let it end: it sees that nobody writes to it any more. It is killed where it does not."""
        with self._lock:
            self._ending.set()
            process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE + 3 * LAST_BYTES)
            return
        process.kill()
