"""Tasks beside the server: one that fails is logged, named and counted, and begun again, whatever it raised."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import StoreError
from thinkback.servers.gateway.config.schema import Logs
from thinkback.servers.gateway.running.upkeep import LONGEST_PAUSE, Upkeep
from thinkback.servers.gateway.telemetry.logs import Log
from thinkback.servers.gateway.telemetry.metrics import Metrics

FAILURES = st.sampled_from([StoreError("away"), OverflowError("too large"), KeyError("k"), RuntimeError("x"), None])


async def rounds(
    outcomes: list[Exception | None],
) -> tuple[list[dict[str, Any]], list[float], list[dict[str, str]], str]:
    """The lines of a task with these outcomes, its pauses, what was failing behind each round, the measures."""
    lines, pauses, failing = list[bytes](), list[float](), list[dict[str, str]]()
    metrics, over = Metrics(), asyncio.Event()
    left: Iterator[Exception | None] = iter(outcomes)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        failing.append(dict(upkeep.failing))
        if len(pauses) > len(outcomes):
            over.set()
            await asyncio.Event().wait()

    async def step() -> float:
        failure = next(left)
        if failure is not None:
            raise failure
        return 5.0

    upkeep = Upkeep(Log(Logs(format="json"), lines.append), metrics, pause)
    upkeep.begin("count", step, 3.0)
    await over.wait()
    await upkeep.close()
    return [json.loads(line) for line in lines], pauses, failing, metrics.page()


@given(st.lists(FAILURES, max_size=12))
def test_task_that_fails_is_begun_again_and_named_until_it_works(outcomes: list[Exception | None]) -> None:
    """Each round is run, whatever the one before raised; `failing` has the last failure alone."""
    lines, pauses, failing, page = asyncio.run(rounds(outcomes))
    failures = sum(outcome is not None for outcome in outcomes)

    assert len(outcomes) + 1 == len(pauses)
    assert [bool(failed) for failed in failing[1:]] == [outcome is not None for outcome in outcomes]
    assert f'thinkback_task_failures_total{{task="count"}} {failures}' in page.splitlines()
    assert all(
        pause == 5.0 if outcome is None else pause <= LONGEST_PAUSE
        for pause, outcome in zip(pauses[1:], outcomes, strict=True)
    )
    assert sum(line["event"] == "task_failed" for line in lines) <= failures
    if failures:
        first = next(line for line in lines if line["event"] == "task_failed")
        assert ("error", "count") == (first["level"], first["task"])


def test_failure_that_goes_on_is_logged_once_and_its_end_too() -> None:
    """Three rounds in trouble, one that works: two lines."""
    lines, pauses, _, _ = asyncio.run(rounds([OverflowError("9")] * 3 + [None]))

    assert ["task_failed", "task_recovered"] == [line["event"] for line in lines]
    assert "OverflowError" == lines[0]["error"]
    assert lines[0]["at"].startswith("running/test_upkeep.py") or "test_upkeep.py" in lines[0]["at"]
    assert [3.0, 1.0, 2.0, 4.0, 5.0] == pauses


def test_limit_of_open_files_is_noticed() -> None:
    """In a process that may open nothing more the look fails, with the system's words, once in the log."""
    program = """
import asyncio, json, os, resource
from thinkback.servers.gateway.config.schema import Logs
from thinkback.servers.gateway.running.upkeep import Upkeep, look_at_descriptors
from thinkback.servers.gateway.telemetry.logs import Log
from thinkback.servers.gateway.telemetry.metrics import Metrics

async def run():
    lines, rounds = [], []
    async def pause(seconds):
        rounds.append(seconds)
        if len(rounds) > 3:
            await asyncio.Event().wait()
    upkeep = Upkeep(Log(Logs(format="json"), lines.append), Metrics(), pause)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    upkeep.begin("descriptors", look_at_descriptors)
    while len(rounds) < 4:
        await asyncio.sleep(0)
    print(upkeep.failing["descriptors"], len(lines))
    os._exit(0) if print(end="", flush=True) is None else None

asyncio.run(run())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "Too many open files 1\n" == done.stdout, done.stderr


def test_task_that_swallows_its_cancellation_ends_all_the_same() -> None:
    """As a wait does in some Pythons whose answer comes at that moment: the gateway ends."""

    async def run() -> None:
        begun, swallowed = asyncio.Event(), 0

        async def step() -> float:
            nonlocal swallowed
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed += 1
            return 0.0

        upkeep = Upkeep(Log(Logs(), lambda line: None), Metrics())
        upkeep.begin("deaf", step)
        await begun.wait()
        async with asyncio.timeout(30):
            await upkeep.close()
        assert 1 == swallowed

    asyncio.run(run())
