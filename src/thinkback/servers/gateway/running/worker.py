"""The process of one worker: ``python -m thinkback.servers.gateway.running.worker ORDER``, started by ``workers``."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys

import msgspec

from thinkback.errors import ThinkbackError
from thinkback.servers.gateway.running import server
from thinkback.servers.gateway.running.workers import READY, Order


def main(argument: str) -> int:
    """Serve as ordered; returns the exit code."""
    order = msgspec.json.decode(argument, type=Order)
    # Ctrl-C reaches everybody at the terminal; who watches says what becomes of it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sock = socket.socket(fileno=order.fd)
    sock.setblocking(False)
    try:
        return server.run(order.start, order.start.config(), sock, order.place, _ready)
    except ThinkbackError as error:
        print(f"thinkback: {error}", file=sys.stderr)
        return 2


def _ready() -> None:
    os.write(1, READY)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: None)

    def look() -> None:
        # the other end is closed: nobody watches any more
        if not os.read(0, 1):
            loop.remove_reader(0)
            os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(0, look)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
