"""Serves the viewer to one person on this machine, until it is interrupted."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable

import uvicorn

from thinkback.errors import ThinkbackError
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.door import Door
from thinkback.servers.viewer.writing import Writing
from thinkback.session.store import SessionStore

HOST = "127.0.0.1"


def serve(store: SessionStore, port: int, path: str, told: Callable[[str], None], *, writes: bool = False) -> None:
    """Serve ``store`` on a loopback ``port`` (0: a free one); ``told`` gets the link to ``path`` when it answers.
    ``writes``: the log may be changed by its pages.

    Raises ``ThinkbackError`` where the port is taken.
    """
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise ThinkbackError(
                f"port {port} of {HOST} cannot be used: {error.strerror}", next_actions=("give another --port",)
            ) from error
        listening.listen(64)
        bound, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        app = application(store, lambda: server.should_exit, Writing(store) if writes else None)
        door = Door(app, [f"{HOST}:{bound}", f"localhost:{bound}"], token, writes=writes)
        configuration = uvicorn.Config(
            door, log_config=None, access_log=False, server_header=False, lifespan="off", timeout_graceful_shutdown=2
        )
        server = uvicorn.Server(configuration)
        told(f"http://{HOST}:{bound}{path}?token={token}")
        server.run(sockets=[listening])
