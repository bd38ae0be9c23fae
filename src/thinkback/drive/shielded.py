"""Work that a cancellation waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def to_the_end(work: Awaitable[T]) -> T:
    """What ``work`` gives. A cancellation meanwhile does not disturb it: it is raised when the work is done, from the
    work's failure if that failed.
    """
    future = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            cancelled = error
        except BaseException:  # the work's own failure, raised again below
            break
    if cancelled is not None:
        raise cancelled from (None if future.cancelled() else future.exception())
    return future.result()
