"""Make a log of very many short sessions, and measure what its lists cost: ``python bench/large_log.py LOG 100000``.

``LOG`` is a file, or an address of PostgreSQL; sessions that are there already stay, and more are added up to the
number. Then each command runs in a process of its own; printed are processor time and memory over those of a start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import thinkback
from thinkback.log.protocol import About, AppendRequest
from thinkback.log.seal import seal
from thinkback.model.blocks import Origin, Text, ThinkingBlock
from thinkback.model.commits import Draft, Head, Message, Response, Step, Usage, block_draft
from thinkback.session.store import SessionStore

BATCH = 500
DAY = 86_400_000_000
BEGAN = 1_700_000_000_000_000
ORIGIN = Origin("openai-chat", "https://api.deepseek.com/v1", "deepseek-v4", "deepseek-v4")


def entry(number: int) -> AppendRequest:
    """A session of one turn; a tenth of them were begun before the second day, and so on."""
    name, at = f"session-{number:07}", BEGAN + number * DAY // 10_000
    drafts = [
        Draft("user", Message(f"Question {number}: why is the sky of day {number % 97} blue?")),
        Draft("response", Response(ORIGIN, blocks=2), name),
        block_draft(ThinkingBlock(f"Rayleigh scattering, case {number}."), name, 0),
        block_draft(Text(f"It scatters {number} times."), name, 1),
        Draft("provider_usage", Usage(120, 40, 30), name),
    ]
    commits = seal(Step(name, tuple(drafts), at), Head())
    about = About(("codex", "claude-code", "thinkback")[number % 3], f"project-{number % 40}")
    return AppendRequest(name, name, at, name, commits, Head(), about=about)


def fill(store: SessionStore, wanted: int) -> None:
    """Bring the log to ``wanted`` sessions."""
    recognition = store.log.recognition
    began, there = time.monotonic(), store.log.count() // 5
    for first in range(there, wanted, BATCH):
        entries = [entry(number) for number in range(first, min(first + BATCH, wanted))]
        record_all = getattr(recognition, "record_all", None)
        if record_all is not None:
            record_all(entries)
        else:
            for each in entries:
                recognition.record(each)
    print(f"{wanted - there:,} sessions made in {time.monotonic() - began:.0f} s")
    while store.log.search.fill(20_000):
        pass
    print(f"indexed after {time.monotonic() - began:.0f} s")


VIEWER = """
import sys, thinkback
from starlette.testclient import TestClient
from thinkback.servers.viewer.app import application
store = thinkback.open(sys.argv[1])
client = TestClient(application(store), base_url="http://127.0.0.1:8000")
if len(sys.argv) > 2:
    assert "session-" in client.get(sys.argv[2]).text
"""


def cost(*command: str) -> tuple[float, float]:
    """Seconds of processor time and megabytes of a command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Make it and measure."""
    log, wanted = sys.argv[1], int(sys.argv[2])
    with thinkback.open(log, durability="normal") as store:
        fill(store, wanted)
    cli = (sys.executable, "-m", "thinkback")
    start = min(cost(*cli, "--version") for _ in range(3))
    page = (sys.executable, "-c", VIEWER, log)
    empty = min(cost(*page) for _ in range(3))
    for what, base, command in (
        ("sessions", start, (*cli, "sessions", "--db", log)),
        ("sessions -n 3", start, (*cli, "sessions", "-n", "3", "--db", log)),
        ("log NAME", start, (*cli, "log", "session-0000042", "--db", log)),
        ("search -n 20", start, (*cli, "search", "-n", "20", "scatters", "--db", log)),
        ("search --project", start, (*cli, "search", "-n", "20", "scatters", "--project", "project-7", "--db", log)),
        ("the viewer's first page", empty, (*page, "/")),
    ):
        seconds, size = min(cost(*command) for _ in range(3))
        print(f"{what:24} {seconds - base[0]:6.2f} s {size - base[1]:6.0f} MB over the start")


if __name__ == "__main__":
    main()
