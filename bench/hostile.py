"""``python -m bench.hostile``: does a worker of the gateway answer while an upstream sends it what no model says?

The upstream and the clients are on one core, the gateway's one worker on another. While each response is under way
``/healthz`` is asked again and again; the worst time is printed, and the memory that stays. ``--only NAME`` asks one.
"""

from __future__ import annotations

import argparse
import ctypes
import http.client
import json
import multiprocessing
import os
import re
import resource
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

from bench.hostile_bodies import BODIES, Body

WORST = 0.250
"""Seconds within which ``/healthz`` answers, whatever is under way."""
_MOST = 3 * 2**30
"""Bytes of address space that a worker gets."""
_EVERY = 0.005
_ROW = "{:<44} {:>10} {:>10} {:>10}  {}"


class Seen(NamedTuple):
    """What came of one response: the client's status and end, seconds, the worst of ``/healthz``, memory after it."""

    status: int
    end: str
    seconds: float
    worst: float
    held: int


def main() -> int:
    """Print a row for each response; 1 where a worker did not answer in time."""
    parser = argparse.ArgumentParser(prog="python -m bench.hostile", description="Does a worker answer meanwhile?")
    parser.add_argument("--only", metavar="TEXT", default="", help="those with this in their names")
    options = parser.parse_args()
    return int(not report(options.only))


def report(only: str = "") -> bool:
    """Measure and print; whether ``/healthz`` answered in time throughout."""
    print(_ROW.format("a response under way", "seconds", "healthz", "memory", "the client reads"))
    fine = True
    with ExitStack() as stack:
        port = stack.enter_context(_upstream())
        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="thinkback-hostile-"))
        process, own = stack.enter_context(_gateway(port, Path(place)))
        for body in BODIES.values():
            _ask(own, BODIES["plain"], False)
            for stream in body.streams if only in body.name else ():
                fine = _row(body, stream, _measured(own, process.pid, body, stream)) and fine
    return fine


def _row(body: Body, stream: bool, seen: Seen) -> bool:
    met = seen.worst <= WORST
    name = f"{body.front}, {body.name}{'' if stream else ', whole'}"
    end = f"{seen.status} {seen.end}"
    late = "" if met else f"  more than {WORST * 1e3:.0f} ms"
    print(
        _ROW.format(
            name, f"{seen.seconds:.1f} s", f"{seen.worst * 1e3:.0f} ms", f"{seen.held / 2**20:.0f} MB", end + late
        ),
        flush=True,
    )
    return met


def _measured(port: int, pid: int, body: Body, stream: bool) -> Seen:
    over = threading.Event()
    worst = [0.0]
    watch = threading.Thread(target=_watch, args=(port, over, worst))
    watch.start()
    began = time.monotonic()
    status, end = _ask(port, body, stream)
    took = time.monotonic() - began
    over.wait(0.2)
    over.set()
    watch.join()
    return Seen(status, end, took, worst[0], _resident(pid))


def _watch(port: int, over: threading.Event, worst: list[float]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while not over.wait(_EVERY):
        began = time.monotonic()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        worst[0] = max(worst[0], time.monotonic() - began)
    connection.close()


def _ask(port: int, body: Body, stream: bool) -> tuple[int, str]:
    path, asked = body.request(stream)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(asked).encode(), {"content-type": "application/json"})
    response = connection.getresponse()
    size, last = 0, b""
    try:
        while piece := response.read1(1 << 18):
            size += len(piece)
            last = (last + piece)[-300:]
    except (http.client.HTTPException, ConnectionError) as error:
        return response.status, f"{size:,} bytes, {type(error).__name__}"
    finally:
        connection.close()
    found = re.search(rb'"message" ?: ?"([^"]*)"', last) if size < 2000 or b'"error"' in last else None
    return response.status, found[1].decode() if found else f"{size:,} bytes"


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """The response that the request names."""
        asked = self.rfile.read(int(self.headers["content-length"]))
        found = re.search(rb"do: ([^\"]*?)(, whole)?\.", asked)
        body = BODIES[found[1].decode()] if found else BODIES["plain"]
        stream = bool(found) and found is not None and not found[2]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
        if body.packed:
            self.send_header("content-encoding", "gzip")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for piece in body.pieces(stream):
                self.wfile.write(piece)
        except OSError:
            return

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def _serve(pipe: Any) -> None:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        pipe.send(server.server_address[1])
        server.serve_forever()


@contextmanager
def _upstream() -> Iterator[int]:
    cores = sorted(os.sched_getaffinity(0))
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_serve, args=(theirs,), daemon=True)
    os.sched_setaffinity(0, {cores[-1]})
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()
        os.sched_setaffinity(0, set(cores))


def _bounded() -> None:
    """In the worker: it may not fill the machine, and ends with whoever measures it."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST, _MOST))
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@contextmanager
def _gateway(upstream: int, place: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    cores = sorted(os.sched_getaffinity(0))
    names = ("deepseek", "anthropic", "openai", "gemini")
    lines = "".join(
        f'[upstreams.{name}]\nendpoint = "{name}"\nbase_url = "http://127.0.0.1:{upstream}"\nkey_env = "UP"\n'
        for name in names
    )
    config = place / "gateway.toml"
    config.write_text(f'{lines}[server]\nport = 0\nno_auth = true\n[store]\npath = "{place}"\n')
    environment = {**os.environ, "UP": "sk-hostile", "THINKBACK_CONFIG_DIR": str(place), "NO_PROXY": "*"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", "thinkback", "gateway", "--config", str(config)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=(place / "log").open("w"),
        text=True,
        preexec_fn=_bounded,
    )
    os.sched_setaffinity(process.pid, {0 if len(os.sched_getaffinity(process.pid)) > 1 else cores[0]})
    try:
        assert process.stdout is not None
        for line in process.stdout:
            told = re.search(r"serves at http://[^;]*:(\d+);", line)
            if told:
                yield process, int(told[1])
                break
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
