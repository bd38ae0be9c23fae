"""``python -m tests.servers.gateway.harness.served FILE``: a gateway before the stand-in, for tests of signals."""

from __future__ import annotations

import sys

from thinkback.servers.gateway.http.listening import address_of, bind
from thinkback.servers.gateway.running import server, workers
from thinkback.servers.gateway.running.server import Start


def main(file: str) -> int:
    """Serve as the command does; prints the address once it is listened at."""
    start = Start(file, opens="tests.servers.gateway.harness.standin:open_standin")
    config = start.config()
    sock = bind(config.server)
    url = address_of(sock)

    def ready() -> None:
        print(url, flush=True)

    if config.server.workers > 1:
        return workers.supervise(start, config, sock, ready)
    return server.run(start, config, sock, server.ALONE, ready)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
