"""Stands for a command that runs in a fork of ``warm``: gives it its streams, and ends as it ends.

Run as a file with ``python -I -S``; what it imports is built into Python, because starting it is all it costs.
"""

import posix
import sys
from _socket import AF_UNIX, MSG_WAITALL, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

place, *arguments = sys.argv[1:]
job = ascii((arguments, posix.getcwd(), posix.environ)).encode()
streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
server = socket(AF_UNIX, SOCK_STREAM)
server.connect(place)
server.sendmsg([len(job).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, streams)])
server.sendall(job)
code = int.from_bytes(server.recv(4, MSG_WAITALL), "big", signed=True)
posix._exit(code if code >= 0 else 128 - code)
