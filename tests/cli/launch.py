"""Stands for a command that runs in a fork of ``warm``: gives it its streams and signals, and ends as it ends.

Run as a file with ``python -I -S`` and the server's place, a module and its arguments; what it imports is built into
Python, because starting it is all it costs.
"""

import posix
import sys
from _signal import (  # type: ignore[import-not-found]
    SIG_DFL,
    SIG_IGN,
    SIGHUP,
    SIGINT,
    SIGTERM,
    signal,
)
from _socket import AF_UNIX, MSG_WAITALL, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket


def number(server: socket) -> int:
    """The next number from the server."""
    return int.from_bytes(server.recv(4, MSG_WAITALL), "big", signed=True)


if posix.isatty(0):  # a terminal is of one session, and it will be that of the command
    import fcntl
    import termios

    signal(SIGHUP, SIG_IGN)
    fcntl.ioctl(0, termios.TIOCNOTTY)
place, *arguments = sys.argv[1:]
job = ascii((arguments, posix.getcwd(), posix.environ)).encode()
streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
server = socket(AF_UNIX, SOCK_STREAM)
server.connect(place)
server.sendmsg([len(job).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, streams)])
server.sendall(job)
process = number(server)
for one in (SIGHUP, SIGINT, SIGTERM):
    signal(one, lambda sent, _: posix.kill(process, sent))
code = number(server)
if code < 0:
    signal(-code, SIG_DFL)
    posix.kill(posix.getpid(), -code)
posix._exit(code)
