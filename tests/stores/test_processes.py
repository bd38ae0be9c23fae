"""Several processes on one log, and processes and servers that are killed while they write."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
import time

import psycopg
import pytest

from tests.effort import Effort
from tests.stores.life import DIGESTS, SCOPE, Change, change, collect, looks, recorded
from tests.stores.postgres_server import Server
from tests.stores.samples import put, response_step, user_step
from thinkback.log.protocol import MAIN, Origin, Store
from thinkback.log.seal import head_of
from thinkback.model.commits import Commit, Head
from thinkback.stores import SERVER, open_store

BLOCKS = 4  # commits of one step of the writer


def _process(module: str, *arguments: object, stderr: int | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"tests.stores.{module}", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment)


@pytest.mark.parametrize(("writers", "count"), [(2, 10), pytest.param(16, 60, marks=pytest.mark.soak), (6, 4)])
def test_writers_and_readers_lose_nothing(place: str, writers: int, count: int) -> None:
    """Processes append to one branch, to branches of one session and to forks of it, while threads read and follow.

    Every commit is there once, each writer's in its order, in one chain a branch.
    """
    store = open_store(place)
    store.create_session("shared", "shared", 1)
    trunk = put(store, "shared", user_step("trunk"))
    jobs: list[tuple[str, str, str]] = []
    for number in range(writers):
        branch, fork = f"branch {number // 2}", f"fork {number}"
        if number % 2 == 0:
            store.refs.create("shared", branch, head_of(trunk), MAIN)
        store.create_session(fork, fork, 1, Origin("shared", at=head_of(trunk)))
        jobs += [("shared", MAIN, f"all {number}"), ("shared", branch, f"two {number}"), (fork, MAIN, f"own {number}")]
    work = [[part for job in jobs[at : at + 3] for part in job] for at in range(0, len(jobs), 3)]
    processes = [_process("writer", place, count, *arguments) for arguments in work]
    done = threading.Event()
    torn: list[str] = []
    followed: list[Commit] = []
    readers = [threading.Thread(target=_read_until, args=(store, done, torn)) for _ in range(2)]
    readers.append(threading.Thread(target=_follow_until, args=(store, done, followed)))
    for reader in readers:
        reader.start()
    printed = [line for process in processes for line in process.communicate(timeout=300)[0].splitlines()]
    done.set()
    for reader in readers:
        reader.join()
    assert [0] * writers == [process.returncode for process in processes]
    assert [] == torn
    assert store.read("shared") == followed
    assert [] == list(store.fsck())
    stored: list[str] = []
    for session, branch in sorted({(session, branch) for session, branch, _ in jobs}):
        commits = store.read(session, branch=branch)
        assert trunk == commits[:1]
        steps = _steps(commits[1:])
        for _, _, name in [job for job in jobs if job[:2] == (session, branch)]:
            assert [f"{name}-{n}" for n in range(count)] == [step for step in steps if step.startswith(f"{name}-")]
        stored += steps
    assert sorted(printed) == sorted(stored)
    assert len(stored) == len(set(stored)) == 3 * writers * count
    store.close()


def test_processes_that_record_at_once_lose_nothing(place: str) -> None:
    """Forks of one session and new sessions are each stored and found; of those with one name, one wins."""
    store = open_store(place)
    store.recognition.record(recorded("trunk", Head(), "shared"))
    processes = [_process("recorder", place, 12, name) for name in ("one", "two", "three")]
    printed = [line for process in processes for line in process.communicate(timeout=300)[0].splitlines()]
    assert [0] * len(processes) == [process.returncode for process in processes]
    stored = {line for line in printed if not line.endswith("late")}
    # 12 of each process for itself, twice, and of each common branch and each common session one
    assert 12 * 3 * 2 + 12 + 12 == len(stored)
    found = store.recognition.lookup(SCOPE, DIGESTS, 1000)
    assert {f"response of {id}" for id in (*stored, "trunk")} == {seen.response for seen in found}
    for seen in found:
        assert head_of(store.read(seen.session, branch=seen.branch)) == seen.head or "trunk" in seen.response
    assert [] == list(store.fsck())
    store.close()


def test_importing_the_stores_loads_no_database() -> None:
    """``thinkback.stores`` alone does without sqlite3, and a log in memory without what only files and servers need."""
    code = (
        "import sys; from thinkback.stores import SERVER, open_store; "
        "found = {'sqlite3', 'zlib'} & set(sys.modules); open_store(':memory:').close(); "
        "print(sorted(found | {'asyncio', 'ssl', 'psycopg', 'tempfile', 'shutil'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-S", "-c", code]
    assert b"[]\n" == subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True).stdout


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_killed_writer_leaves_whole_changes(place: str, durability: str, effort: Effort) -> None:
    """kill -9 at a random point, again and again: every change that returned is there, the last one whole or not."""
    _kill_again_and_again(place, durability, times=effort.rounds(3, 200), seed=effort.seed)


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_killed_server_leaves_whole_changes(durability: str, effort: Effort) -> None:
    """An immediate stop at a random point; with ``normal`` the last changes may be gone, whole and from the end."""
    with Server() as server:
        _kill_again_and_again(server.url(), durability, times=effort.rounds(2, 200), seed=effort.seed, server=server)


def _kill_again_and_again(place: str, durability: str, times: int, seed: int, server: Server | None = None) -> None:
    """Kill a process that changes the log at ``place``, or the ``server`` under it."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    lives: list[tuple[int, int]] = []
    mirror = open_store(":memory:")
    for life in range(times):
        own = chance.randrange(2**32)
        # A server that is killed leaves it with an error.
        stderr = None if server is None else subprocess.DEVNULL
        process = _process("living", place, f"life {life}", own, durability, stderr=stderr)
        assert process.stdout is not None
        made = 0
        for _ in range(chance.randint(1, 40)):
            made += bool(process.stdout.readline())
        _spin(chance.uniform(0, 0.002))
        if server is None:
            process.kill()
        else:
            server.crash()
        made += len(process.stdout.read().splitlines())
        process.wait()
        process.stdout.close()
        if server is not None:
            server.start()
        _settle(place)
        store = open_store(place)
        assert [] == list(store.fsck()), f"seed {seed}, life {life}"
        found = looks(store)
        store.close()
        same = random.Random(own)
        for number in range(made):
            change(same, mirror, f"life {life}-{number}")(mirror)
        if found != looks(mirror):
            change(same, mirror, f"life {life}-{made}")(mirror)
            made += 1
        most, least = made, made - 1
        while found != looks(mirror) and server is not None and durability == "normal" and made > 0:
            made = least = made - 1
            mirror, _ = _lived([*lives, (own, made)])
        if found != looks(mirror):
            # A collection was cut off between two of its transactions: the next one takes what it left.
            with contextlib.closing(open_store(place)) as store:
                collect(store)
                found = looks(store)
            for made in range(most, least, -1):
                mirror, last = _lived([*lives, (own, made)])
                if last is collect and looks(mirror) == found:
                    break
            else:
                pytest.fail(f"seed {seed}, life {life}: it looks like nothing that it can be")
        assert looks(mirror) == found, f"seed {seed}, life {life}, change {made}"
        lives.append((own, made))


def _lived(lives: list[tuple[int, int]]) -> tuple[Store, Change | None]:
    """A log after so many changes (the second) of each life's chance (the first), and the last change."""
    mirror, last = open_store(":memory:"), None
    for life, (own, made) in enumerate(lives):
        same = random.Random(own)
        for number in range(made):
            last = change(same, mirror, f"life {life}-{number}")
            last(mirror)
    return mirror, last


def _settle(place: str) -> None:
    """Wait until the server has noticed that a program is gone: what it was asked to do is then done or not."""
    if not place.startswith(SERVER):
        return
    sql = """
    SELECT 1 FROM pg_stat_activity WHERE application_name = 'thinkback' AND datname = current_database()
    """
    with psycopg.connect(place, autocommit=True) as db:
        while db.execute(sql).fetchone():
            pass


def _read_until(store: Store, done: threading.Event, torn: list[str]) -> None:
    """Read over and over; every answer is whole steps and begins with the answer before."""
    before: list[Commit] = []
    while not done.is_set():
        now = store.read("shared")
        if now[: len(before)] != before:
            torn.append("history changed")
        if len(now) % BLOCKS != 1:
            torn.append(f"{len(now)} commits")
        before = now


def _follow_until(store: Store, done: threading.Event, followed: list[Commit]) -> None:
    """Ask for what is new, over and over, and once more at the end."""
    is_last = False
    while not is_last:
        is_last = done.is_set()
        followed += store.read("shared", followed[-1].seq if followed else -1)


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
