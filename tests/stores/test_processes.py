"""Several processes on one file, and processes that are killed while they write."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.stores.samples import response_step
from thinkback.log.protocol import Store
from thinkback.model.commits import Commit
from thinkback.stores import open_store

BLOCKS = 4  # commits of one step of the writer


def _writer(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.stores.writer", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_two_writers_and_readers_lose_nothing(log: Path) -> None:
    """Two processes append to one session and to their own while threads read: all of it is there, in one chain."""
    count = 40
    store = open_store(log)
    store.create_session("shared", "shared", 1)
    jobs = [("shared", "a"), ("shared", "b"), ("own", "c")]
    writers = [_writer(log, session, name, count) for session, name in jobs]
    done = threading.Event()
    torn: list[str] = []
    readers = [threading.Thread(target=_read_until, args=(store, done, torn)) for _ in range(2)]
    for reader in readers:
        reader.start()
    printed = [writer.communicate(timeout=60)[0].split() for writer in writers]
    done.set()
    for reader in readers:
        reader.join()
    assert [0, 0, 0] == [writer.returncode for writer in writers]
    assert [[f"{name}-{n}" for n in range(count)] for _, name in jobs] == printed
    assert [] == torn
    assert sorted(printed[0] + printed[1]) == sorted(_steps(store.read("shared")))
    assert printed[2] == _steps(store.read("own"))
    assert [] == list(store.fsck())
    store.close()


def test_importing_the_stores_loads_no_database() -> None:
    """``thinkback.stores`` and a log in memory do without sqlite3; only a file needs it."""
    code = (
        "import sys; from thinkback.stores import open_store; open_store(':memory:').close(); "
        "print(sorted({'sqlite3', 'asyncio', 'ssl', 'zlib'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-S", "-c", code]
    assert b"[]\n" == subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True).stdout


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_killed_writer_leaves_whole_steps(log: Path, durability: str) -> None:
    """kill -9 at a random point, again and again: no torn response, and everything acknowledged is there."""
    _kill_again_and_again(log, durability, times=8, seed=random.randrange(2**32))


@pytest.mark.soak
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_killed_writer_leaves_whole_steps_for_long(log: Path, durability: str) -> None:
    """The same, two hundred times."""
    _kill_again_and_again(log, durability, times=200, seed=random.randrange(2**32))


def _kill_again_and_again(log: Path, durability: str, times: int, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    acknowledged: list[str] = []
    for life in range(times):
        writer = _writer(log, "s", f"life{life}", 10**9, durability)
        assert writer.stdout is not None
        for _ in range(chance.randint(1, 40)):
            acknowledged.append(writer.stdout.readline().strip())
        _spin(chance.uniform(0, 0.002))
        writer.kill()
        acknowledged += writer.stdout.read().split()
        writer.wait()
        writer.stdout.close()
        store = open_store(log)
        stored = _steps(store.read("s"))
        assert [] == list(store.fsck()), f"seed {seed}, life {life}"
        assert acknowledged == [step for step in stored if step in set(acknowledged)], f"seed {seed}, life {life}"
        assert len(stored) - len(acknowledged) <= life + 1, f"seed {seed}, life {life}"
        store.close()


def _read_until(store: Store, done: threading.Event, torn: list[str]) -> None:
    """Read over and over; every answer is whole steps and begins with the answer before."""
    before: list[Commit] = []
    while not done.is_set():
        now = store.read("shared")
        if now[: len(before)] != before:
            torn.append("history changed")
        if len(now) % BLOCKS:
            torn.append(f"{len(now)} commits")
        before = now


def _steps(commits: list[Commit]) -> list[str]:
    """The ids of the writer's steps that these commits are, each whole."""
    starts = commits[::BLOCKS]
    for start, *rest in zip(*(commits[n::BLOCKS] for n in range(BLOCKS)), strict=True):
        assert [start.response] * (BLOCKS - 1) == [commit.response for commit in rest]
    prefix = response_step("").drafts[0].response
    return [start.response.removeprefix(prefix) for start in starts]


def _spin(seconds: float) -> None:
    """Let the writer get on for a moment too short for a sleep."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
