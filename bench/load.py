"""``python -m bench.load``: many sessions at once in one process, against the referee in another, on its own core.

Each session asks questions that take tools, ten turns long, then gives way to a new one; all share one log. What the
referee sent whole must be in the log, request by request (by the digest of what was sent); what the process holds must
not grow, and the event loop must not stand still. ``--seconds`` and ``--sessions`` make it shorter, for a look.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import NamedTuple

import thinkback
from thinkback.errors import ThinkbackError
from thinkback.model.commits import Commit, Request, Response
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Exchange, Referee
from thinkback_referee.bedrock import API_KEY

SECONDS, SESSIONS, TURNS = 120, 64, 10
# Between two events of a stream, in seconds: a model that is fast, and 64 of them at once.
PACE = 0.02
GROWTH, USUAL_LAG, WORST_LAG = 0.05, 0.050, 0.250
_TICK, _LOOK = 0.005, 5.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ROW = "{:<34} {:>14}  {:<5} {}"
CITIES = ("Oslo", "Rome", "Bern", "Bonn", "Graz", "Lyon", "Turku")


class Place(NamedTuple):
    """A host of the referee's and one of its models; the keys are nobody's."""

    endpoint: str
    host: str
    model: str
    key: str = "sk-load-0123456789abcdef"


PLACES = (
    Place("deepseek", "deepseek", "deepseek-v4-pro"),
    Place("openai", "openai", "gpt-5.4"),
    Place("anthropic", "anthropic", "claude-opus-5-5"),
    Place("gemini", "gemini", "gemini-3-pro"),
    Place("gemini-interactions", "gemini-interactions", "gemini-3-pro"),
    Place("bedrock", "bedrock", "us.anthropic.claude-sonnet-4-5-v1:0", API_KEY),
    Place("mistral", "mistral", "magistral-medium-latest"),
    Place("ollama-native", "ollama", "gpt-oss:20b"),
    Place("cohere", "cohere", "command-a-reasoning-08-2025"),
)


class Load(NamedTuple):
    """What came of it. ``sent`` and ``stored`` count responses by the digest of their request; ``held`` is resident
    memory in bytes, without what is free in the heap, with the second it was looked at, ``lags`` how late the event
    loop came, in seconds.
    """

    seconds: float
    turns: int
    failures: list[str]
    refused: list[str]
    sent: Counter[str]
    stored: Counter[str]
    held: list[tuple[float, int]]
    lags: list[float]

    @property
    def lost(self) -> int:
        """Responses that the referee sent whole and that are not in the log."""
        return sum((self.sent - self.stored).values())

    @property
    def growth(self) -> float:
        """How much more memory the process held in the second half than in the first, at most."""
        first = [size for at, size in self.held if at < self.seconds / 2]
        second = [size for at, size in self.held if at >= self.seconds / 2]
        return max(second) / max(first) - 1

    def lag(self, share: float) -> float:
        """The lag that this share of all is not above."""
        return sorted(self.lags)[min(int(len(self.lags) * share), len(self.lags) - 1)]


def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 7 degrees, rain"


def clock(city: str) -> str:
    """The time in a city."""
    return f"{city}: noon"


async def run(seconds: float, sessions: int, bases: Mapping[str, str], place: Path) -> Load:
    """``sessions`` at once until time is up; each ends the turn that it is in.

    The clock runs once every host was asked one thing, so that what is loaded when first needed is.
    """
    load = Load(seconds, 0, [], [], Counter(), Counter(), [], [])
    with thinkback.open(place, rules={}, settings={}) as store:
        for at, first in enumerate(PLACES):
            await _ask(_open(store, bases, f"first {at}", first), "What is the weather?", first, load.failures)
        began = time.monotonic()
        watch = asyncio.create_task(_watch(load))
        look = asyncio.create_task(_look(load, began))
        workers = [_work(store, bases, number, began + seconds, load.failures) for number in range(sessions)]
        turns = sum(await asyncio.gather(*workers))
        load.held.append((seconds, resident()))
        for task in (watch, look):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    return load._replace(turns=turns)


async def _work(store: SessionStore, bases: Mapping[str, str], number: int, until: float, failures: list[str]) -> int:
    """Session after session, the first of them shorter by its number, so that not all end at once; counts turns."""
    done, shorter = 0, number % TURNS
    while time.monotonic() < until:
        place = PLACES[(number + done) % len(PLACES)]
        # Opening and setting write to the log in the thread that calls; an event loop had better not.
        session = await asyncio.to_thread(_open, store, bases, f"{number}-{done}", place)
        for turn in range(shorter, TURNS):
            if time.monotonic() >= until:
                break
            asked = f"{number}-{done}: what are both the weather and the time in {CITIES[turn % len(CITIES)]}?"
            await _ask(session, asked, place, failures)
            done += 1
        shorter = 0
    return done


def _open(store: SessionStore, bases: Mapping[str, str], name: str, place: Place) -> Session:
    base = bases[place.host]
    session = store.session(name, endpoint=place.endpoint, model=place.model, base_url=base, api_key=place.key)
    session.set("reasoning.effort", "high")
    return session


async def _ask(session: Session, asked: str, place: Place, failures: list[str]) -> None:
    try:
        await session.aio.chat(asked, tools=[weather, clock])
    except ThinkbackError as error:
        failures.append(f"{place.host}: {type(error).__name__}: {error.message[:200]}")


async def _watch(load: Load) -> None:
    """How late the event loop is each time."""
    while True:
        wanted = time.monotonic() + _TICK
        await asyncio.sleep(_TICK)
        load.lags.append(time.monotonic() - wanted)


async def _look(load: Load, began: float) -> None:
    """Memory now and then; glibc keeps what is free, and pieces of streams leave it in many small holes."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    while True:
        if trim is not None:
            await asyncio.to_thread(trim, 0)
        load.held.append((time.monotonic() - began, resident()))
        await asyncio.sleep(_LOOK)


def resident() -> int:
    """Resident memory of this process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * _PAGE


def stored(place: Path) -> Counter[str]:
    """The digests of the requests in a log whose responses are there and complete."""
    found: Counter[str] = Counter()
    with thinkback.open(place, rules={}, settings={}) as store:
        for info in store.sessions():
            found.update(_answered(store.session(info.name).log()))
    return found


def _answered(commits: Sequence[Commit]) -> Iterator[str]:
    whole = {commit.response for commit in commits if isinstance(commit.value, Response) and commit.value.complete}
    for commit in commits:
        if isinstance(commit.value, Request) and commit.response in whole:
            yield commit.value.sent_digest


def judge(pace: float) -> None:
    """The referee's process: prints the address, serves until its input ends, and prints what it saw."""
    sent: Counter[str] = Counter()
    refused: list[str] = []

    def note(exchange: Exchange) -> None:
        if exchange.status == 200:
            sent[sha256(exchange.raw).hexdigest()] += 1
        else:
            refused.append(f"{exchange.host}: {exchange.verdict.reason}")

    with Referee(report=note, pace=pace) as referee:
        bases = {place.host: referee.base_url(place.host) for place in PLACES}
        print(json.dumps(bases), flush=True)
        sys.stdin.read()
    print(json.dumps({"sent": sent, "refused": refused}), flush=True)


def measure(seconds: float, sessions: int, pace: float = PACE) -> Load:
    """Both processes, each on a core of its own where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with tempfile.TemporaryDirectory(prefix="thinkback-load-") as directory:
        place = Path(directory) / "log.db"
        with subprocess.Popen(
            [sys.executable, "-m", "bench.load", "--referee", "--pace", str(pace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            os.sched_setaffinity(process.pid, {cores[-1]})
            os.sched_setaffinity(0, {cores[0]})
            try:
                bases = json.loads(process.stdout.readline())
                load = asyncio.run(run(seconds, sessions, bases, place))
            finally:
                os.sched_setaffinity(0, set(cores))
                process.stdin.close()
            seen = json.loads(process.stdout.readline())
        return load._replace(sent=Counter(seen["sent"]), refused=seen["refused"], stored=stored(place))


def table(load: Load) -> list[tuple[str, str, bool | None, str]]:
    """The figures: name, value, whether the aim is met, the aim."""
    responses = sum(load.sent.values())
    middle = median(size for _, size in load.held) / 2**20
    return [
        ("turns", f"{load.turns:,}", None, ""),
        ("responses sent whole", f"{responses:,}", None, f"{responses / load.seconds:.0f} a second"),
        ("failed turns", f"{len(load.failures)}", not load.failures, "none"),
        ("requests refused", f"{len(load.refused)}", not load.refused, "none"),
        ("responses lost", f"{load.lost}", load.lost == 0, "none"),
        ("memory", f"{middle:.0f} MB", None, "in the middle"),
        ("growth, second half over first", f"{load.growth:+.1%}", load.growth <= GROWTH, f"at most {GROWTH:.0%}"),
        ("lag of the event loop, p50", f"{load.lag(0.5) * 1e3:.1f} ms", None, ""),
        ("lag, p99.9", f"{load.lag(0.999) * 1e3:.0f} ms", load.lag(0.999) <= USUAL_LAG, f"<= {USUAL_LAG * 1e3:.0f} ms"),
        ("lag, most", f"{max(load.lags) * 1e3:.0f} ms", max(load.lags) <= WORST_LAG, f"<= {WORST_LAG * 1e3:.0f} ms"),
    ]


def main() -> int:
    """Print the table; 1 where something was lost or refused."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description="Many sessions at once in one process.")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--pace", type=float, default=PACE, help="seconds between two events of a stream")
    parser.add_argument("--referee", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.referee:
        judge(options.pace)
        return 0
    busy = os.getloadavg()[0]
    print(f"CPython {platform.python_version()}, {os.cpu_count()} CPUs, load before {busy:.1f}")
    rate = f"{1 / options.pace:.0f} events a second each" if options.pace else "as fast as it goes"
    print(f"{options.sessions} sessions at once, {options.seconds:.0f} s, {rate}, the referee on a core of its own\n")
    load = measure(options.seconds, options.sessions, options.pace)
    for name, value, met, aim in table(load):
        print(_ROW.format(name, value, {True: "met", False: "short", None: ""}[met], aim).rstrip())
    for text, count in Counter([*load.failures, *load.refused]).most_common(5):
        print(f"    {count} x {text}")
    return int(bool(load.failures or load.refused or load.lost))


if __name__ == "__main__":
    sys.exit(main())
