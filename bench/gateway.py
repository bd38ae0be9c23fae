"""``python -m bench.gateway``: the gateway beside a proxy that only forwards bytes, and beside a peer.

Provider and client are on one core, what is measured is on another, all alike. Each figure is the median of the
rounds, in which the servers take turns. Prints a table with the aims and writes bench/gateway.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench.loopback import bodies, client, servers
from bench.loopback.client import Load
from bench.loopback.servers import Running

LATEST = Path(__file__).parent / "gateway.json"
CONNECTIONS = (1, 16, 64)
STREAMS, OPEN = 16, 1000
LENGTHS = (10, 100, 1000, 10_000)
_ROW = "{:<34} {:>11} {:>11} {:>11} {:>11}  {}"
_NAMES = ("direct", "bare proxy", "gateway", "litellm proxy")
_STARTS = {"bare proxy": servers.bare, "gateway": servers.gateway, "litellm proxy": servers.litellm}
_INSTALLED = Path(__file__).parent / "installed.py"


class Figure(msgspec.Struct):
    """One row: a value for each server that was measured, and what became of the aim."""

    name: str
    unit: str
    values: dict[str, float]
    aim: str = ""
    met: bool | None = None


class Bench:
    """Servers, and how long each sample takes."""

    def __init__(self, running: list[Running], seconds: float, rounds: int) -> None:
        self.running = running
        self.seconds = seconds
        self.rounds = rounds
        self.numbers = iter(range(0, 1 << 60, 1 << 20))
        self.failures: dict[str, int] = {}

    def loads(self, run: Any, *names: str) -> dict[str, list[Load]]:
        """Samples of each server; ``run`` takes a port and gives a coroutine. Servers take turns."""
        found: dict[str, list[Load]] = {}
        for _ in range(self.rounds):
            for server in self.running:
                if names and server.name not in names:
                    continue
                used = server.cpu()
                load = _run(run(server.port))
                load = load._replace(cpu=server.cpu() - used)
                found.setdefault(server.name, []).append(load)
                if load.failures:
                    self.failures[server.name] = self.failures.get(server.name, 0) + load.failures
        return found

    def body(self, *, stream: bool = False) -> client.Body:
        """Requests that nobody sent before."""
        base = next(self.numbers)
        return lambda number: bodies.request(base + number, stream=stream)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description="What the gateway costs, as ratios.")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each sample")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", metavar="NAME", action="append", help=f"a server ({', '.join(_NAMES[1:])})")
    parser.add_argument("--rows", metavar="NAME", action="append", help=f"some rows ({', '.join(_GROUPS)})")
    options = parser.parse_args()
    os.sched_setaffinity(0, servers.AROUND)
    print(f"CPython {platform.python_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    print(_ROW.format("", *_NAMES, "aim"))
    figures: list[Figure] = []
    with ExitStack() as stack:
        bench = Bench(_start(stack, options.only), options.seconds, options.rounds)
        for name, group in _GROUPS.items():
            if options.rows and name not in options.rows:
                continue
            for figure in group(bench):
                figures.append(figure)
                _print(figure)
    if bench.failures:
        print(f"\nresponses that were not 200, or broke off: {bench.failures}")
    if not options.only and not options.rows:
        LATEST.write_bytes(
            msgspec.json.format(msgspec.json.encode({"python": platform.python_version(), "figures": figures}))
        )


def _start(stack: ExitStack, only: list[str] | None) -> list[Running]:
    direct = stack.enter_context(servers.provider())
    running = [direct]
    for name, start in _STARTS.items():
        if only and name not in only:
            continue
        if name == "litellm proxy" and not servers.PEER.exists():
            print(f"no {servers.PEER}: the peer is left out")
            continue
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="thinkback-bench-")))
        try:
            running.append(stack.enter_context(start(direct.port, place)))
        except RuntimeError as error:
            print(f"{name} is left out: {error}")
    for server in running:  # warm
        _run(client.saturate(server.port, 4, 0.5, lambda number: bodies.request((1 << 62) + number)))
    return running


def calls(bench: Bench) -> list[Figure]:
    """Small calls without a stream, as many as go through."""
    figures: list[Figure] = []
    loads: dict[str, list[Load]] = {}
    for connections in CONNECTIONS:
        loads = bench.loads(lambda port, c=connections: client.saturate(port, c, bench.seconds, bench.body()))
        at = f"{connections} connection{'s' if connections > 1 else ''}"
        rates = _medians(loads, lambda load: load.rate)
        figure = Figure(f"requests/s, {at}", "1/s", rates)
        if connections == max(CONNECTIONS):
            _judge(figure, bare=0.5, peer=25.0)
        figures.append(figure)
        for name, of in (("p50", lambda load: load.p50), ("p99", lambda load: load.p99)):
            figures.append(Figure(f"{name} ms, {at}", "ms", _medians(loads, of)))
    figures.append(Figure("CPU us a request", "us", _medians(loads, lambda load: load.cpu / load.responses * 1e6)))
    return figures


def paced(bench: Bench) -> list[Figure]:
    """Small calls at half of what the gateway can do, and what it adds to the provider's own time."""
    loads = bench.loads(lambda port: client.saturate(port, 64, bench.seconds, bench.body()), "gateway")
    if not loads:
        return []
    rate = _medians(loads, lambda load: load.rate)["gateway"] / 2
    names = ("direct", "bare proxy", "gateway")
    told = bench.loads(lambda port: client.paced(port, rate, bench.seconds, bench.body()), *names)
    figures = []
    for name, of, most in (("p50", lambda load: load.p50, 1.5), ("p99", lambda load: load.p99, 8.0)):
        values = _medians(told, of)
        added = {server: value - values["direct"] for server, value in values.items() if server != "direct"}
        figure = Figure(f"added {name} ms at {rate:.0f}/s, paced", "ms", added, f"<= {most} ms")
        figure.met = added["gateway"] <= most
        figures.append(figure)
    return figures


def streams(bench: Bench) -> list[Figure]:
    """Streams of 495 chunks, 16 at once, as fast as they go."""
    loads = bench.loads(lambda port: client.saturate(port, STREAMS, bench.seconds, bench.body(stream=True)))
    figure = Figure(f"chunks/s, {STREAMS} streams", "1/s", _medians(loads, lambda load: load.events / load.seconds))
    used = Figure("CPU us a chunk", "us", _medians(loads, lambda load: load.cpu / load.events * 1e6))
    return [_judge(figure, bare=0.3, peer=50.0), used]


def memory(bench: Bench) -> list[Figure]:
    """What a stream costs that is open."""
    values: dict[str, float] = {}
    for server in bench.running[1:]:
        if server.name == "litellm proxy":
            continue
        before = server.memory()
        began, after = _run(client.held(server.port, OPEN, server.memory))
        if began == OPEN:
            values[server.name] = (after - before) / OPEN / 1000
        time.sleep(1.0)
    figure = Figure(f"KB a stream, {OPEN} open", "KB", values, "<= 100 KB")
    figure.met = values["gateway"] <= 100 if "gateway" in values else None
    return [figure]


def start(bench: Bench) -> list[Figure]:
    """What a process costs that has answered no more than whether it is ready, and what is installed for it."""
    wall: dict[str, list[float]] = {}
    used: dict[str, list[float]] = {}
    held: dict[str, list[float]] = {}
    names = [server.name for server in bench.running if server.name in ("gateway", "litellm proxy")]
    for _ in range(bench.rounds):
        for name in names:
            with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as place:
                began = time.perf_counter()
                with _STARTS[name](bench.running[0].port, Path(place)) as server:
                    wall.setdefault(name, []).append(time.perf_counter() - began)
                    used.setdefault(name, []).append(server.cpu())
                    held.setdefault(name, []).append(server.memory() / 1e6)
    rows = (("s from start to ready", "s", wall), ("CPU s of that", "s", used), ("MB when ready", "MB", held))
    figures = [Figure(row, unit, {name: median(each) for name, each in of.items()}) for row, unit, of in rows]
    counts = {name: _installed(name) for name in names}
    figures.append(Figure("MB installed, without byte code", "MB", {name: size for name, (size, _) in counts.items()}))
    figures.append(Figure("packages installed", "", {name: float(count) for name, (_, count) in counts.items()}))
    return figures


def _installed(name: str) -> tuple[float, int]:
    """Megabytes and packages, of an environment's own interpreter."""
    python, wanted = {
        "gateway": (sys.executable, "thinkback[gateway]"),
        "litellm proxy": (str(servers.PEER.with_name("python")), "litellm[proxy]"),
    }[name]
    done = subprocess.run([python, str(_INSTALLED), wanted], capture_output=True, text=True, check=True)
    size, count = done.stdout.split()
    return int(size) / 1e6, int(count)


def growth(bench: Bench) -> list[Figure]:
    """One more turn of a conversation that is known already, as it grows."""
    figures: list[Figure] = []
    per_byte: dict[int, float] = {}
    for length in LENGTHS:
        values: dict[str, float] = {}
        for server in bench.running:
            if server.name == "litellm proxy" and length > 1000:
                continue
            values[server.name], size = _grown(server.port, next(bench.numbers), length)
            if server.name == "gateway":
                per_byte[length] = values["gateway"] / size
        figures.append(Figure(f"ms a request, {length} messages", "ms", values))
    if per_byte:
        worst = max(per_byte[length] for length in LENGTHS[1:]) / per_byte[LENGTHS[0]]
        figures[-1].aim = "no worse than the bytes"
        figures[-1].met = worst <= 1.0
    return figures


def _grown(port: int, number: int, length: int) -> tuple[float, int]:
    """Milliseconds of a request (median of 7) with about ``length`` messages, all but the last known; and its bytes."""
    history = bodies.conversation(number, length)

    async def one(messages: list[dict[str, object]]) -> tuple[float, int, bytes]:
        body = bodies.encoded({"model": bodies.MODEL, "messages": messages, "stream": False})
        took, status, answer = await client.one(port, body)
        if status != 200:
            raise RuntimeError(f"{status}: {answer[:300]!r}")
        return took, len(body), answer

    async def grow() -> tuple[float, int]:
        times, size = [], 0
        for turn in range(8):
            took, size, answer = await one(history)
            said = msgspec.json.decode(answer)["choices"][0]["message"]["content"]
            history.append({"role": "assistant", "content": said})
            history.append({"role": "user", "content": f"{number:x}/more/{turn}"})
            times.append(took * 1e3)
        return median(times[1:]), size

    grown: tuple[float, int] = _run(grow())
    return grown


def _medians(loads: dict[str, list[Load]], of: Any) -> dict[str, float]:
    return {name: median(of(load) for load in samples) for name, samples in loads.items()}


def _judge(figure: Figure, *, bare: float, peer: float) -> Figure:
    """A rate against those of the bare proxy and of the peer."""
    values = figure.values
    if "gateway" not in values:
        return figure
    told, met = [], True
    for name, least in (("bare proxy", bare), ("litellm proxy", peer)):
        if values.get(name):
            ratio = values["gateway"] / values[name]
            told.append(f"{ratio:.2f}x of {name} (>= {least}x)")
            met = met and ratio >= least
    figure.aim, figure.met = ", ".join(told), met if told else None
    return figure


def _print(figure: Figure) -> None:
    shown = [f"{figure.values[name]:,.2f}" if name in figure.values else "-" for name in _NAMES]
    verdict = "" if figure.met is None else "met " if figure.met else "short "
    print(_ROW.format(figure.name, *shown, verdict + figure.aim), flush=True)


def _run(work: Any) -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


_GROUPS = {"start": start, "calls": calls, "paced": paced, "streams": streams, "memory": memory, "growth": growth}

if __name__ == "__main__":
    main()
