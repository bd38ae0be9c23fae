"""Threads for what must not hold up an event loop: they belong to one process, and a forked one has its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """At most so many threads, called ``name``. A program's own work may fill the default ones of its loops, and what
    waits for one log must not keep out requests of another.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._made: tuple[int, ThreadPoolExecutor] | None = None

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """What ``work`` gives."""
        made, process = self._made, os.getpid()
        if made is None or made[0] != process:
            made = self._made = process, ThreadPoolExecutor(self._most, thread_name_prefix=self._name)
        return asyncio.get_running_loop().run_in_executor(made[1], work)

    def taken(self) -> ThreadPoolExecutor | None:
        """Those of this process, for whoever ends them; the next work has others."""
        made, self._made = self._made, None
        return made[1] if made is not None and made[0] == os.getpid() else None
