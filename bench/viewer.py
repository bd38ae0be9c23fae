"""The viewer beside Inspect View, and what a log of 100,000 sessions costs.

Both are served as their commands serve them, in processes of their own, and looked at in the same browser, each page
with nothing in its cache until the text that was asked for is visible. Inspect View, the browser's driver and what is
done with them (``bench.viewer_peer``) are in an environment of their own, which ``make bench`` makes; without it, or
without chromium, there is nothing to compare with, and the figures say so. ``python -m bench --only viewer``.
"""

from __future__ import annotations

import atexit
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, sleep
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from bench.measure import Figure, Group
from bench.viewer_peer import answer, question, thought
from thinkback.log.protocol import About, Store
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Origin, Text, ThinkingBlock
from thinkback.model.commits import Draft, Head, Message, Response, Step, TurnEnded, Usage, block_draft
from thinkback.stores import open_store

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-view" / "bin" / "python"
CHROMIUM = Path("/usr/bin/chromium")
STEPS, SESSIONS, MANY = 10_000, 1_000, 100_000
PROGRAMS, PROJECTS = ("", "codex", "claude-code", "pi"), 25
_PER_APPEND = 200
_DAY = 86_400_000_000
_TICKS = os.sysconf("SC_CLK_TCK")
_closing = ExitStack()
atexit.register(_closing.close)


class Served(NamedTuple):
    """A viewer that answers: where, its process, seconds from its start to the first answer, of them processor time."""

    link: str
    pid: int
    wall: float
    processor: float


class Look(NamedTuple):
    """A page: seconds until its text is visible, bytes that came for it, seconds of processor time of the server."""

    wall: float
    size: int
    processor: float


def turns(first: int, last: int) -> Iterator[Draft]:
    """Turns of a question, a thought and an answer."""
    origin = Origin("openai-chat", "https://long.test/v1", "reasoner")
    for turn in range(first, last):
        id = f"r{turn}"
        yield Draft("user", Message(question(turn)))
        yield Draft("response", Response(origin, id=id, finish="stop", blocks=2, outcome="answered"), id)
        yield block_draft(ThinkingBlock(thought(turn)), id, 0)
        yield block_draft(Text(answer(turn)), id, 1)
        yield Draft("provider_usage", Usage(100, 60, 40), id)
        yield Draft("turn_ended", TurnEnded("completed"))


def add(store: Store, name: str, first: int, last: int, time: int, about: About | None = None) -> None:
    """A session with the turns ``first`` to ``last``."""
    store.create_session(name, name, time, about=about or About())
    head = Head()
    for at in range(first, last, _PER_APPEND):
        drafts = tuple(turns(at, min(at + _PER_APPEND, last)))
        commits = seal(Step(f"{name} {at}", drafts, time), head)
        store.append(name, f"{name} {at}", commits, head)
        head = head_of(commits)


def small(path: Path, steps: int, sessions: int) -> None:
    """A long conversation and so many short ones."""
    store = open_store(path, "normal")
    for number in range(sessions):
        add(store, f"session-{number}", number, number + 1, 1_000_000 + number)
    add(store, "long", 0, steps, 1)
    store.close()


@cache
def large(sessions: int) -> Path:
    """So many sessions of four programs in 25 projects, a day for each hundred, with the index of words."""
    path = Path(_closing.enter_context(tempfile.TemporaryDirectory(prefix="thinkback-bench-"))) / "log.db"
    store = open_store(path, "normal")
    for number in range(sessions):
        about = About(PROGRAMS[number % len(PROGRAMS)], f"project-{number % PROJECTS}")
        add(store, f"session-{number}", number, number + 1, number // 100 * _DAY + number, about)
    while store.search.fill():
        pass
    store.close()
    return path


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _processor(pid: int) -> float:
    """Seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _get(url: str, cookie: str = "") -> tuple[int, str, bytes]:
    """Status, the cookie that was set, and the body."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=120)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}", headers={"cookie": cookie} if cookie else {})
        response = connection.getresponse()
        return response.status, (response.getheader("set-cookie") or "").partition(";")[0], response.read()
    finally:
        connection.close()


def ours(log: Path, closing: ExitStack) -> Served:
    """``thinkback view``."""
    command = [sys.executable, "-m", "thinkback", "view", "--no-browser", "--db", str(log)]
    begun = perf_counter()
    process = closing.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
    closing.callback(process.terminate)
    assert process.stdout is not None
    link = process.stdout.readline().decode().strip()
    assert _get(link.partition("?")[0])[0] < 500
    return Served(link, process.pid, perf_counter() - begun, _processor(process.pid))


def inspects(logs: Path, closing: ExitStack) -> Served:
    """``inspect view``."""
    url = f"http://127.0.0.1:{(port := _port())}/"
    command = [str(PYTHON.parent / "inspect"), "view", "--log-dir", str(logs), "--port", str(port)]
    begun = perf_counter()
    process = closing.enter_context(
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=logs)
    )
    closing.callback(process.terminate)
    while True:
        try:
            assert _get(url)[0] == 200
        except ConnectionError:
            assert process.poll() is None, "Inspect View does not start"
            sleep(0.005)
        else:
            return Served(url, process.pid, perf_counter() - begun, _processor(process.pid))


class Browser:
    """Chromium, driven in the peer's environment."""

    def __init__(self, closing: ExitStack) -> None:
        command = [str(PYTHON), str(ROOT / "bench" / "viewer_peer.py"), "look", str(CHROMIUM)]
        process = closing.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert process.stdin is not None
        assert process.stdout is not None
        closing.callback(process.stdin.close)
        self._asked: IO[str] = process.stdin
        self._told: IO[str] = process.stdout

    def ask(self, **wanted: str) -> dict[str, Any]:
        """What the driver says of one page."""
        print(json.dumps(wanted), file=self._asked, flush=True)
        found: dict[str, Any] = json.loads(self._told.readline())
        return found


@cache
def looks(quick: bool) -> tuple[dict[str, list[Served]], dict[tuple[str, str], list[Look]]]:
    """Starts by viewer, and looks by viewer and page, taking turns."""
    steps, sessions, rounds = (1_000, 100, 3) if quick else (STEPS, SESSIONS, 9)
    starts: dict[str, list[Served]] = {"thinkback": [], "inspect": []}
    seen: dict[tuple[str, str], list[Look]] = {}
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as place:
        log, logs = Path(place) / "log.db", Path(place) / "logs"
        logs.mkdir()
        small(log, steps, sessions)
        command = [str(PYTHON), str(ROOT / "bench" / "viewer_peer.py"), "write", str(logs), str(steps), str(sessions)]
        subprocess.run(command, check=True)
        for _ in range(rounds // 2):
            for name, serve in (("thinkback", partial(ours, log)), ("inspect", partial(inspects, logs))):
                with ExitStack() as closing:
                    starts[name].append(serve(closing))
        with ExitStack() as closing:
            served = {"thinkback": ours(log, closing), "inspect": inspects(logs, closing)}
            browser = Browser(closing)
            browser.ask(name="thinkback", link=served["thinkback"].link)
            home = served["thinkback"].link.partition("?")[0]
            pages = {
                ("thinkback", "list"): (home, question(sessions - 1)),
                ("inspect", "list"): (served["inspect"].link, "session-"),
                ("thinkback", "conversation"): (f"{home}session/long?at=0", question(0)),
                ("inspect", "conversation"): (
                    f"{served['inspect'].link}#/logs/long.eval/samples/sample/1/1/messages",
                    question(0),
                ),
            }
            for at in range(-1, rounds):
                for (name, page), (url, text) in pages.items():
                    before = _processor(served[name].pid)
                    told = browser.ask(name=name, url=url, text=text)
                    used = _processor(served[name].pid) - before
                    if at >= 0:
                        seen.setdefault((name, page), []).append(Look(told["seconds"], told["bytes"], used))
    return starts, seen


def _missing() -> str:
    """Why nothing can be compared here."""
    if not PYTHON.exists():
        return "skipped: no environment of the peer; make bench makes it"
    return "" if CHROMIUM.exists() else f"skipped: {CHROMIUM} is not there"


def _beside(what: str, part: str, quick: bool) -> Figure:
    """``part`` of a page or of a start: of thinkback, with Inspect View's over it."""
    unit, scale = {"size": ("KB", 1e-3), "wall": ("ms", 1e3), "processor": ("ms CPU", 1e3)}[part]
    name = f"viewer.{what}.{part}"
    if missing := _missing():
        return Figure(name, None, unit, note=missing)
    starts, seen = looks(quick)
    given: dict[str, Sequence[Served | Look]] = {
        each: starts[each] if what == "start" else seen[each, what] for each in ("thinkback", "inspect")
    }
    mine, other = ([getattr(one, part) for one in given[each]] for each in ("thinkback", "inspect"))
    ratio = median(other) / max(median(mine), 1 / _TICKS if part == "processor" else 1e-9)
    note = f"Inspect View {median(other) * scale:.0f} {unit}"
    return Figure(name, median(mine) * scale, unit, peers={"inspect view": ratio}, note=note)


def _many(what: str, quick: bool) -> Figure:
    """The 95th percentile of answers over a log of many sessions, and of the processor time that they take."""
    sessions, rounds = (MANY // 10, 20) if quick else (MANY, 40)
    typed = "square parts by"
    ways: dict[str, Callable[[int], str]] = {
        "list": lambda at: "",
        "next": lambda at: f"?page={at + 2}",
        "facet": lambda at: f"?program={PROGRAMS[1 + at % 3]}&project=project-{at % PROJECTS}",
        "typed": lambda at: f"?part=1&q={typed[: 1 + at % len(typed)].replace(' ', '+')}",
    }
    walls: list[float] = []
    used: list[float] = []
    with ExitStack() as closing:
        served = ours(large(sessions), closing)
        home = served.link.partition("?")[0]
        _, cookie, _ = _get(served.link)
        for at in range(-1, rounds):  # the first one reads the list
            before, begun = _processor(served.pid), perf_counter()
            status, _, _ = _get(home + ways[what](max(at, 0)), cookie)
            assert status == 200
            if at >= 0:
                walls.append((perf_counter() - begun) * 1e3)
                used.append((_processor(served.pid) - before) * 1e3)
    slow = quantiles(used, n=20, method="inclusive")[-1]
    note = f"{sessions:,} sessions, p95; median {median(walls):.0f} ms; processor time p95 {slow:.0f} ms"
    return Figure(f"viewer.many.{what}", quantiles(walls, n=20, method="inclusive")[-1], "ms", note=note)


GROUP = Group(
    "viewer",
    (
        partial(_beside, "start", "wall"),
        partial(_beside, "start", "processor"),
        *(partial(_beside, page, part) for page in ("list", "conversation") for part in ("wall", "processor", "size")),
        *(partial(_many, what) for what in ("list", "next", "facet", "typed")),
    ),
)
