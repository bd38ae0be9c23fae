"""Tasks beside the server: to store what keys use, to empty the spool, to sweep, to look at the disk.

Promises: a task that fails is logged, counted and named until it works again, and it is begun again, whatever it
raised. Must not: know what a task does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from thinkback.errors import ThinkbackError
from thinkback.servers.gateway.telemetry.logs import Log, place_of
from thinkback.servers.gateway.telemetry.metrics import TASK_FAILURES, Metrics

Step = Callable[[], Awaitable[float]]
"""One round of a task; returns the seconds until the next."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds before a task that failed is begun again: at first, and after many failures."""
LOOKS_EVERY = 2.0
AGAIN = 0.1
"""Seconds after which a task that goes on is cancelled again."""
PATIENCE = 120.0
"""Seconds for one round of a task; one that hangs has failed, and the next round waits for a thread of it."""


async def look_at_descriptors() -> float:
    """Raise ``OSError`` where this process may open nothing more; the system then leaves connections waiting."""
    os.close(os.open(os.devnull, os.O_RDONLY))
    return LOOKS_EVERY


class Upkeep:
    """The tasks of one process, on the loop that runs. ``failing`` has the kind of error by the name of the task."""

    def __init__(self, log: Log, metrics: Metrics, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self.failing: dict[str, str] = {}
        self._log, self._metrics, self._pause = log, metrics, pause
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, name: str, step: Step, after: float = 0.0) -> None:
        """Run ``step`` again and again until ``close``, the first time in ``after`` seconds."""
        self._metrics.count(TASK_FAILURES, {"task": name}, 0)
        self._tasks.append(asyncio.create_task(self._run(name, step, after)))

    async def close(self) -> None:
        """End all tasks."""
        left = set(self._tasks)
        while left:
            for task in left:
                task.cancel()
            # a step that ends at the moment may swallow it
            _, left = await asyncio.wait(left, timeout=AGAIN)

    async def _run(self, name: str, step: Step, after: float) -> None:
        again = FIRST_PAUSE
        await self._pause(after)
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    pause = await step()
            except Exception as error:  # whatever it is, the task goes on
                self._note_failure(name, error)
                pause, again = again, min(2 * again, LONGEST_PAUSE)
            else:
                again = FIRST_PAUSE
                if self.failing.pop(name, ""):
                    self._log.line("info", "task_recovered", {"task": name})
            await self._pause(pause)

    def _note_failure(self, name: str, error: Exception) -> None:
        kind = error.kind if isinstance(error, ThinkbackError) else type(error).__name__
        if isinstance(error, OSError) and error.strerror:
            kind = error.strerror
        self._metrics.count(TASK_FAILURES, {"task": name})
        if self.failing.get(name) != kind:
            fields = {"task": name, "reason": kind, "error": type(error).__name__, "at": place_of(error)}
            self._log.line("error", "task_failed", fields)
        self.failing[name] = kind
