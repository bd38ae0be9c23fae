"""Work about so many bytes that the event loop would stand meanwhile, on a thread of its own.

Promises: what is small is done at once; of what is large no more than a few are under way, and whoever waits for one
gets it whole, also when it is cancelled. Must not: be given work that touches what the loop uses at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from thinkback.drive.shielded import to_the_end

T = TypeVar("T")
LARGE = 256 * 1024
"""Bytes from which on work is done apart."""
_AT_ONCE = 2


class Apart:
    """Of one event loop."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="thinkback-large")

    async def __call__(self, size: int, work: Callable[[], T]) -> T:
        """What ``work`` gives, which is about ``size`` bytes."""
        if size < LARGE:
            return work()
        return await to_the_end(asyncio.get_running_loop().run_in_executor(self._executor, work))

    def close(self) -> None:
        """Wait for what is under way."""
        self._executor.shutdown()
