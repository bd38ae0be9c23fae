"""Commands that need not import the command line anew: a server that has done so, and forks for each.

Each command is still a process, with the arguments, directory, environment and streams of whoever started
``launch.py``, and its exit code is the launcher's. The server runs none itself: it holds modules, and nothing else that
forks could share. The launcher passes SIGHUP, SIGINT and SIGTERM on; a fork whose launcher is killed is killed soon
after, and it ends without taking its modules apart: what is about that, or about starting, has a Python of its own.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import fcntl
import gc
import importlib
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import thinkback

LAUNCH = Path(__file__).with_name("launch.py")
LIBRARIES = ("acp", "httpx2", "mcp.server.stdio", "prompt_toolkit", "rich.console", "sqlite3")
"""What commands import when they come to need it."""
HOSTED = (
    "thinkback.adapters.langchain",
    "thinkback.adapters.llm",
    "thinkback.adapters.pydantic_ai.",
    "thinkback.adapters.transport.httpx_clients",
)
"""Adapters that import the program that they are for, which is not installed here."""


@contextmanager
def warm(place: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The beginning of a command's line, while the server runs, up to the module that is run. Modules are imported in
    ``environment``.
    """
    at = str(place / "warm")
    given = {**environment, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    line = [sys.executable, "-m", "tests.cli.warm", at]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=given) as server:
        assert server.stdout is not None
        assert b"ready\n" == server.stdout.readline()
        yield (sys.executable, "-I", "-S", str(LAUNCH), at, "thinkback")
        server.communicate()
    assert 0 == server.returncode


def serve(place: str) -> None:
    """Fork for each launcher, until standard input ends."""
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waits:
        listener.bind(place)
        listener.listen(64)
        waits.register(0, selectors.EVENT_READ)
        waits.register(listener, selectors.EVENT_READ)
        os.write(1, b"ready\n")
        while True:
            for key, _ in waits.select():
                if key.fileobj == 0:
                    for left in waits.get_map().values():
                        if left.data:
                            os.kill(left.data[0], signal.SIGKILL)
                    return
                if key.fileobj is listener:
                    launcher, _ = listener.accept()
                    length, streams, _, _ = socket.recv_fds(launcher, 8, 3)
                    job = launcher.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
                    process = os.fork()
                    if process == 0:
                        become(job, streams)
                    for stream in streams:
                        os.close(stream)
                    launcher.sendall(process.to_bytes(4, "big"))
                    waits.register(os.pidfd_open(process), selectors.EVENT_READ, (process, launcher))
                    waits.register(launcher, selectors.EVENT_READ, (process, None))
                elif key.data[1] is None:  # a launcher says nothing: it was killed
                    os.kill(key.data[0], signal.SIGKILL)
                    waits.unregister(key.fileobj)
                else:
                    process, launcher = key.data
                    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
                    waits.unregister(key.fileobj)
                    os.close(key.fd)
                    with contextlib.suppress(KeyError):
                        waits.unregister(launcher)
                    with contextlib.suppress(OSError), launcher:
                        launcher.sendall(code.to_bytes(4, "big", signed=True))
                    break  # what else was found ready may be of the same process


def become(job: bytes, streams: list[int]) -> NoReturn:
    """Be what the launcher stands for."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    if os.isatty(0):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in the background, it is ignored
    sys.stdin = open(0, errors="surrogateescape", closefd=False)  # noqa: SIM115 - they last as long as the process
    sys.stdout = open(1, "w", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    (module, *sys.argv[1:]), directory, environment = ast.literal_eval(job.decode())
    os.chdir(directory)
    os.environ.clear()
    os.environb.update(environment)
    code = 1
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    for module in pkgutil.walk_packages(thinkback.__path__, "thinkback."):
        if not module.name.startswith(
            ("thinkback.__main__", "thinkback.cli.gateway_viewer", "thinkback.servers.gateway", *HOSTED)
        ):
            importlib.import_module(module.name)
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    serve(sys.argv[1])
