"""The time a whole request may take, enforced also while its server is silent."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from thinkback.errors import PhaseTimeout


class Deadline:
    """``seconds`` from now on; ``None`` never ends."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self._end is not None and time.monotonic() >= self._end

    def remaining(self) -> float | None:
        """Seconds that are left, at least a moment; ``None``: no limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.001)

    def within(self, seconds: float | None) -> float | None:
        """``seconds``, or what is left if that is less."""
        left = self.remaining()
        return seconds if left is None else left if seconds is None else min(seconds, left)

    def error(self) -> PhaseTimeout:
        """What is raised when the time is up."""
        return PhaseTimeout(f"the request was not finished after {self._seconds} s", details={"phase": "total"})

    @contextmanager
    def breaking(self, connection: socket.socket | None) -> Iterator[None]:
        """While inside: break ``connection`` when the time is up, so that a blocked read returns."""
        left = self.remaining()
        if left is None or connection is None:
            yield
            return
        timer = threading.Timer(left, _break, (connection,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _break(connection: socket.socket) -> None:
    # The method of the plain socket: that of a TLS socket would also take the TLS layer from under the reader.
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
